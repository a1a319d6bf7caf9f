"""Prints a replay and its differences on the terminal."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from rich import box
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.show import contexts_table, gap_panel, text_panel
from langgraph_scrum_master.replay import Difference, Replay, ReplayStep

_MAX_TEXT = 60
"""Maximum number of characters shown of a message or a value."""

_STYLES = {"silent": "dim", "injected": "green", "abstained": "yellow", "escalated": "red"}


def print_replay(console: Console, replay: Replay, differences: Difference | None) -> None:
    """Print the steps as a table, the contexts considered for each gap, and the differences."""
    console.print(_overview(replay.steps))
    for step in replay.steps:
        if step.result is not None and differences is None:
            _print_step(console, step)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in replay.outcomes.items())
    console.print(Text(f"{_steps(len(replay.steps))}: {outcomes}." if replay.steps else "No steps."))
    if unasked := sorted({name for step in replay.steps for name in step.unasked}):
        console.print(Text(f"Sources of the recorded run that are missing now: {', '.join(unasked)}.", style="yellow"))
    if differences is not None:
        unchanged = Text(f"No difference in {_steps(differences.compared)}.")
        console.print(_differences_table(differences) if differences else unchanged)


def _steps(count: int) -> str:
    return f"{count} {'step' if count == 1 else 'steps'}"


def conversations(steps: Iterable[ReplayStep]) -> dict[str, list[ReplayStep]]:
    """The steps by thread, or by file if they have no thread. Files with a single step are grouped together."""
    listed = list(steps)
    sizes = Counter(_file(step) for step in listed)
    groups: dict[str, list[ReplayStep]] = {}
    for step in listed:
        groups.setdefault(step.thread or (_file(step) if sizes[_file(step)] > 1 else ""), []).append(step)
    return groups


def _file(step: ReplayStep) -> str:
    return re.sub(r":\d+$", "", step.where)


def _overview(steps: Iterable[ReplayStep]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=True)
    for name, options in _COLUMNS.items():
        table.add_column(name, **options)
    groups = conversations(steps)
    for name, group in groups.items():
        if len(groups) > 1:
            table.add_section()
            table.add_row("", "", Text(name or "no thread", style="bold"))
        _add_steps(table, group)
    return table


def _add_steps(table: Table, steps: Iterable[ReplayStep]) -> None:
    for quiet, group in groupby(steps, key=lambda step: step.outcome == "silent"):
        some = list(group)
        if quiet and len(some) > 3:
            table.add_row(_place(some[0]), Text(some[0].speaker), Text(_line(some[0].said)), "silent", "", style="dim")
            table.add_row("…", "", f"{len(some) - 2} more steps without a gap", "", "", style="dim")
            some = some[-1:]
        for step in some:
            table.add_row(_place(step), Text(step.speaker), Text(_line(step.said)), *_cells(step))


_NARROW: dict[str, Any] = {"max_width": 24, "overflow": "fold"}
"""File names may be long and must leave room for the other columns."""

_COLUMNS: dict[str, dict[str, Any]] = {
    "step": {"style": "dim", **_NARROW},
    "who": {"no_wrap": True},
    "said": {"ratio": 4},
    "outcome": {"no_wrap": True},
    "gap": {"ratio": 3, "overflow": "fold"},
}


def _place(step: ReplayStep) -> Text:
    return Text(f"{step.step}" if step.thread or step.step else step.where)


def _cells(step: ReplayStep) -> tuple[Text, Text]:
    gaps = [f"{gap.agent}: {gap.reason} {gap.confidence:.2f}" for gap in (*step.gaps, *step.given_up)]
    tokens = f" {step.result.total_tokens} tokens" if step.result is not None and step.result.injected else ""
    failed = "failed" if step.failure else ""
    return Text(failed or f"{step.outcome}{tokens}", style=_STYLES[step.outcome]), Text("\n".join(gaps))


def _print_step(console: Console, step: ReplayStep) -> None:
    if step.result is None:
        return
    title = " · ".join(filter(None, (step.where, step.thread, f"step {step.step}", step.at)))
    console.print(Rule(Text(title), style="dim"))
    console.print(gap_panel(step.result.gap))
    if step.considered:
        console.print(contexts_table(step.result))
    if step.result.text:
        console.print(text_panel(well_formed(step.result.text), step.result.total_tokens, step.result.gap.agent))


def _differences_table(differences: Difference) -> Table:
    count = len(differences.steps) + len(differences.only_before) + len(differences.only_after)
    table = Table(
        title=f"{count} of {differences.compared} steps differ", box=box.SIMPLE_HEAD, title_justify="left", expand=True
    )
    table.add_column("step", **_NARROW)
    table.add_column("what", no_wrap=True)
    table.add_column("before", ratio=1, overflow="fold", style="red")
    table.add_column("after", ratio=1, overflow="fold", style="green")
    for row in difference_rows(differences):
        table.add_row(*map(Text, row))
    return table


def difference_rows(differences: Difference) -> Iterator[tuple[str, str, str, str]]:
    """For each change: the step, what changed, before and after."""
    several = len({step.thread for step in differences.steps}) > 1
    for step in differences.steps:
        place = " ".join(filter(None, (step.thread if several else "", f"{step.step or step.where}")))
        for change in step.changes:
            yield place, change.what, _value(change.before), _value(change.after)
    yield from ((name, "step", "present", "missing") for name in differences.only_before)
    yield from ((name, "step", "missing", "present") for name in differences.only_after)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {item}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return "\n".join(map(str, value)) or "none"
    text = value if isinstance(value, str) else json.dumps(value)
    return well_formed(text) if len(text) < 4 * _MAX_TEXT else f"{well_formed(text[: 4 * _MAX_TEXT])} …"


def _line(text: str) -> str:
    line = " ".join(well_formed(text).split())
    return line if len(line) <= _MAX_TEXT else f"{line[:_MAX_TEXT].rstrip()} …"
