"""Repetition without progress."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence

from langgraph_scrum_master.model import Cycle, Turn, instant
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
_LOOKED_AT = 2_000

_CALL = "\x00"
"""What marks a turn that is a tool call and nothing else: polling repeats it once more than a cycle of words."""

_Key = tuple[str, str]


class Repeats:
    """The latest turns, and what of them is the same again with nothing new in between."""

    __slots__ = ("_keys", "_latest", "_times")

    def __init__(self) -> None:
        self._latest: deque[Turn] = deque(maxlen=LOOK_BACK)
        self._keys: deque[_Key | None] = deque(maxlen=LOOK_BACK)
        self._times: dict[_Key, int] = {}

    def add(self, turn: Turn) -> None:
        """Take in the next turn."""
        if len(self._keys) == LOOK_BACK and (gone := self._keys[0]):
            self._times[gone] -= 1
            if not self._times[gone]:
                del self._times[gone]
        said = _said(turn) if turn.kind == "agent" else ""
        key = (turn.agent, said) if said else None
        self._latest.append(turn)
        self._keys.append(key)
        if key:
            self._times[key] = self._times.get(key, 0) + 1

    def cycles(self) -> Iterator[Cycle]:
        """The repetitions that go on."""
        for key, times in self._times.items():
            if times >= (REPEATS if key[1][0] != _CALL else REPEATS + 1):
                yield from self._cycle(key, [i for i, other in enumerate(self._keys) if other == key])

    def _cycle(self, key: _Key, same: Sequence[int]) -> Iterator[Cycle]:
        turns, (agent, _) = list(self._latest), key
        going_on = not any(turn.agent == agent and turn.kind == "agent" for turn in turns[same[-1] + 1 :])
        if going_on and not _news(turns, same):
            evidence = tuple(turns[i].id for i in same)
            yield Cycle(agent=agent, topic=turns[same[-1]].text, count=len(same), evidence=evidence)


def analysed(analysis: object, turns: Sequence[Turn], current_agent: str, now: str) -> Iterator[Cycle]:
    """The cycles that the state's own analysis names, unless they are long past."""
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


def _said(turn: Turn) -> str:
    # The same call with other arguments is a new try; words that only go along with a handoff are no repetition.
    calls = " ".join(f"{call.name}{call.arguments}" for call in turn.tool_calls) if turn.tool_calls else ""
    said = _BLANKS.sub(" ", f"{turn.text[:_LOOKED_AT]} {calls}".lower()).strip()
    if calls.startswith("transfer_") or not (calls or len(said) >= _SHORTEST):
        return ""
    return f"{_CALL}{said}" if calls and not turn.text else said


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
