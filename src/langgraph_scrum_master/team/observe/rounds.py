"""Rounds of a hub: it asks a worker, and the worker replies.

A hub and its workers alternate by design. It is a cycle if a worker that is asked for nearly the same does the same
again. A new plan (a system message) resets the rounds.
"""

from __future__ import annotations

from collections import deque
from itertools import combinations
from typing import NamedTuple

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master.model import Cycle, Turn
from langgraph_scrum_master.team.observe.handoffs import is_handoff
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

_WORD = lazy_pattern(r"[a-z0-9]{3,}|[0-9]+")
_NAME = lazy_pattern(r"(?<=[a-z,] )[A-Z]\w+|\b\w*\d\w*\b")
_BLANKS = lazy_pattern(r"\W+")


class Round(NamedTuple):
    """A request and its reply."""

    ask: Turn
    reply: Turn


class Rounds:
    """The latest rounds since the last plan, and their cycle if there is one."""

    __slots__ = ("_ask", "_count", "_latest", "_tuning", "cycle")

    def __init__(self, tuning: DetectionTuning = DEFAULT_DETECTION) -> None:
        self._tuning = tuning
        self._latest: deque[Round] = deque(maxlen=tuning.compared_rounds)
        self._count = 0
        self._ask: Turn | None = None
        self.cycle: Cycle | None = None

    def add(self, turn: Turn) -> None:
        """Process the next turn."""
        if turn.kind == "system":
            self._latest.clear()
            self._count, self._ask, self.cycle = 0, None, None
        elif turn.kind == "agent" and turn.text:
            if turn.tool_calls:
                self._ask = turn if any(map(is_handoff, turn.tool_calls)) else self._ask
            elif self._ask is not None and turn.agent != self._ask.agent:
                self._latest.append(Round(self._ask, turn))
                self._count, self._ask = self._count + 1, None
                self.cycle = self._find_cycle() if self._count >= self._tuning.rounds else None

    def _find_cycle(self) -> Cycle | None:
        tuning = self._tuning
        for one, other in combinations(self._latest, 2):
            if (
                _same_action(one.reply, other.reply, tuning)
                and _similarity(one.ask.text, other.ask.text, tuning.ask_slots) >= tuning.same_ask
            ):
                last = self._latest[-1]
                return Cycle(
                    agent=last.reply.agent,
                    topic=last.ask.text,
                    count=(count := sum(_same_action(one.reply, each.reply, tuning) for each in self._latest)),
                    evidence=(one.reply.id, other.reply.id),
                    kind="hub",
                    agents=(last.ask.agent, last.reply.agent),
                    first=one.reply.time,
                    last=other.reply.time,
                    confidence=tuning.one_repeated_round_confidence if count == 2 else tuning.rounds_confidence,
                )
        return None


def _same_action(one: Turn, other: Turn, tuning: DetectionTuning) -> bool:
    opening, again = _opening(one.text, tuning.reply_opening), _opening(other.text, tuning.reply_opening)
    # A short reply is compared as a whole. A long one starts with what was done, so its opening is compared.
    if max(len(one.text), len(other.text)) < tuning.long_reply:
        opening, again = _BLANKS.sub(" ", one.text.lower()).strip(), _BLANKS.sub(" ", other.text.lower()).strip()
    return one.agent == other.agent and opening == again and len(opening) >= tuning.shortest_reply


def _opening(text: str, length: int) -> str:
    return _BLANKS.sub(" ", text[: 3 * length].lower()).strip()[:length]


def _similarity(one: str, other: str, slots: int) -> float:
    words, others = set(_WORD.findall(one.lower())), set(_WORD.findall(other.lower()))
    removed, added = words - others, others - words
    # If only a number or a name differs, it is the next task from the same template.
    if 0 < len(removed) <= slots and 0 < len(added) <= slots and (removed | added) <= _names(one) | _names(other):
        return 0.0
    return len(words & others) / max(1, len(words | others))


def _names(text: str) -> set[str]:
    return {name.lower() for name in _NAME.findall(text)}
