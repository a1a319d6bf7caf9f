"""Rounds of a hub: it asks a worker, the worker replies. The same again and again is a cycle.

To and fro between a hub and its workers is how such a team works. It goes in circles when a worker, asked for nearly
the same, does the same once more. A new plan (a system message) starts afresh.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from langgraph_scrum_master.model import Cycle, Turn

LATEST = 5
"""Rounds that are compared."""

ENOUGH = 3
"""Rounds since the last plan before which nothing is a cycle."""

SAME_ASK = 0.25
"""The share of words that two asks have in common if they ask for nearly the same."""

OPENING = 60
"""Characters of a reply that tell what was done."""

SHORTEST = 15
"""Characters below which a reply tells nothing."""

_HANDOFF = ("transfer_to_", "task")
_WORD = re.compile(r"[a-z0-9]{3,}")
_BLANKS = re.compile(r"\W+")


class Round(NamedTuple):
    """An ask and its reply."""

    ask: Turn
    reply: Turn


def stalled_rounds(turns: Sequence[Turn]) -> Iterator[Cycle]:
    """The cycle that the latest rounds are in, if any."""
    rounds = _rounds(turns)
    if len(rounds) < ENOUGH:
        return
    latest = rounds[-LATEST:]
    for one, other in combinations(latest, 2):
        if _same_deed(one.reply, other.reply) and _alike(one.ask.text, other.ask.text) >= SAME_ASK:
            last, evidence = latest[-1], (one.reply.id, other.reply.id)
            yield Cycle(agent=last.reply.agent, topic=last.ask.text, count=2, evidence=evidence)
            return


def _rounds(turns: Sequence[Turn]) -> list[Round]:
    rounds: list[Round] = []
    ask: Turn | None = None
    for turn in turns:
        if turn.kind == "system":
            rounds, ask = [], None
        elif turn.kind == "agent" and turn.text.strip():
            if any(call.name.startswith(_HANDOFF) for call in turn.tool_calls):
                ask = turn
            elif ask is not None and not turn.tool_calls and turn.agent != ask.agent:
                rounds.append(Round(ask, turn))
                ask = None
    return rounds


def _same_deed(one: Turn, other: Turn) -> bool:
    opening, again = _opening(one.text), _opening(other.text)
    shorter = min(len(opening), len(again))
    return one.agent == other.agent and shorter >= SHORTEST and opening[:shorter] == again[:shorter]


def _opening(text: str) -> str:
    return _BLANKS.sub(" ", text[: 3 * OPENING].lower()).strip()[:OPENING]


def _alike(one: str, other: str) -> float:
    words, others = set(_WORD.findall(one.lower())), set(_WORD.findall(other.lower()))
    return len(words & others) / max(1, len(words | others))
