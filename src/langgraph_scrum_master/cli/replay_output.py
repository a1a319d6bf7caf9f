"""Prints a replay and its differences on the terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from rich import box
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.show import contexts_table, gap_panel, text_panel
from langgraph_scrum_master.model import InjectionResult
from langgraph_scrum_master.replay import Difference, Replay, ReplayStep, against_recorded
from langgraph_scrum_master.replay.inventory import file_of

_MAX_TEXT = 60
"""Maximum number of characters shown of a message or a value."""

_STYLES = {"silent": "dim", "no record": "dim", "injected": "green", "abstained": "yellow", "escalated": "red"}

_OUTCOMES = {"used": "used", "ignored": "ignored", "asked_again": "asked again", "open": "not yet known"}
"""What the agent did with an injection."""


def print_replay(console: Console, replay: Replay, differences: Difference | None) -> None:
    """Print the steps as a table, then each gap: first what was recorded, then what the replay does, as hypothetical.

    With differences, print those instead of the gaps.
    """
    console.print(_overview(replay.steps, narrow=console.width < _NARROW_TERMINAL))
    ran = {step.thread for step in replay.steps if step.ran}
    for step in replay.steps:
        if differences is None and _is_detailed(step, ran):
            _print_step(console, step)
    then, now = _counts(replay.recorded_outcomes), _counts(replay.outcomes)
    summary = f"{_steps(len(replay.steps))}: recorded {then}; hypothetical replay {now}."
    console.print(Text(summary if replay.steps else "No steps."))
    if unasked := sorted({name for step in replay.steps for name in step.unasked}):
        console.print(Text(f"Sources of the recorded run that are missing now: {', '.join(unasked)}.", style="yellow"))
    if differences is not None:
        unchanged = Text(f"No difference in {_steps(differences.compared)}.")
        console.print(_differences_table(differences) if differences else unchanged)


def _is_detailed(step: ReplayStep, ran: Collection[str]) -> bool:
    """Whether a step has a gap. Where a scrum master took part, steps between its turns are not interesting."""
    return step.recorded is not None or (step.result is not None and (bool(step.turns) or step.thread not in ran))


def _counts(outcomes: Mapping[Any, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())


def _steps(count: int) -> str:
    return f"{count} {'step' if count == 1 else 'steps'}"


def conversations(steps: Iterable[ReplayStep]) -> dict[str, list[ReplayStep]]:
    """The steps by thread, or by file if they have no thread. Files with a single step are grouped together."""
    listed = list(steps)
    sizes = Counter(file_of(step.where) for step in listed)
    groups: dict[str, list[ReplayStep]] = {}
    for step in listed:
        file = file_of(step.where)
        groups.setdefault(step.thread or (file if sizes[file] > 1 else ""), []).append(step)
    return groups


def _overview(steps: Iterable[ReplayStep], narrow: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=True)
    for name, options in (_NARROW_COLUMNS if narrow else _COLUMNS).items():
        table.add_column(name, **options)
    groups = conversations(steps)
    for name, group in groups.items():
        if len(groups) > 1:
            table.add_section()
            table.add_row(*([""] * (len(table.columns) > 2)), "", Text(name or "no thread", style="bold"))
        _add_steps(table, group)
    return table


def _add_steps(table: Table, steps: Iterable[ReplayStep]) -> None:
    for quiet, group in groupby(steps, key=_is_quiet):
        some = list(group)
        if quiet and len(some) > 3:
            _add_step(table, some[0])
            table.add_row(
                "…", *([""] * (len(table.columns) > 2)), f"{len(some) - 2} more steps without a gap", style="dim"
            )
            some = some[-1:]
        for step in some:
            _add_step(table, step)


def _is_quiet(step: ReplayStep) -> bool:
    return step.recorded is None and step.outcome == "silent" and not step.failure


def _add_step(table: Table, step: ReplayStep) -> None:
    said = Text("\n").join([Text(_line(step.said)), *(Text(gap, style="yellow") for gap in _gaps(step))])
    if len(table.columns) > len(_NARROW_COLUMNS):
        table.add_row(_place(step), Text(step.speaker), said, _then(step), _now(step))
    else:
        outcomes = Text.assemble("\nrecorded: ", _then(step), "\nhypothetical: ", _now(step))
        table.add_row(_place(step), Text.assemble(f"{step.speaker}: " if step.speaker else "", said, outcomes))


_NARROW: dict[str, Any] = {"max_width": 24, "overflow": "fold"}
"""File names may be long and must leave room for the other columns."""

_NARROW_TERMINAL = 60
"""Below so many columns, all about a step is in one cell."""

_NARROW_COLUMNS: dict[str, dict[str, Any]] = {
    "step": {"style": "dim", "max_width": 8, "overflow": "fold"},
    "what": {"ratio": 1, "overflow": "fold"},
}

_COLUMNS: dict[str, dict[str, Any]] = {
    "step": {"style": "dim", **_NARROW},
    "who": {"overflow": "fold"},
    "said": {"ratio": 1, "overflow": "fold"},
    "recorded": {"width": 12},
    "hypothetical": {"width": 12, "style": "italic"},
}


def _place(step: ReplayStep) -> Text:
    return Text(f"{step.step}" if step.thread or step.step else step.where)


def _then(step: ReplayStep) -> Text:
    """What was recorded of a step."""
    became = _OUTCOMES.get(step.injection_outcome, "") if step.recorded is not None and step.recorded.injected else ""
    return Text(_outcome(step.recorded_outcome, step.recorded, became), style=_STYLES[step.recorded_outcome])


def _now(step: ReplayStep) -> Text:
    """What the replay does at a step."""
    return Text("failed" if step.failure else _outcome(step.outcome, step.result), style=_STYLES[step.outcome])


def _outcome(outcome: str, result: InjectionResult | None, became: str = "") -> str:
    tokens = f" {result.total_tokens} tokens" if result is not None and result.injected else ""
    return f"{outcome}{tokens}{f', {became}' if became else ''}"


def _gaps(step: ReplayStep) -> list[str]:
    then = (step.recorded.gap,) if step.recorded is not None else ()
    gaps = (*then, *step.gaps, *step.given_up)
    return list(dict.fromkeys(f"{gap.agent}: {gap.reason} {gap.confidence:.2f}" for gap in gaps))


def _print_step(console: Console, step: ReplayStep) -> None:
    title = " · ".join(filter(None, (step.where, step.thread, f"step {step.step}", step.at)))
    console.print(Rule(Text(title), style="dim"))
    differs = against_recorded(Replay(steps=(step,)))
    if step.recorded is not None:
        _print_result(console, step.recorded, "read")
    if step.recorded_outcome == "no record":
        console.print(Text("No record of this step. Hypothetical, a replay with these settings:", style="italic"))
    elif differs:
        console.print(Text("Hypothetical, a replay with these settings differs:", style="italic"))
        for change in (change for each in differs.steps for change in each.changes):
            then, now = (_line(_value(value)) or "none" for value in (change.before, change.after))
            console.print(Text(f"  {change.what}: {then} → {now}", style="italic"))
    else:
        console.print(Text("Hypothetical, a replay with these settings does the same.", style="italic"))
    if step.recorded is None and step.result is not None:
        _print_result(console, step.result, "would read")


def _print_result(console: Console, result: InjectionResult, reads: str) -> None:
    console.print(gap_panel(result.gap))
    if result.contexts_retrieved or result.dropped:
        console.print(contexts_table(result))
    if result.text:
        console.print(text_panel(well_formed(result.text), result.total_tokens, result.gap.agent, reads))
    elif result.injected:
        console.print(Text("The text was not recorded.", style="dim"))


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
