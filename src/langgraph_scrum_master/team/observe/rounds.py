"""Rounds of a hub: it asks a worker, the worker replies. The same again and again is a cycle.

To and fro between a hub and its workers is how such a team works. It goes in circles when a worker, asked for nearly
the same, does the same once more. A new plan (a system message) starts afresh.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import combinations
from typing import NamedTuple

from langgraph_scrum_master.model import Cycle, Turn
from langgraph_scrum_master.team.observe.handoffs import is_handoff

_LATEST = 5
"""Rounds that are compared."""

_ENOUGH = 4
"""Rounds since the last plan before which nothing is a cycle."""

SAME_ASK = 0.25
"""The share of words that two asks have in common if they ask for nearly the same."""

SLOT = 2
"""Words in which two asks for different things differ, if they are made from one template."""

_CONFIDENCE, ONCE = 0.8, 0.6
"""Of a cycle, and of one that only one repetition shows."""

_OPENING = 60
"""Characters of a reply that tell what was done."""

_LONG = 200
"""Characters from which a reply is long."""

_SHORTEST = 15
"""Characters below which a reply tells nothing."""

_WORD = re.compile(r"[a-z0-9]{3,}|[0-9]+")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z]\w+|\b\w*\d\w*\b")
_BLANKS = re.compile(r"\W+")


class Round(NamedTuple):
    """An ask and its reply."""

    ask: Turn
    reply: Turn


class Rounds:
    """The latest rounds since the last plan, and the cycle that they are in."""

    __slots__ = ("_ask", "_count", "_latest", "cycle")

    def __init__(self) -> None:
        self._latest: deque[Round] = deque(maxlen=_LATEST)
        self._count = 0
        self._ask: Turn | None = None
        self.cycle: Cycle | None = None

    def add(self, turn: Turn) -> None:
        """Take in the next turn."""
        if turn.kind == "system":
            self._latest.clear()
            self._count, self._ask, self.cycle = 0, None, None
        elif turn.kind == "agent" and turn.text:
            if turn.tool_calls:
                self._ask = turn if any(map(is_handoff, turn.tool_calls)) else self._ask
            elif self._ask is not None and turn.agent != self._ask.agent:
                self._latest.append(Round(self._ask, turn))
                self._count, self._ask = self._count + 1, None
                self.cycle = self._stalled() if self._count >= _ENOUGH else None

    def _stalled(self) -> Cycle | None:
        for one, other in combinations(self._latest, 2):
            if _same_deed(one.reply, other.reply) and _alike(one.ask.text, other.ask.text) >= SAME_ASK:
                last = self._latest[-1]
                return Cycle(
                    agent=last.reply.agent,
                    topic=last.ask.text,
                    count=(count := sum(_same_deed(one.reply, each.reply) for each in self._latest)),
                    evidence=(one.reply.id, other.reply.id),
                    kind="hub",
                    agents=(last.ask.agent, last.reply.agent),
                    first=one.reply.time,
                    last=other.reply.time,
                    confidence=ONCE if count == 2 else _CONFIDENCE,
                )
        return None


def _same_deed(one: Turn, other: Turn) -> bool:
    opening, again = _opening(one.text), _opening(other.text)
    # A short reply is all that was done; of a long one, its start tells that, and the rest what came of it.
    if max(len(one.text), len(other.text)) < _LONG:
        opening, again = _BLANKS.sub(" ", one.text.lower()).strip(), _BLANKS.sub(" ", other.text.lower()).strip()
    return one.agent == other.agent and opening == again and len(opening) >= _SHORTEST


def _opening(text: str) -> str:
    return _BLANKS.sub(" ", text[: 3 * _OPENING].lower()).strip()[:_OPENING]


def _alike(one: str, other: str) -> float:
    words, others = set(_WORD.findall(one.lower())), set(_WORD.findall(other.lower()))
    slot, filled = words - others, others - words
    # The same words but for another number or name are the next task from the same template.
    if 0 < len(slot) <= SLOT and 0 < len(filled) <= SLOT and (slot | filled) <= _names(one) | _names(other):
        return 0.0
    return len(words & others) / max(1, len(words | others))


def _names(text: str) -> set[str]:
    return {name.lower() for name in _NAME.findall(text)}
