"""Repetition without progress."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from langgraph_scrum_master.model import Cycle, Turn
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.shapes import items_of, read, text_of

REPEATS = 3
"""The same turn of the same agent this often is a cycle."""

LOOK_BACK = 24
"""Turns within which a repetition counts."""

_BLANKS = re.compile(r"\W+")
_SHORTEST = 12


def read_cycles(state: State, turns: Sequence[Turn], current_agent: str) -> Iterator[Cycle]:
    """The cycles that the state's own analysis names, and those in the turns."""
    yield from _analysed(state.get("cycle_analysis"), current_agent)
    yield from _repeated(turns[-LOOK_BACK:])


def _analysed(analysis: object, current_agent: str) -> Iterator[Cycle]:
    if not read(analysis, "circular_detected"):
        return
    patterns = items_of(read(analysis, "patterns_found"))
    for pattern in patterns:
        agents = [text_of(agent) for agent in items_of(read(pattern, "agents_involved"))]
        count = read(pattern, "exchange_count", 0)
        yield Cycle(
            agent=current_agent or (agents[-1] if agents else ""),
            topic=text_of(read(pattern, "topic")),
            count=count if isinstance(count, int) else 0,
            evidence=("cycle_analysis",),
        )
    if not patterns:
        yield Cycle(agent=current_agent, topic="", count=0, evidence=("cycle_analysis",))


def _repeated(turns: Sequence[Turn]) -> Iterator[Cycle]:
    if not turns:
        return
    groups: dict[tuple[str, str], list[Turn]] = {}
    for turn in turns:
        if turn.kind == "agent" and (said := _said(turn)):
            groups.setdefault((turn.agent, said), []).append(turn)
    for (agent, _), same in groups.items():
        if len(same) >= REPEATS and _nothing_since(turns, same[-1]):
            yield Cycle(agent=agent, topic=same[-1].text, count=len(same), evidence=tuple(t.id for t in same))


def _said(turn: Turn) -> str:
    # The same call with other arguments is a new try; words that only go along with a handoff are no repetition.
    calls = " ".join(f"{call.name}{call.arguments}" for call in turn.tool_calls)
    said = _BLANKS.sub(" ", f"{turn.text} {calls}".lower()).strip()
    return said if len(said) >= _SHORTEST and not calls.startswith("transfer_") else ""


def _nothing_since(turns: Sequence[Turn], last: Turn) -> bool:
    after = turns[turns.index(last) + 1 :]
    return not any(turn.agent == last.agent and turn.kind == "agent" for turn in after)
