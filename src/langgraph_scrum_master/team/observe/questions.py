"""Tracks open questions of agents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master.model import Addressee, Question, Turn
from langgraph_scrum_master.team.observe.asking import Ask, asks, shipped_model
from langgraph_scrum_master.team.observe.asking.cues import cues
from langgraph_scrum_master.team.observe.handoffs import handoffs_in, hands_back, is_handoff
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning
from langgraph_scrum_master.text.terms import terms

if TYPE_CHECKING:
    from langgraph_scrum_master.team.observe.asking.model import AskingModel
    from langgraph_scrum_master.team.observe.asking.replies import Speaker

FACTS = frozenset(("WH", "WHETHER", "UNSURE", "LACK", "STUCK"))
"""Without one of these concepts, a turn with a handoff requests work, not a fact."""

_MOST = 6
"""Maximum number of open questions per asker; the latest count."""

_LONGEST = 4_000
"""Characters of a reply that are read."""

_ITEM = lazy_pattern(r"^[^\S\n]*(?:\d+[.):]|[-*•])\s+\S", re.M)
_ADDRESS = lazy_pattern(r"\s*(?:@([\w\-]+)[,:]?|(?:(?:hi|hey|hello|dear) )?([\w\-]+)[,:])\s+", re.I)
_ASK_ELSEWHERE = lazy_pattern(
    r"\b(?:ask (?!for\b)\w+|let me (?:check|ask|see)|will (?:check|look into|find out|get back)|get back to you"
    r"|not my (?:area|part|topic)|before my time|joined (?:later|after)|good question|no one"
    r"|nobody)\b",
    re.I,
)
_YES_OR_NO = lazy_pattern(
    r"\b(?:yes|no|yep|nope|yeah|both|neither|ja|nein|oui|non|sí|si|sim|não|да|нет|हाँ|नहीं)\b|是|不|はい|いいえ|네|아니",
    re.I,
)
_DECIDES = lazy_pattern(
    r"\b(?:we (?:use|keep|go|have|decided|will|do)|we'll|go with|it(?:'s| is)|they are|as (?:agreed|decided)"
    r"|according to|use the|see (?:the|ADR)|ADR-\d+)\b",
    re.I,
)
_SECOND_PERSON = lazy_pattern(
    r"\b(?:you|your|yours|sie|ihr|ihre[rnm]?|ihnen|du|dein\w*|vous|votre|vos|tu|ton|tes|usted|su|sus|tus?|você|seu|sua|lei|suo"
    r"|вы|вас|вам|ваш\w*|आप\w*|aap\w*)\b|[您你]|お客様|ご|고객님|님|시",
    re.I,
)


class OpenQuestions:
    """The open questions of each asker, oldest first."""

    __slots__ = ("_count", "_doubtful", "_model", "_tuning", "by_asker")

    def __init__(
        self,
        model: AskingModel | None = None,
        doubtful: bool = False,
        tuning: DetectionTuning = DEFAULT_DETECTION,
    ) -> None:
        self._tuning = tuning
        self._model = model
        self._doubtful = doubtful
        self._count = 0
        self.by_asker: dict[str, list[_Open]] = {}

    @property
    def pending(self) -> bool:
        """Whether a question is open; doubtful ones count only with `doubtful`."""
        if not self.by_asker:
            return False
        return any(entry.sure or self._doubtful for several in self.by_asker.values() for entry in several)

    def add(self, turn: Turn, earlier: Collection[Turn] = ()) -> None:
        """Process the next turn: it may answer questions and ask new ones."""
        self._count += 1
        if self.by_asker:
            self._drop_stale()
        if turn.kind == "system":
            return
        needs = asks(turn, self._model) if turn.kind == "agent" else ()
        if needs and any(is_handoff(call) and not hands_back(call) for call in turn.tool_calls):
            needs = tuple(need for need in needs if not FACTS.isdisjoint(cue.concept for cue in cues(need.text)))
        if self.by_asker and turn.text.strip():
            if needs and self.by_asker.keys() - {turn.agent} and does_not_know(turn.text):
                # "I don't know" in reply to a question is not a need of its own.
                needs = tuple(need for need in needs if "?" in need.text or "？" in need.text)
            self._process_reply(turn, needs, earlier)
        if needs:
            self._ask(turn, needs, earlier)

    def _drop_stale(self) -> None:
        oldest = self._count - self._tuning.stale_turns
        for asker, several in list(self.by_asker.items()):
            if several[0].at <= oldest:
                self._replace(asker, (entry for entry in several if entry.at > oldest))

    def confirm_handed_back(self, agent: str) -> None:
        """Confirm the questions of an agent that handed its work back."""
        for entry in self.by_asker.get(agent, ()):
            entry.confirm("handed back")

    def forget(self, turn: Turn) -> None:
        """Drop the questions of a turn that left the window."""
        self._replace(
            turn.agent, (entry for entry in self.by_asker.get(turn.agent, ()) if entry.question.turn != turn.id)
        )

    def open(self) -> tuple[Question, ...]:
        """The open questions; unconfirmed doubtful ones only with `doubtful`."""
        return tuple(
            [entry.question for several in self.by_asker.values() for entry in several if entry.sure or self._doubtful]
        )

    def _ask(self, turn: Turn, needs: tuple[Ask, ...], earlier: Collection[Turn]) -> None:
        upper = (self._model or shipped_model()).upper
        others = [each for each in earlier if each.agent != turn.agent]
        present = dict.fromkeys(each.agent for each in others if each.kind == "agent")
        new_questions = [replace(_open(turn, need, present, others, upper), at=self._count) for need in needs]
        before = self.by_asker.get(turn.agent, [])
        for new in new_questions:
            if any(not new.wanted.isdisjoint(old.wanted) for old in before):
                new.confirm("asked again")
        remaining = [old for old in before if all(old.wanted.isdisjoint(new.wanted) for new in new_questions)]
        self.by_asker[turn.agent] = [*remaining, *new_questions][-_MOST:]

    def _process_reply(self, turn: Turn, needs: tuple[Ask, ...], earlier: Collection[Turn]) -> None:
        speaker = _last_agent(earlier) if turn.kind == "tool" else turn.agent
        for asker, several in list(self.by_asker.items()):
            if turn.kind == "tool" and asker != speaker:
                continue
            by: Speaker = "tool" if turn.kind == "tool" else "self" if asker == turn.agent else "other"
            # An asker that asks again has no answer yet.
            if by == "self" and needs:
                continue
            self._replace(asker, _left(several, turn, by, needs, self._tuning))

    def _replace(self, asker: str, left: Iterable[_Open]) -> None:
        if remaining := list(left):
            self.by_asker[asker] = remaining
        else:
            self.by_asker.pop(asker, None)


@dataclass(slots=True)
class _Open:
    question: Question
    wanted: frozenset[str]
    sure: bool
    at: int = 0
    """The number of its turn."""
    replies: int = 0
    own_turns: int = 0
    unsettled: float = 1.0
    """The probability that no turn has settled it so far."""

    def settled_by(self, probability: float, tuning: DetectionTuning) -> bool:
        """Account for a turn that settles the question with this probability; return whether it is settled now."""
        if probability < tuning.unrelated_below:
            return False
        self.unsettled *= 1 - probability
        return self.unsettled <= 1 - tuning.settled_from

    def confirm(self, by: str) -> None:
        """Record evidence that the question is real and open."""
        if not self.sure:
            self.sure = True
            self.question = replace(self.question, evidence=f"{self.question.evidence}, {by}", confirmed=True)


def _left(
    several: list[_Open], turn: Turn, by: Speaker, needs: tuple[Ask, ...], tuning: DetectionTuning
) -> list[_Open]:
    """The questions that are still open after the turn."""
    reply = _statement(turn, needs)
    if not reply:
        return several
    likely = [_probability(entry, reply, by, tuning) for entry in several]
    if by == "other" and 1 < len(several) <= len(_ITEM.findall(turn.text[:_LONGEST])):
        # The reply is a list with one item per question.
        likely = [max(p, tuning.answers) for p in likely]
    trust = {"other": tuning.trust_other, "self": tuning.trust_self, "tool": tuning.trust_tool}[by]
    left = [entry for entry, p in zip(several, likely, strict=True) if not entry.settled_by(trust * p, tuning)]
    if by != "tool" and len(several) > 1 and len(left) < len(several):
        left = _not_mentioned(several, left, turn.text, reply)
    for entry, p in zip(several, likely, strict=True):
        if by == "self":
            entry.own_turns += 1
        elif by == "other":
            entry.replies += 1
            if p < tuning.no_answer_below and does_not_know(reply):
                entry.confirm(f"{turn.agent} does not know")
            elif entry.replies >= tuning.unanswered_turns and not entry.own_turns:
                entry.confirm("nobody answered")
    return [entry for entry in left if entry.own_turns < tuning.given_up_turns]


def _not_mentioned(several: list[_Open], left: list[_Open], text: str, reply: str) -> list[_Open]:
    """Questions that the answer does not mention; a list with one item per question answers them all."""
    if len(_ITEM.findall(text[:_LONGEST])) >= len(several):
        return left
    mentioned = frozenset(terms(reply))
    unmentioned = [entry for entry in several if entry.wanted.isdisjoint(mentioned)]
    if len(unmentioned) == len(several):
        return left
    for entry in unmentioned:
        entry.unsettled = 1.0
    return unmentioned


def does_not_know(reply: str) -> bool:
    """Whether the speaker of a reply does not know either, or refers to someone else."""
    concepts = {cue.concept for cue in cues(reply[:_LONGEST])}
    return "UNSURE" in concepts or {"NEG", "KNOW"} <= concepts or bool(_ASK_ELSEWHERE.search(reply))


def _statement(turn: Turn, needs: tuple[Ask, ...]) -> str:
    """The turn's text without its questions."""
    text = turn.text[:_LONGEST]
    for need in sorted(needs, key=lambda need: -need.start):
        text = f"{text[: need.start]} {text[need.end :]}"
    return text.strip()


def _probability(entry: _Open, reply: str, by: Speaker, tuning: DetectionTuning) -> float:
    """The probability that the reply settles the question: the model's, limited by rules."""
    from langgraph_scrum_master.team.observe.asking.replies import settles

    likely = settles(entry.question.text, reply, by)
    if by != "other":
        return likely
    words = frozenset(terms(reply))
    if not words and not _YES_OR_NO.search(reply):
        return 0.0
    if does_not_know(reply):
        return min(likely, tuning.does_not_know)
    share = tuning.speaks_of * max(1, len(entry.wanted))
    speaks_of_it = len(words & entry.wanted) >= share and bool(words - entry.wanted)
    decides = entry.replies == 0 and bool(_DECIDES.search(reply))
    return max(likely, tuning.answers) if (speaks_of_it or decides) and not reply.endswith(("?", "？")) else likely


def _open(turn: Turn, need: Ask, present: Collection[str], others: list[Turn], upper: float) -> _Open:
    addressee, text = _addressee(turn, need.text, present)
    question = Question(
        asker=turn.agent,
        text=text,
        turn=turn.id,
        addressee=addressee,
        since=turn.time,
        whom=_whom(turn, need, addressee, others),
        start=need.start,
        end=need.end,
        probability=need.probability,
        evidence=need.evidence,
        confirmed=need.probability >= upper,
        doubtful=need.probability < upper,
    )
    opened = _Open(question, frozenset(terms(text)), need.probability >= upper)
    if any(map(hands_back, turn.tool_calls)):
        opened.confirm("handed back")
    return opened


def _addressee(turn: Turn, need: str, present: Collection[str]) -> tuple[str, str]:
    """The addressee of the need, and the need without the address."""
    handed_to = next((handoff.target for handoff in handoffs_in(turn)), "") if turn.tool_calls else ""
    if call := _ADDRESS.match(need):
        name = (call[1] or call[2]).lower()
        known = (agent for agent in (handed_to, *present) if agent.lower() == name)
        if addressee := next(known, name if call[1] else ""):
            return addressee, need[call.end() :] or need
    return handed_to, need


def _whom(turn: Turn, need: Ask, addressee: str, others: list[Turn]) -> Addressee:
    """Who the need is for: the user, if the user spoke last and is addressed."""
    if need.of_user:
        return "user"
    spoken_to = bool(_SECOND_PERSON.search(turn.text[need.start : need.end] or need.text))
    last = next((each.kind for each in reversed(others) if each.kind in ("human", "agent")), "human")
    if last == "human" and spoken_to and not addressee:
        return "user"
    return "team" if addressee or spoken_to or "?" in need.text or "？" in need.text else "nobody"


def _last_agent(earlier: Collection[Turn]) -> str:
    return next((turn.agent for turn in reversed(list(earlier)) if turn.kind == "agent"), "")
