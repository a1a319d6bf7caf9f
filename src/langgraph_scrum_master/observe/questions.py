"""Questions that agents asked and nobody answered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from langgraph_scrum_master.model import Question, Turn
from langgraph_scrum_master.observe.asking import asks
from langgraph_scrum_master.observe.handoffs import called
from langgraph_scrum_master.text.prose import prose
from langgraph_scrum_master.text.terms import terms

SHORT_ANSWER = 6
"""A reply of at most so many words right after a question answers it, whatever its words."""


_NO_ANSWER = re.compile(
    r"\b(?:(?:don't|do not) know|no (?:idea|clue)|not sure|let me (?:check|ask|see)|will (?:check|look into|find out|get back)|"
    r"get back to you|should know|good (?:question|point)|(?:please|better) ask|ask (?:the|our|your) \w+|"
    r"no decision (?:on|about|yet|has)|not (?:been )?decided)\b|^\W*ok(?:ay)?\W*$",
    re.I,
)
_ITEM = re.compile(r"^\s*(?:\d+[.):]|[-*•])\s+\S", re.M)
_SPACES = re.compile(r"\s+")
_LOOKED_AT = 12_000
_CALLED = re.compile(r"\s*(?:@([\w\-]+)[,:]?|(?:(?:hi|hey|hello|dear) )?([\w\-]+)[,:])\s+", re.I)
_SETTLES = re.compile(
    r"\b(?:we (?:use|keep|go|have|decided|will)|we'll|go with|it(?:'s| is)|they are|must|should|as (?:agreed|decided)|"
    r"according to|for \d|use the|see (?:the|ADR))\b",
    re.I,
)


class OpenQuestions:
    """What each asker asked for in its newest turn and was not told yet, oldest first."""

    __slots__ = ("_open", "_present")

    def __init__(self) -> None:
        self._open: dict[str, list[_Asked]] = {}
        self._present: dict[str, int] = {}
        """How many turns in the window each agent has."""

    def add(self, turn: Turn) -> None:
        """Take in the next turn: it may answer, it may ask, and whoever goes on is no longer waiting."""
        if turn.kind not in ("agent", "human"):
            return
        if turn.kind == "agent":
            self._open.pop(turn.agent, None)
        needs = asks(turn)
        if self._open and turn.text.strip():
            self._hear(turn, _Heard.of(turn, needs))
        if turn.kind == "agent":
            self._present[turn.agent] = self._present.get(turn.agent, 0) + 1
        if needs:
            self._open[turn.agent] = [self._asked(turn, need) for need in needs]

    def forget(self, turn: Turn) -> None:
        """Let go of what was asked in a turn that is out of the window."""
        if turn.kind == "agent":
            self._present[turn.agent] -= 1
            if not self._present[turn.agent]:
                del self._present[turn.agent]
        asked = self._open.get(turn.agent)
        if asked and asked[0].question.turn == turn.id:
            del self._open[turn.agent]

    def open(self) -> tuple[Question, ...]:
        """The questions that nobody has answered."""
        return tuple(asked.question for several in self._open.values() for asked in several)

    def _asked(self, turn: Turn, need: str) -> _Asked:
        addressee, text = self._addressed(turn, need)
        question = Question(asker=turn.agent, text=text, turn=turn.id, addressee=addressee, since=turn.time)
        return _Asked(question, frozenset(terms(text)))

    def _addressed(self, turn: Turn, need: str) -> tuple[str, str]:
        """Whom the need is put to, and the need without the call."""
        handed_to = next((handoff.target for handoff in called(turn)), "") if turn.tool_calls else ""
        if (call := _CALLED.match(need)) and (name := self._known_as(call[1] or call[2], handed_to, bool(call[1]))):
            return name, need[call.end() :] or need
        return handed_to, need

    def _known_as(self, name: str, handed_to: str, surely: bool) -> str:
        known = (agent for agent in (handed_to, *self._present) if agent.lower() == name.lower())
        return next(known, name.lower() if surely else "")

    def _hear(self, turn: Turn, heard: _Heard) -> None:
        for asker, several in list(self._open.items()):
            if asker == turn.agent:
                continue
            if (left := heard.leaves(several, turn)) != several:
                self._open[asker] = left
                if not left:
                    del self._open[asker]
            for asked in several:
                asked.replies += 1


class _Heard(NamedTuple):
    """What a turn says, looked at once for all that ask."""

    text: str
    terms: frozenset[str]
    items: int
    """Items of a list in it."""
    direct: bool
    """Whether it answers a question that stands right before it, whatever its words."""
    tells: bool
    """Whether it tells anything, and does not only speak of it."""

    @classmethod
    def of(cls, turn: Turn, needs: tuple[str, ...]) -> _Heard:
        """What of the turn is no question."""
        text = _SPACES.sub(" ", prose(turn.text)) if needs else prose(turn.text)
        for need in needs:
            text = text.replace(need, " ")
        words = len(text.split())
        direct = not needs and (words <= SHORT_ANSWER or turn.kind == "human" or bool(_SETTLES.search(text)))
        return cls(
            text=text,
            terms=frozenset(terms(text)),
            items=len(_ITEM.findall(turn.text[:_LOOKED_AT])),
            direct=direct,
            tells=words > 0 and not _NO_ANSWER.search(text),
        )

    def leaves(self, several: list[_Asked], turn: Turn) -> list[_Asked]:
        """What of this is still open: it answers what it speaks of, or else, said directly, all of it."""
        if not self.tells or (len(several) > 1 and self.items >= len(several)):
            return [] if self.tells else several
        left = [asked for asked in several if asked.wanted.isdisjoint(self.terms)]
        if len(left) < len(several):
            return left
        return [asked for asked in several if not (asked.is_put_to(turn.agent) or (asked.replies == 0 and self.direct))]


@dataclass(slots=True)
class _Asked:
    question: Question
    wanted: frozenset[str]
    replies: int = 0

    def is_put_to(self, agent: str) -> bool:
        """Whether this agent was asked, by a call or a handoff, or was named while nobody has spoken since."""
        if agent.lower() == self.question.addressee.lower():
            return True
        return self.replies == 0 and bool(re.search(rf"\b{re.escape(agent)}\b", self.question.text, re.I))
