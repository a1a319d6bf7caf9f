"""Questions that agents asked and nobody answered."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from langgraph_scrum_master.model import Question, Turn
from langgraph_scrum_master.observe.asking import asks
from langgraph_scrum_master.observe.handoffs import called
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

    __slots__ = ("by_asker",)

    def __init__(self) -> None:
        self.by_asker: dict[str, list[_Asked]] = {}

    def add(self, turn: Turn, earlier: Collection[Turn] = ()) -> None:
        """Take in the next turn: it may answer, it may ask, and whoever goes on is no longer waiting."""
        if turn.kind not in ("agent", "human"):
            return
        if turn.kind == "agent":
            self.by_asker.pop(turn.agent, None)
        needs = asks(turn)
        if self.by_asker and turn.text.strip():
            self._hear(turn, _Heard.of(turn, needs))
        if needs:
            present = dict.fromkeys(earlier_turn.agent for earlier_turn in earlier if earlier_turn.kind == "agent")
            self.by_asker[turn.agent] = [_asked(turn, need, present) for need in needs]

    def forget(self, turn: Turn) -> None:
        """Let go of what was asked in a turn that is out of the window."""
        asked = self.by_asker.get(turn.agent)
        if asked and asked[0].question.turn == turn.id:
            del self.by_asker[turn.agent]

    def open(self) -> tuple[Question, ...]:
        """The questions that nobody has answered."""
        return tuple([asked.question for several in self.by_asker.values() for asked in several])

    def _hear(self, turn: Turn, heard: _Heard) -> None:
        for asker, several in list(self.by_asker.items()):
            if asker == turn.agent:
                continue
            if (left := heard.leaves(several, turn)) != several:
                self.by_asker[asker] = left
                if not left:
                    del self.by_asker[asker]
            for asked in several:
                asked.replies += 1


def _asked(turn: Turn, need: str, present: Collection[str]) -> _Asked:
    addressee, text = _addressed(turn, need, present)
    question = Question(asker=turn.agent, text=text, turn=turn.id, addressee=addressee, since=turn.time)
    return _Asked(question, frozenset(terms(text)))


def _addressed(turn: Turn, need: str, present: Collection[str]) -> tuple[str, str]:
    """Whom the need is put to, and the need without the call."""
    handed_to = next((handoff.target for handoff in called(turn)), "") if turn.tool_calls else ""
    if call := _CALLED.match(need):
        name = (call[1] or call[2]).lower()
        known = (agent for agent in (handed_to, *present) if agent.lower() == name)
        if addressee := next(known, name if call[1] else ""):
            return addressee, need[call.end() :] or need
    return handed_to, need


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
        text = _SPACES.sub(" ", turn.prose) if needs else turn.prose
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
