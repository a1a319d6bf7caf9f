"""Repetition without progress."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from langgraph_scrum_master.model import Cycle, Turn, instant
from langgraph_scrum_master.observe.rounds import stalled_rounds
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.shapes import items_of, read, text_of, truthy

REPEATS = 3
"""The same turn of the same agent this often is a cycle."""

LOOK_BACK = 24
"""Turns within which a repetition counts."""

EXPIRES = 600.0
"""Seconds after its last exchange in which the state's own finding of a cycle counts."""

NEWS = 0.05
"""The share of new words between two repetitions above which there is progress."""

_BLANKS = re.compile(r"\W+")
_SHORTEST = 24


def read_cycles(state: State, turns: Sequence[Turn], current_agent: str, now: str) -> Iterator[Cycle]:
    """The cycles that the state's own analysis names, and those in the turns."""
    yield from _analysed(state.get("cycle_analysis"), turns, current_agent, now)
    yield from _repeated(turns[-LOOK_BACK:])
    yield from stalled_rounds(turns)


def _analysed(analysis: object, turns: Sequence[Turn], current_agent: str, now: str) -> Iterator[Cycle]:
    if not truthy(read(analysis, "circular_detected")):
        return
    patterns = items_of(read(analysis, "patterns_found"))
    for pattern in patterns:
        agents = [text_of(agent) for agent in items_of(read(pattern, "agents_involved"))]
        count = read(pattern, "exchange_count", 0)
        if not _expired(text_of(read(pattern, "last_exchange_at")), turns, now):
            yield Cycle(
                agent=_whose(agents, turns, current_agent),
                topic=text_of(read(pattern, "topic")),
                count=count if isinstance(count, int) else 0,
                evidence=("cycle_analysis",),
            )
    if not patterns:
        yield Cycle(agent=current_agent, topic="", count=0, evidence=("cycle_analysis",))


def _expired(last: str, turns: Sequence[Turn], now: str) -> bool:
    if not last:
        return False
    times = [turn.time for turn in turns if turn.time is not None]
    return (max(times) if times else instant(now)) - instant(last) > EXPIRES


def _whose(agents: Sequence[str], turns: Sequence[Turn], current_agent: str) -> str:
    if not agents or current_agent in agents:
        return current_agent
    return next((turn.agent for turn in reversed(turns) if turn.agent in agents), agents[-1])


def _repeated(turns: Sequence[Turn]) -> Iterator[Cycle]:
    places: dict[tuple[str, str], list[int]] = {}
    for i, turn in enumerate(turns):
        if turn.kind == "agent" and (said := _said(turn)):
            places.setdefault((turn.agent, said), []).append(i)
    for (agent, _), same in places.items():
        later = turns[same[-1] + 1 :]
        going_on = not any(turn.agent == agent and turn.kind == "agent" for turn in later)
        if len(same) >= REPEATS and going_on and not _news(turns, same):
            evidence = tuple(turns[i].id for i in same)
            yield Cycle(agent=agent, topic=turns[same[-1]].text, count=len(same), evidence=evidence)


def _said(turn: Turn) -> str:
    # The same call with other arguments is a new try; words that only go along with a handoff are no repetition.
    calls = " ".join(f"{call.name}{call.arguments}" for call in turn.tool_calls)
    said = _BLANKS.sub(" ", f"{turn.text} {calls}".lower()).strip()
    return said if (calls or len(said) >= _SHORTEST) and not calls.startswith("transfer_") else ""


def _news(turns: Sequence[Turn], same: Sequence[int]) -> bool:
    """Whether the last round brought something that was not there before: then it is work, not a cycle."""
    before, last = same[-2], same[-1]
    between = turns[before + 1 : last]
    if any(turn.kind == "human" for turn in between):
        return True
    known = {word for turn in turns[: before + 1] for word in _words(turn)}
    heard = [word for turn in between for word in _words(turn)]
    return sum(word not in known for word in heard) > NEWS * len(heard)


def _words(turn: Turn) -> list[str]:
    return _BLANKS.sub(" ", turn.text.lower()).split()
