"""Circles: repeated acts without a new argument or a new outcome."""

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
    """The latest acts of the team, and the repetitions among them."""

    __slots__ = ("_acts", "_hub", "_known", "_same", "_tuning")

    def __init__(self, tuning: DetectionTuning = DEFAULT_DETECTION) -> None:
        self._tuning = tuning
        self._same = {"call": tuning.same_call, "code": tuning.same_code, "statement": tuning.same_statement}
        self._known = {"call": tuning.known_call, "code": tuning.known_code, "statement": tuning.known_statement}
        self._acts: deque[Act] = deque(maxlen=tuning.compared_acts)
        self._hub = ""
        """The hub whose worker speaks next."""

    def add(self, turn: Turn, acts: Sequence[Act]) -> None:
        """Process the next turn with its acts. A human message or a new plan resets the repetitions."""
        if turn.kind == "agent":
            # `Rounds` detects circles of a hub and its workers.
            replies = self._hub not in ("", turn.agent)
            hands_over = bool(turn.tool_calls) and any(map(is_handoff, turn.tool_calls))
            for act in acts:
                if act.kind == "call" or not (replies or hands_over):
                    act.repeats = self._repeated(act)
                    self._acts.append(act)
            self._hub = turn.agent if hands_over else "" if acts and acts[0].kind != "call" else self._hub
        elif turn.kind == "tool":
            self._set_outcome(turn.text)
        else:
            self._acts.clear()

    @property
    def progress(self) -> bool:
        """Whether there is no circle."""
        # A circle ends with a repetition; most steps return here.
        if not any(act.repeats is not None for act in islice(reversed(self._acts), 3)):
            return True
        return not self._circle()

    def cycles(self) -> tuple[Cycle, ...]:
        """The current circle, if there is one."""
        circle = self._circle() if self._acts else []
        if not circle:
            return ()
        return (_cycle(circle, sum(act.repeats is not None for act in self._acts) + 1, self._confidence(circle)),)

    def _confidence(self, circle: Sequence[Act]) -> float:
        more = len(circle) > self._tuning.repetitions
        return self._tuning.more_repetitions_confidence if more else self._tuning.repetition_confidence

    def _circle(self) -> list[Act]:
        latest = list(self._acts)[-self._tuning.repetition_window :]
        # If earlier calls had outcomes, wait for the outcome of this one.
        newest = latest[-1]
        if newest.kind == "call" and newest.outcome is None and newest.repeats and newest.repeats.outcome is not None:
            latest.pop()
        again = [act for act in latest if act.repeats is not None]
        enough = self._tuning.repetitions + all(act.kind == "code" for act in again)
        return again if len(again) >= enough and any(act.repeats is not None for act in latest[-2:]) else []

    def _repeated(self, act: Act) -> Act | None:
        """The first act that this one repeats."""
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
            # A new number is a new name and cheap to check; most reports return here.
            for word in act.all_words - earlier.all_words:
                if word[0].isdigit() and not any(word in each.all_words for each in own):
                    return False
        if act.kind == "call" and _edited(own[own.index(earlier) + 1 :]):
            return False
        if len(act.names.difference(*[each.names for each in own])) > (1 - self._known[act.kind]) * len(act.names):
            return False
        return not act.fills_template_of(earlier, set().union(*(each.all_words for each in own)))

    def _set_outcome(self, text: str) -> None:
        """Set the outcome of the latest act; further tool results are ignored."""
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


def reported_cycles(
    analysis: object, turns: Sequence[Turn], current_agent: str, now: str, seconds: float
) -> Iterator[Cycle]:
    """The cycles in the state's own analysis that are at most `seconds` old."""
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
                agent=_agent_of(agents, turns, current_agent),
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


def _agent_of(agents: Sequence[str], turns: Sequence[Turn], current_agent: str) -> str:
    if not agents or current_agent in agents:
        return current_agent
    return next((turn.agent for turn in reversed(turns) if turn.agent in agents), agents[-1])


def _edited(between: Sequence[Act]) -> bool:
    """Whether something was changed in between: a repetition then acts on something else."""
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
    # Identical statements already have the same need.
    return (
        "" if newest.all_words == first.all_words and newest.kind == "statement" else f"repetition of {first.turn.id}"
    )


def topic_of(turns: Sequence[Turn]) -> str:
    """The topic mark that all turns share."""
    topics = {text_of(turn.marks.get("topic")) for turn in turns}
    return topics.pop() if len(topics) == 1 else ""
