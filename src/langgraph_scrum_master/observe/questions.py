"""Questions that agents asked and nobody answered."""

from __future__ import annotations

import re
from dataclasses import dataclass

from langgraph_scrum_master.model import Question, Turn
from langgraph_scrum_master.observe.asking import asks
from langgraph_scrum_master.text.prose import prose
from langgraph_scrum_master.text.terms import terms

SHORT_ANSWER = 6
"""A reply of at most so many words right after a question answers it, whatever its words."""


_NO_ANSWER = re.compile(
    r"\b(?:(?:don't|do not) know|no idea|not sure|let me (?:check|ask|see)|will (?:check|look into|find out))\b"
    r"|^ok(?:ay)?\W*$",
    re.I,
)
_SETTLES = re.compile(
    r"\b(?:we (?:use|keep|go|have|decided|will)|we'll|go with|it(?:'s| is)|they are|must|should|as (?:agreed|decided)|"
    r"according to|for \d|use the|see (?:the|ADR))\b",
    re.I,
)


class OpenQuestions:
    """The newest open question of each asker, oldest first."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[str, _Asked] = {}

    def add(self, turn: Turn) -> None:
        """Take in the next turn: it may answer, it may ask, and whoever goes on is no longer waiting."""
        if turn.kind not in ("agent", "human"):
            return
        if turn.kind == "agent":
            self._open.pop(turn.agent, None)
        text = asks(turn)
        if self._open and turn.text.strip():
            self._hear(turn, asks_back=bool(text))
        if text:
            question = Question(asker=turn.agent, text=text, turn=turn.id)
            self._open[turn.agent] = _Asked(question, frozenset(terms(text)))

    def forget(self, turn: Turn) -> None:
        """Let go of what was asked in a turn that is out of the window."""
        asked = self._open.get(turn.agent)
        if asked is not None and asked.question.turn == turn.id:
            del self._open[turn.agent]

    def open(self) -> tuple[Question, ...]:
        """The questions that nobody has answered."""
        return tuple(asked.question for asked in self._open.values())

    def _hear(self, turn: Turn, *, asks_back: bool) -> None:
        for asker, asked in list(self._open.items()):
            if asker == turn.agent:
                continue
            if not asks_back and asked.answered_by(turn):
                del self._open[asker]
            asked.replies += 1


@dataclass(slots=True)
class _Asked:
    question: Question
    wanted: frozenset[str]
    replies: int = 0

    def answered_by(self, turn: Turn) -> bool:
        """Whether the turn speaks of what was asked, or answers directly."""
        if _NO_ANSWER.search(turn.text):
            return False
        addressed = self.replies == 0 and turn.agent.lower() in self.question.text.lower()
        if addressed or self.wanted.intersection(terms(turn.text)):
            return True
        direct = len(turn.text.split()) <= SHORT_ANSWER or turn.kind == "human" or _SETTLES.search(prose(turn.text))
        return self.replies == 0 and bool(direct)
