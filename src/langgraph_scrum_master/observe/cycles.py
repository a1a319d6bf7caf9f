"""Repetition without progress."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from langgraph_scrum_master.model import Cycle, CycleKind, Turn, instant
from langgraph_scrum_master.shapes import items_of, read, text_of, truthy
from langgraph_scrum_master.text.terms import STOP_WORDS

REPEATS = 3
"""The same turn of the same agent this often is a cycle."""

LOOK_BACK = 24
"""Turns within which a repetition counts."""

EXPIRES = 600.0
"""Seconds after its last exchange in which the state's own finding of a cycle counts."""

NEWS = 0.05
"""The share of new words in a round above which there is progress."""

LONGEST_PERIOD = 4
"""Agents in a circle, at most."""

ROUNDS = 3
"""Times that the word goes round before it can be a circle; all but the first must bring no new word at all."""

POLLS = 2
"""How many times more the same tool may be called: polling is no cycle."""

_WORD = re.compile(r"\w+")
_TRY = re.compile(r"\b(attempt|try|retry|trying|retrying)(?: again)?(?: (?:no|nr|number))?\W{1,3}\d+\b")
_SHORTEST = 24
_FEWEST = 3
_LOOKED_AT = 2_000
_MOST_WORDS = 20_000


class _Key(NamedTuple):
    """What makes two turns the same: its agent, and its words without fillers, in any order."""

    agent: str
    words: frozenset[str]
    calls: str
    """The tools that were called, with their arguments."""
    whole: str = ""
    """All of the text, where it is too long for its words."""

    @property
    def enough(self) -> int:
        return REPEATS + POLLS if self.calls else REPEATS


class _Heard(NamedTuple):
    turn: Turn
    words: tuple[str, ...]
    key: _Key | None
    fresh: int
    """Words that none of the turns before it has."""


class Repeats:
    """The latest turns, and what of them is the same again with nothing new in between."""

    __slots__ = ("_count", "_heard_at", "_latest", "_often", "_times")

    def __init__(self) -> None:
        self._latest: deque[_Heard] = deque(maxlen=LOOK_BACK)
        self._count = 0
        self._heard_at: dict[str, int] = {}
        """The number of the turn in which each word was heard last."""
        self._times: dict[_Key, int] = {}
        self._often: set[_Key] = set()
        """The turns that are there often enough for a cycle."""

    def add(self, turn: Turn) -> None:
        """Take in the next turn."""
        if len(self._latest) == LOOK_BACK and (gone := self._latest[0].key):
            self._counts(gone, self._times[gone] - 1)
        words = _words(turn)
        key = _key(turn, words) if turn.kind == "agent" else None
        self._latest.append(_Heard(turn, words, key, self._hear(words)))
        if key:
            self._counts(key, self._times.get(key, 0) + 1)

    @property
    def progress(self) -> bool:
        """Whether the newest turn has brought news, and none is there again and again: then there is no cycle."""
        return not self._often and (not self._latest or self._latest[-1].fresh > 0)

    def cycles(self) -> tuple[Cycle, ...]:
        """The repetitions that go on, and else the circle in which the team talks."""
        if self.progress:
            return ()
        often = [key for key in self._times if key in self._often]
        repetitions = tuple(cycle for key in often if (cycle := self._repetition(key)))
        circle = None if repetitions else self._circle()
        return repetitions if circle is None else (circle,)

    def _counts(self, key: _Key, times: int) -> None:
        self._times[key] = times
        if not times:
            del self._times[key]
        if times >= REPEATS and times >= key.enough:
            self._often.add(key)
        elif self._often:
            self._often.discard(key)

    def _hear(self, words: Sequence[str]) -> int:
        self._count += 1
        heard_at, fresh, forgotten = self._heard_at, 0, self._count - LOOK_BACK
        for word in words:
            if heard_at.get(word, -LOOK_BACK) < forgotten:
                fresh += 1
            heard_at[word] = self._count
        if len(heard_at) > _MOST_WORDS:
            self._heard_at = {word: at for word, at in heard_at.items() if at >= forgotten}
        return fresh

    def _repetition(self, key: _Key) -> Cycle | None:
        latest = list(self._latest)
        same = [i for i, heard in enumerate(latest) if heard.key == key]
        later = (heard.turn for heard in latest[same[-1] + 1 :])
        left = any(turn.agent == key.agent and turn.kind == "agent" for turn in later)
        if left or (news := _news(latest, same[-2], same[-1])) > NEWS:
            return None
        around = [heard.turn for heard in latest if heard.key and self._times[heard.key] >= REPEATS]
        kind: CycleKind = "repeated_call" if key.calls else "repeated_turn"
        return _cycle([latest[i].turn for i in same], around, kind, news)

    def _circle(self) -> Cycle | None:
        # Who has just brought news does not go in circles: most turns are done with here.
        if not self._latest or self._latest[-1].fresh:
            return None
        spoken = self._talk()
        for period in range(2, LONGEST_PERIOD + 1):
            last = spoken[-ROUNDS * period :]
            if len(last) == ROUNDS * period and _goes_round(last, period):
                idle = list(self._latest)[-_span(self._latest, last[period]) :]
                if not any(heard.fresh for heard in idle) and all(len(heard.words) >= _FEWEST for heard in last):
                    turns = [heard.turn for heard in _whole_circle(spoken, period)]
                    circle = _cycle(turns, turns, "topic_cycle", 0.0)
                    return replace(circle, about=f"circle of {' '.join(sorted(circle.agents))}")
        return None

    def _talk(self) -> list[_Heard]:
        spoken: list[_Heard] = []
        for heard in reversed(self._latest):
            # To and fro with handoffs is how a hub works: whether that goes in circles, its rounds tell.
            if heard.turn.kind in ("human", "system") or heard.turn.tool_calls:
                break
            if heard.turn.kind == "agent" and heard.turn.text:
                spoken.append(heard)
        return spoken[::-1]


def analysed(analysis: object, turns: Sequence[Turn], current_agent: str, now: str) -> Iterator[Cycle]:
    """The cycles that the state's own analysis names, unless they are long past."""
    if not truthy(read(analysis, "circular_detected")):
        return
    patterns = items_of(read(analysis, "patterns_found"))
    analysed_at = text_of(read(analysis, "analyzed_at"))
    for pattern in patterns:
        agents = tuple(text_of(agent) for agent in items_of(read(pattern, "agents_involved")))
        count = read(pattern, "exchange_count", 0)
        first, last = text_of(read(pattern, "first_exchange_at")), text_of(read(pattern, "last_exchange_at"))
        if not _expired(last or analysed_at, turns, now):
            yield Cycle(
                agent=_whose(agents, turns, current_agent),
                topic=text_of(read(pattern, "topic")),
                count=count if isinstance(count, int) else 0,
                evidence=("cycle_analysis",),
                kind="reported",
                agents=agents,
                first=_time(first),
                last=_time(last),
            )
    if not patterns and not _expired(analysed_at, turns, now):
        yield Cycle(agent=current_agent, topic="", count=0, evidence=("cycle_analysis",), kind="reported")


def _expired(last: str, turns: Sequence[Turn], now: str) -> bool:
    if not last:
        return False
    times = [turn.time for turn in turns if turn.time is not None]
    return (max(times) if times else instant(now)) - instant(last) > EXPIRES


def _time(stamp: str) -> float | None:
    seconds = instant(stamp)
    return seconds if seconds > float("-inf") else None


def _whose(agents: Sequence[str], turns: Sequence[Turn], current_agent: str) -> str:
    if not agents or current_agent in agents:
        return current_agent
    return next((turn.agent for turn in reversed(turns) if turn.agent in agents), agents[-1])


def _cycle(turns: Sequence[Turn], around: Sequence[Turn], kind: CycleKind, news: float) -> Cycle:
    agents = tuple(dict.fromkeys(turn.agent for turn in around))
    times = [turn.time for turn in turns if turn.time is not None]
    return Cycle(
        agent=turns[-1].agent,
        topic=_topic(turns) or turns[-1].text,
        count=len(turns),
        evidence=tuple(turn.id for turn in turns),
        kind=kind,
        agents=agents,
        first=min(times, default=None),
        last=max(times, default=None),
        news=news,
    )


def _topic(turns: Sequence[Turn]) -> str:
    topics = {text_of(turn.marks.get("topic")) for turn in turns}
    return topics.pop() if len(topics) == 1 else ""


def _key(turn: Turn, words: Sequence[str]) -> _Key | None:
    # The same call with other arguments is a new try; words that only go along with a handoff are no repetition.
    calls = " ".join(f"{call.name}{call.arguments}" for call in turn.tool_calls) if turn.tool_calls else ""
    if calls.startswith("transfer_") or not (calls or len(turn.text.strip()) >= _SHORTEST):
        return None
    whole = turn.text if len(turn.text) > _LOOKED_AT else ""
    return _Key(turn.agent, frozenset(words), calls, whole)


def _words(turn: Turn) -> tuple[str, ...]:
    """The turn's words without fillers."""
    lowered = turn.text[:_LOOKED_AT].lower()
    if "attempt" in lowered or "try" in lowered:
        lowered = _TRY.sub(r"\1", lowered)
    return tuple([word for word in _WORD.findall(lowered) if word not in STOP_WORDS])


def _news(heard: Sequence[_Heard], before: int, last: int) -> float:
    """How much of what was said between two turns was not there before; all of it if a person spoke."""
    between = heard[before + 1 : last]
    if any(each.turn.kind == "human" for each in between):
        return 1.0
    known = {word for each in heard[: before + 1] for word in (*each.words, *_arguments(each.turn))}
    words = [word for each in between for word in (*each.words, *_arguments(each.turn))]
    return sum(word not in known for word in words) / max(1, len(words))


def _arguments(turn: Turn) -> list[str]:
    return [word for call in turn.tool_calls for word in _WORD.findall(call.arguments[:_LOOKED_AT].lower())]


def _goes_round(spoken: Sequence[_Heard], period: int) -> bool:
    agents = [heard.turn.agent for heard in spoken]
    return len(set(agents[:period])) == period and all(
        agents[i] == agents[i - period] for i in range(period, len(agents))
    )


def _whole_circle(spoken: Sequence[_Heard], period: int) -> Sequence[_Heard]:
    """As much of the talk as goes round without news, with the round that had it."""
    start = len(spoken) - ROUNDS * period
    while start and spoken[start - 1].turn.agent == spoken[start + period - 1].turn.agent and not spoken[start].fresh:
        start -= 1
    return spoken[start:]


def _span(latest: Sequence[_Heard], first: _Heard) -> int:
    return next(i for i, heard in enumerate(reversed(latest), 1) if heard is first)
