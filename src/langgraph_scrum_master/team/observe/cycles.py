"""Circles: the same act again and again, without a new argument and without a new outcome."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from langgraph_scrum_master._internal.shapes import items_of, read, text_of, truthy
from langgraph_scrum_master.model import Cycle, Turn, instant
from langgraph_scrum_master.team.observe.acts import Act, ActOutcome, is_failure
from langgraph_scrum_master.team.observe.handoffs import is_handoff
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning


class Repetitions:
    """The latest acts of the team, and which of them repeat earlier ones."""

    __slots__ = ("_acts", "_handed_over", "_known", "_same", "_tuning")

    def __init__(self, tuning: DetectionTuning = DEFAULT_DETECTION) -> None:
        self._tuning = tuning
        self._same = {"call": tuning.same_call, "code": tuning.same_code, "statement": tuning.same_statement}
        self._known = {"call": tuning.known_call, "code": tuning.known_code, "statement": tuning.known_statement}
        self._acts: deque[Act] = deque(maxlen=tuning.compared_acts)
        self._handed_over = ""
        """The hub whose worker speaks next."""

    def add(self, turn: Turn, acts: Sequence[Act]) -> None:
        """Take in the next turn with its acts. A person's word or a new plan starts afresh."""
        if turn.kind == "agent":
            # Whether a hub that hands out work, and the worker that replies, go in circles, their rounds show.
            replies = self._handed_over not in ("", turn.agent)
            hands_over = bool(turn.tool_calls) and any(map(is_handoff, turn.tool_calls))
            for act in acts:
                if act.kind == "call" or not (replies or hands_over):
                    act.repeats = self._repeated(act)
                    self._acts.append(act)
            self._handed_over = (
                turn.agent if hands_over else "" if acts and acts[0].kind != "call" else self._handed_over
            )
        elif turn.kind == "tool":
            self._ends(turn.text)
        else:
            self._acts.clear()

    @property
    def progress(self) -> bool:
        """Whether the team does not go in circles."""
        # A circle ends in a repetition: most steps are done with here.
        if not any(act.repeats is not None for act in islice(reversed(self._acts), 3)):
            return True
        return not self._circle()

    def cycles(self) -> tuple[Cycle, ...]:
        """The circle that the team is in, if it is in one."""
        circle = self._circle() if self._acts else []
        if not circle:
            return ()
        return (_cycle(circle, sum(act.repeats is not None for act in self._acts) + 1, self._confidence(circle)),)

    def _confidence(self, circle: Sequence[Act]) -> float:
        more = len(circle) > self._tuning.repetitions
        return self._tuning.more_repetitions_confidence if more else self._tuning.repetition_confidence

    def _circle(self) -> list[Act]:
        latest = list(self._acts)[-self._tuning.repetition_window :]
        # A call whose predecessors had outcomes is judged by its own.
        newest = latest[-1]
        if newest.kind == "call" and newest.outcome is None and newest.repeats and newest.repeats.outcome is not None:
            latest.pop()
        again = [act for act in latest if act.repeats is not None]
        enough = self._tuning.repetitions + all(act.kind == "code" for act in again)
        return again if len(again) >= enough and any(act.repeats is not None for act in latest[-2:]) else []

    def _repeated(self, act: Act) -> Act | None:
        """The first of the acts that this one repeats."""
        agent, kind, words = act.turn.agent, act.kind, act.words
        least, size = self._same[kind], len(words)
        for earlier in reversed(self._acts):
            if earlier.kind == kind and earlier.turn.agent == agent:
                common = len(words & earlier.words)
                if common and common >= least * max(size, len(earlier.words)):
                    return (earlier.repeats or earlier) if self._is_old(act, earlier) else None
        return None

    def _is_old(self, act: Act, earlier: Act) -> bool:
        """Whether the act has no new argument."""
        agent = act.turn.agent
        own = [each for each in self._acts if each.turn.agent == agent and each.kind == act.kind]
        if act.kind == "statement":
            # A new number is a new name, and found without looking for names: most reports are done with here.
            for word in act.said - earlier.said:
                if word[0].isdigit() and not any(word in each.said for each in own):
                    return False
        if act.kind == "call" and _edited(own[own.index(earlier) + 1 :]):
            return False
        if len(act.names.difference(*[each.names for each in own])) > (1 - self._known[act.kind]) * len(act.names):
            return False
        return not act.fills_template_of(earlier, set().union(*(each.said for each in own)))

    def _ends(self, text: str) -> None:
        """Take in what a tool answered to the latest act; what it answers beyond that belongs to nobody."""
        if not self._acts or (act := self._acts[-1]).outcome is not None:
            return
        act.outcome = outcome = ActOutcome(text)
        earlier = [each for each in self._acts if each is not act and each.outcome is not None]
        failure = is_failure(text)
        if act.repeats is not None:
            known: set[str] = set().union(*(each.outcome.words for each in earlier if each.outcome))
            if len(outcome.words - known) > self._tuning.news * len(outcome.words) and not (
                failure and act.repeats.failed
            ):
                act.repeats = None
        elif (failure or len(text) >= self._tuning.long_outcome) and not act.edits:
            share = self._tuning.same_outcome
            alike = (each for each in reversed(earlier) if not each.edits and _same(outcome, each.outcome, share))
            same = next(alike, None)
            if same is not None and not _edited(list(self._acts)[list(self._acts).index(same) + 1 :]):
                act.repeats = same.repeats or same


def analysed(analysis: object, turns: Sequence[Turn], current_agent: str, now: str, seconds: float) -> Iterator[Cycle]:
    """The cycles that the state's own analysis names, unless they are further back than so many seconds."""
    if not truthy(read(analysis, "circular_detected")):
        return
    patterns = items_of(read(analysis, "patterns_found"))
    analysed_at = text_of(read(analysis, "analyzed_at"))
    for pattern in patterns:
        agents = tuple(text_of(agent) for agent in items_of(read(pattern, "agents_involved")))
        count = read(pattern, "exchange_count", 0)
        first, last = text_of(read(pattern, "first_exchange_at")), text_of(read(pattern, "last_exchange_at"))
        if not _expired(last or analysed_at, turns, now, seconds):
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
    if not patterns and not _expired(analysed_at, turns, now, seconds):
        yield Cycle(agent=current_agent, topic="", count=0, evidence=("cycle_analysis",), kind="reported")


def _expired(last: str, turns: Sequence[Turn], now: str, seconds: float) -> bool:
    if not last:
        return False
    times = [turn.time for turn in turns if turn.time is not None]
    return (max(times) if times else instant(now)) - instant(last) > seconds


def _time(stamp: str) -> float | None:
    seconds = instant(stamp)
    return seconds if seconds > float("-inf") else None


def _whose(agents: Sequence[str], turns: Sequence[Turn], current_agent: str) -> str:
    if not agents or current_agent in agents:
        return current_agent
    return next((turn.agent for turn in reversed(turns) if turn.agent in agents), agents[-1])


def _edited(between: Sequence[Act]) -> bool:
    """Whether something was changed meanwhile: what is done again is then done to something else."""
    return any(act.edits and act.repeats is None for act in between)


def _same(outcome: ActOutcome, earlier: ActOutcome | None, share: float) -> bool:
    if earlier is None:
        return False
    if outcome.text == earlier.text:
        return True
    either = len(outcome.words | earlier.words)
    return len(outcome.words & earlier.words) >= share * either > 0 and outcome.names <= earlier.names


def _cycle(again: Sequence[Act], count: int, confidence: float) -> Cycle:
    newest, first = again[-1], again[-1].repeats or again[-1]
    turns = [act.turn for act in again]
    agents = tuple(dict.fromkeys(turn.agent for turn in turns))
    times = [turn.time for turn in (first.turn, *turns) if turn.time is not None]
    return Cycle(
        agent=newest.turn.agent,
        topic=topic_of(turns) or newest.turn.text.strip() or newest.text,
        count=count,
        evidence=tuple(dict.fromkeys(turn.id for turn in (first.turn, *turns))),
        kind="repeated_turn" if newest.kind == "statement" else "repeated_call",
        agents=agents,
        about=_about(agents, newest, first),
        first=min(times, default=None),
        last=max(times, default=None),
        confidence=confidence,
    )


def _about(agents: Sequence[str], newest: Act, first: Act) -> str:
    if len(agents) > 1:
        return f"circle of {' '.join(sorted(agents))}"
    # Who says the very same has the same need as by its words.
    return "" if newest.said == first.said and newest.kind == "statement" else f"repetition of {first.turn.id}"


def topic_of(turns: Sequence[Turn]) -> str:
    """The topic that all the turns are marked with."""
    topics = {text_of(turn.marks.get("topic")) for turn in turns}
    return topics.pop() if len(topics) == 1 else ""
