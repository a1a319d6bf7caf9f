"""Questions that agents asked and nobody answered."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langgraph_scrum_master.model import Question, Turn
from langgraph_scrum_master.observe.asking import asks
from langgraph_scrum_master.text.terms import terms

SHORT_ANSWER = 6
"""A reply of at most so many words right after a question answers it, whatever its words."""


_SETTLES = re.compile(
    r"\b(?:we (?:use|keep|go|have|decided|will)|we'll|go with|it(?:'s| is)|they are|must|should|as (?:agreed|decided)|"
    r"according to|for \d|use the|see (?:the|ADR))\b",
    re.I,
)


def read_questions(turns: Sequence[Turn]) -> tuple[Question, ...]:
    """The open questions, the newest of each asker, oldest first."""
    newest: dict[str, Question] = {}
    for i, turn in enumerate(turns):
        if turn.kind != "agent":
            continue
        # Whatever it asked before, an agent that goes on is no longer waiting for it.
        newest.pop(turn.agent, None)
        text = asks(turn)
        if text and not _answered(turn.agent, text, turns[i + 1 :]):
            newest[turn.agent] = Question(asker=turn.agent, text=text, turn=turn.id)
    return tuple(newest.values())


def _answered(asker: str, question: str, later: Sequence[Turn]) -> bool:
    wanted = set(terms(question))
    replies = [turn for turn in later if turn.agent != asker and turn.kind in ("agent", "human") and turn.text.strip()]
    return any(_answers(turn, wanted, next_up=i == 0) for i, turn in enumerate(replies))


def _answers(turn: Turn, wanted: set[str], *, next_up: bool) -> bool:
    if asks(turn):
        return False
    if wanted.intersection(terms(turn.text)):
        return True
    direct = len(turn.text.split()) <= SHORT_ANSWER or turn.kind == "human" or _SETTLES.search(turn.prose)
    return next_up and bool(direct)
