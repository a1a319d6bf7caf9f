"""A replay, and what differs, on the terminal."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.cli.show import choice, gap_panel, reading
from langgraph_scrum_master.replay import Difference, Replay, ReplayStep

_LONGEST = 60
"""Characters of a message or a value that are shown."""

_STYLES = {"silent": "dim", "injected": "green", "abstained": "yellow", "escalated": "red"}


def print_replay(console: Console, replay: Replay, found: Difference | None) -> None:
    """The steps in a table, each gap with what was considered and would be given, and what differs."""
    console.print(_overview(replay.steps))
    for step in replay.steps:
        if step.result is not None and found is None:
            _print_step(console, step)
    told = ", ".join(f"{count} {outcome}" for outcome, count in replay.outcomes.items())
    console.print(Text(f"{_steps(len(replay.steps))}: {told}." if replay.steps else "No steps."))
    if unasked := sorted({name for step in replay.steps for name in step.unasked}):
        console.print(Text(f"Asked then and not there now: {', '.join(unasked)}.", style="yellow"))
    if found is not None:
        console.print(_differences(found) if found else Text(f"No difference in {_steps(found.compared)}."))


def _steps(count: int) -> str:
    return f"{count} {'step' if count == 1 else 'steps'}"


def conversations(steps: Iterable[ReplayStep]) -> dict[str, list[ReplayStep]]:
    """The steps by thread, or where none is named by file; files of a single step belong together."""
    given = list(steps)
    sizes = Counter(_file(step) for step in given)
    found: dict[str, list[ReplayStep]] = {}
    for step in given:
        found.setdefault(step.thread or (_file(step) if sizes[_file(step)] > 1 else ""), []).append(step)
    return found


def _file(step: ReplayStep) -> str:
    return re.sub(r":\d+$", "", step.where)


def _overview(steps: Iterable[ReplayStep]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=True)
    for name, options in _COLUMNS.items():
        table.add_column(name, **options)
    found = conversations(steps)
    for name, group in found.items():
        if len(found) > 1:
            table.add_section()
            table.add_row("", "", Text(name or "no thread", style="bold"))
        _add_steps(table, group)
    return table


def _add_steps(table: Table, steps: Iterable[ReplayStep]) -> None:
    for quiet, group in groupby(steps, key=lambda step: step.outcome == "silent"):
        some = list(group)
        if quiet and len(some) > 3:
            table.add_row(_place(some[0]), some[0].speaker, _line(some[0].said), "silent", "", style="dim")
            table.add_row("…", "", f"{len(some) - 2} more steps without a gap", "", "", style="dim")
            some = some[-1:]
        for step in some:
            table.add_row(_place(step), Text(step.speaker), Text(_line(step.said)), *_told(step))


_NARROW: dict[str, Any] = {"max_width": 24, "overflow": "fold"}
"""A file's name may be long, and must leave room for what it holds."""

_COLUMNS: dict[str, dict[str, Any]] = {
    "step": {"style": "dim", **_NARROW},
    "who": {"no_wrap": True},
    "said": {"ratio": 4},
    "outcome": {"no_wrap": True},
    "gap": {"ratio": 3, "overflow": "fold"},
}


def _place(step: ReplayStep) -> str:
    return f"{step.step}" if step.thread or step.step else step.where


def _told(step: ReplayStep) -> tuple[Text, Text]:
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
        console.print(choice(step.result))
    if step.result.text:
        console.print(reading(well_formed(step.result.text), step.result.total_tokens, step.result.gap.agent))


def _differences(found: Difference) -> Table:
    count = len(found.steps) + len(found.only_before) + len(found.only_after)
    table = Table(
        title=f"{count} of {found.compared} steps differ", box=box.SIMPLE_HEAD, title_justify="left", expand=True
    )
    table.add_column("step", **_NARROW)
    table.add_column("what", no_wrap=True)
    table.add_column("before", ratio=1, overflow="fold", style="red")
    table.add_column("after", ratio=1, overflow="fold", style="green")
    for row in difference_rows(found):
        table.add_row(*map(Text, row))
    return table


def difference_rows(found: Difference) -> Iterator[tuple[str, str, str, str]]:
    """For each thing that differs: the step, what it is, before and after."""
    several = len({step.thread for step in found.steps}) > 1
    for step in found.steps:
        place = " ".join(filter(None, (step.thread if several else "", f"{step.step or step.where}")))
        for change in step.changes:
            yield place, change.what, _value(change.before), _value(change.after)
    yield from ((name, "step", "there", "not there") for name in found.only_before)
    yield from ((name, "step", "not there", "there") for name in found.only_after)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {item}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return "\n".join(map(str, value)) or "none"
    text = value if isinstance(value, str) else json.dumps(value)
    return well_formed(text) if len(text) < 4 * _LONGEST else f"{well_formed(text[: 4 * _LONGEST])} …"


def _line(text: str) -> str:
    line = " ".join(well_formed(text).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST].rstrip()} …"
