"""Builds search queries from a gap and the conversation around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from langgraph_scrum_master.model import ContextGap, Gate, Observation, Query, Turn
from langgraph_scrum_master.text.domains import domain_of
from langgraph_scrum_master.text.terms import terms

_LONGEST_FAILURE = 1_000
"""Maximum characters of a gate failure in a query."""

_MOST_NEEDS = 3
"""Maximum number of separately searched needs of one turn."""

ITS_TURN, BEFORE, FADING, AFTER, TASK = 0.9, 0.9, 0.9, 0.5, 0.9
"""Weights of the texts around a need, relative to the need itself: the rest of its turn; the turn before; the decay per
turn further back; later turns; and the task. On scenarios of four projects, values between 0.7 and 1 ranked the right
record first about equally often; without the surrounding texts it was half as often.
"""

MOST_BEFORE, MOST_AFTER = 12, 6
"""Maximum number of turns before and after the need."""

_LONGEST = 1_500
"""Maximum characters per turn."""


def build_queries(gap: ContextGap, observation: Observation, written: str = "") -> tuple[Query, ...]:
    """One query per need, in the agent's words, with the surrounding texts.

    If a chat model has `written` a self-contained query, that is the only one.
    """
    parts = [written] if written else [part for part in gap.parts if terms(part)][:_MOST_NEEDS] or [gap.context_query]
    texts = (part if terms(part) else f"{part} {observation.task}".strip() for part in parts)
    around = () if written else tuple(_around(gap, observation))
    queries = tuple(Query(text=text, agent=gap.agent, now=observation.now, around=around) for text in texts if text)
    gate = next((gate for gate in observation.gates if gate.indicator in gap.indicators), None)
    return (_with_failure(gate, queries[0], observation.task), *queries[1:]) if gate and queries else queries


def _around(gap: ContextGap, observation: Observation) -> Iterator[tuple[str, float]]:
    turns, at = observation.turns, _place(gap, observation.turns)
    names = _names_pattern(turn.agent for turn in turns)
    for i in range(at, max(-1, at - MOST_BEFORE - 1), -1):
        weight = ITS_TURN if i == at else BEFORE * FADING ** (at - i - 1)
        yield names.sub(" ", turns[i].text[:_LONGEST]), weight
    for turn in turns[at + 1 : at + 1 + MOST_AFTER]:
        yield names.sub(" ", turn.text[:_LONGEST]), AFTER
    if observation.task:
        yield names.sub(" ", observation.task[:_LONGEST]), TASK


def _place(gap: ContextGap, turns: Sequence[Turn]) -> int:
    """Index of the turn with the need: the one of its span, else the agent's last turn, else the last turn."""
    shown = {span.message for span in gap.spans}
    for wanted in (lambda turn: turn.id in shown, lambda turn: turn.agent == gap.agent):
        for i in range(len(turns) - 1, -1, -1):
            if wanted(turns[i]):
                return i
    return len(turns) - 1


def _names_pattern(agents: Iterator[str]) -> re.Pattern[str]:
    """Matches speaker names, which say nothing about the topic of a need."""
    names = sorted({agent for agent in agents if agent}, key=lambda name: (-len(name), name))
    return re.compile("|".join(rf"(?<!\w)@?{re.escape(name)}(?!\w)" for name in names) or r"(?!)", re.I)


def _with_failure(gate: Gate, query: Query, task: str) -> Query:
    """The query with the gate's failure, to find similar failures of the past."""
    failure = "\n".join(part for part in (gate.name, gate.reason, task) if part)
    return replace(query, domain=domain_of(gate.name, gate.reason), failure=failure[:_LONGEST_FAILURE])
