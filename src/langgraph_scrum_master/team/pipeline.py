"""The stages in order: observe, detect, query, retrieve, rank, fit, render, inject, record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from langgraph_scrum_master._internal import telemetry
from langgraph_scrum_master._internal.admission import ADMISSION, OverloadedError
from langgraph_scrum_master._internal.breakers import Breakers
from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.logs import Redact, cleaned, logger, redacting
from langgraph_scrum_master._internal.shapes import mapping_of, unwrapped
from langgraph_scrum_master._internal.threads import within
from langgraph_scrum_master.config import InjectionConfig
from langgraph_scrum_master.model import (
    ContextGap,
    Dropped,
    InjectionRecord,
    InjectionResult,
    Observation,
    Query,
    RetrievedContext,
    SMOutput,
    SourceFailure,
    Turn,
    instant,
)
from langgraph_scrum_master.protocols import Clock, Detector, MemoryStore, Recorder, Source, State, TokenCounter
from langgraph_scrum_master.team.delivery import state_update, target_for
from langgraph_scrum_master.team.detect import detect, tuned_detectors
from langgraph_scrum_master.team.history import has_injections, injected_keys, unsettled_gaps
from langgraph_scrum_master.team.observe import Watcher, cycle_analysis, glance, has_team_keys, health_status, observe
from langgraph_scrum_master.team.observe.asking import asks
from langgraph_scrum_master.team.record.facts import count_result, facts, log, outcome, record_outcome, record_result
from langgraph_scrum_master.team.record.redaction import redacted, redacted_snapshot
from langgraph_scrum_master.team.record.snapshots import SnapshotRecorder, taken
from langgraph_scrum_master.team.state import FIGURES_KEY, records
from langgraph_scrum_master.team.tuning import DetectionTuning
from langgraph_scrum_master.text.prose import sentences
from langgraph_scrum_master.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from langgraph_scrum_master.retrieval.dedupe import Split
    from langgraph_scrum_master.retrieval.sources import ShelfSources
    from langgraph_scrum_master.team.consult import AssistantCaller

MOST_PENDING = 8
"""Maximum number of pending gaps in a result."""

PICKED_FROM = 20
"""Number of candidates that an assistant picks from."""

_QUICK = 4_000
"""Characters that are read on the event loop, in about a millisecond."""

_PATIENCE = 1.0

Emit: TypeAlias = Callable[[str, dict[str, Any]], None]
"""Receives events while a step runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An observation and its unsettled gaps, most confident first."""

    state: State
    observation: Observation
    gaps: tuple[ContextGap, ...] = ()
    given_up: tuple[ContextGap, ...] = ()
    """Gaps whose attempts are used up and that were not escalated yet."""
    elsewhere: tuple[ContextGap, ...] = ()
    """Gaps of agents that another reader serves."""
    failure: str = ""
    """Why nothing could be observed."""
    thread: str = ""
    """The thread of the graph, if known."""
    span_ns: tuple[int, int] = field(default=(0, 0), compare=False)
    """Start and end of the observation in nanoseconds since the epoch, for traces."""

    @property
    def calm(self) -> bool:
        """Whether there is nothing to serve or to escalate."""
        return not self.gaps and not self.given_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The contexts for a gap, and what was dropped."""

    contexts: tuple[RetrievedContext, ...]
    dropped: tuple[Dropped, ...] = ()
    failures: tuple[SourceFailure, ...] = ()


_Searched: TypeAlias = tuple[Sequence[Query], list[list[RetrievedContext]], list[Dropped], tuple[SourceFailure, ...]]
"""The queries, the contexts for each that are new to the agent, the others, and the failures."""


def no_shelf_sources(memory: MemoryStore) -> Mapping[str, Source]:
    """No shelf sources."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The stages with their settings."""

    config: InjectionConfig = field(default_factory=InjectionConfig)
    detectors: tuple[Detector, ...] = ()
    """Run beside the built-in ones."""
    sources: tuple[Source, ...] = ()
    shelf_sources: ShelfSources = no_shelf_sources
    clock: Clock = time.time
    recorder: Recorder | None = None
    count_tokens: TokenCounter = estimate_tokens
    watcher: Watcher = field(default_factory=Watcher, compare=False)
    breakers: Breakers = field(default_factory=Breakers, compare=False)
    assistant: AssistantCaller | None = None
    snapshots: SnapshotRecorder | None = None
    redact: Redact | None = None

    @property
    def tuning(self) -> DetectionTuning:
        """The thresholds of detection."""
        return self.watcher.tuning

    def look(self, state: object, running: bool = False) -> dict[str, Any] | Sighting:
        """The sighting if there is a gap; otherwise, as in most steps, the state update.

        In a `running` graph, turns without a time are taken as of now. Each detector runs once.
        """
        further = self._further_detectors()
        seen = self._glance(state, running, bool(further))
        if seen is None:
            return self.sight(state, running)
        if further:
            began = time.time_ns()
            with redacting(self.redact):
                sighting = self._detected(mapping_of(state), seen, further)
            if sighting.failure or not sighting.calm:
                return replace(sighting, span_ns=(began, time.time_ns()))
        return {} if seen.figures is None else {FIGURES_KEY: dict(seen.figures)}

    def takes_long(self, state: object) -> bool:
        """Whether looking at the state may take longer than an event loop may be blocked."""
        if not isinstance(state, dict) or has_team_keys(state):
            return True
        return self.watcher.unread(state.get("messages")) > _QUICK

    @property
    def patience(self) -> float:
        """Seconds for a computation of our own: the deadline, but time enough for a busy machine."""
        return max(_PATIENCE, self.config.deadline)

    def _glance(self, state: object, running: bool, whole: bool) -> Observation | None:
        """The observation if the built-in detectors find nothing; without `whole`, only its statistics."""
        try:
            if not isinstance(state, dict) or not isinstance(state.get("messages"), list) or has_injections(state):
                return None
            return glance(state, self.watcher, self.clock() if running else None, self._now() if whole else "")
        # `sight` fails in the same way and logs it.
        except BaseException as error:
            recordable(error)
            return None

    def sight(self, state: object, running: bool = False) -> Sighting:
        """Observe and detect, without I/O."""
        began = time.time_ns()
        with redacting(self.redact):
            sighting = self._sight(state, running)
        return replace(sighting, span_ns=(began, time.time_ns())) if sighting.gaps else sighting

    def _sight(self, state: object, running: bool) -> Sighting:
        values: State = {}
        try:
            values, saved_at = unwrapped(state)
            if not isinstance(values.get("messages"), list):
                _warn_if_malformed(state, values)
            observation = observe(
                values,
                now=saved_at or self._now(),
                requirements=self.config.requirements,
                watcher=self.watcher,
                saved_at=instant(saved_at) if saved_at else self.clock() if running else None,
            )
        # A malformed state must not fail the host graph.
        except BaseException as error:
            return _failed_sighting(values, recordable(error))
        return self._detected(values, observation, (*tuned_detectors(self.tuning), *self._further_detectors()))

    def _detected(self, state: State, observation: Observation, detectors: Sequence[Detector]) -> Sighting:
        try:
            detected = detect(observation, detectors)
            if self.config.user_questions == "leave":
                detected = tuple(gap for gap in detected if gap.whom != "user")
            if not detected:
                return Sighting(state=state, observation=observation)
            gaps, given_up = unsettled_gaps(detected, state, observation.turns, self.config.max_attempts)
        # A detector may yield anything.
        except BaseException as error:
            return _failed_sighting(state, recordable(error))
        return Sighting(state=state, observation=observation, gaps=gaps, given_up=given_up)

    def _further_detectors(self) -> tuple[Detector, ...]:
        """The detectors beside the built-in ones."""
        if not self.config.assumptions:
            return self.detectors
        from langgraph_scrum_master.team.detect.assumption import assumption_made

        return (*self.detectors, partial(assumption_made, tuning=self.tuning))

    async def confirm(self, sighting: Sighting) -> Sighting:
        """The sighting without the gaps that the assistant rejects."""
        if self.assistant is None or not sighting.gaps:
            return sighting
        turns, deadline = sighting.observation.turns, self.config.assistant_deadline
        with redacting(self.redact):
            verdicts = await asyncio.gather(*(self.assistant.confirms(gap, turns, deadline) for gap in sighting.gaps))
        gaps = tuple(gap for gap, is_real in zip(sighting.gaps, verdicts, strict=True) if is_real)
        return replace(sighting, gaps=gaps)

    def without_doubtful(self, sighting: Sighting) -> Sighting:
        """The sighting without the gaps that only an assistant could confirm."""
        if self.assistant is None:
            return sighting
        return replace(sighting, gaps=tuple(gap for gap in sighting.gaps if gap.confidence >= self.tuning.likely))

    async def serve(self, sighting: Sighting, memory: MemoryStore | None, emit: Emit) -> InjectionResult | None:
        """Retrieve context for the first gap and build the result; None if there is no gap."""
        with redacting(self.redact):
            if not sighting.gaps:
                return await self._escalate(sighting, emit) if sighting.given_up else None
            with telemetry.span("evaluate", sighting.span_ns[0] or None) as span:
                telemetry.past("detect", *sighting.span_ns)
                result = await self._serve(sighting, memory, emit)
                telemetry.note(span, outcome=outcome(result), kept=len(result.contexts_retrieved), **facts(result))
            await self._record(result)
            await record_result(
                result, self._snapshot(sighting, self.asked(memory)), self.config.deadline, self.snapshots
            )
        return result

    async def _serve(self, sighting: Sighting, memory: MemoryStore | None, emit: Emit) -> InjectionResult:
        started = self.clock()
        gap, *pending = sighting.gaps
        emit("gap", await self.shown(gap))
        finding = await self.find(gap, sighting, memory)
        emit("retrieved", {"gap_id": gap.gap_id, "kept": len(finding.contexts), "dropped": len(finding.dropped)})
        with telemetry.span("fit"):
            fitted = await self._fitted(gap, finding, sighting)
        result = replace(
            fitted,
            pending=tuple(pending[:MOST_PENDING]),
            duration_ms=(self.clock() - started) * 1000,
            model_tokens=self.assistant.tokens(gap) if self.assistant else 0,
        )
        emit(outcome(result), facts(result))
        return result

    async def _fitted(self, gap: ContextGap, finding: Finding, sighting: Sighting) -> InjectionResult:
        """What `fit` returns, computed off the event loop; nothing is injected if it misses the deadline."""
        if not finding.contexts:
            return self.fit(gap, finding, sighting)
        try:
            return await within(self.patience, self.fit, gap, finding, sighting)
        except TimeoutError as error:
            failures = (*finding.failures, SourceFailure.of("fit", error, self.patience))
            return self.fit(gap, Finding(contexts=(), dropped=finding.dropped, failures=failures), sighting)

    async def answer(
        self, result: InjectionResult, answer: str, sighting: Sighting, memory: MemoryStore | None
    ) -> InjectionResult:
        """The result with a human answer as its context. The answer is stored in the memory."""
        with redacting(self.redact):
            return await self._answer(result, answer, sighting, memory)

    async def _answer(
        self, result: InjectionResult, answer: str, sighting: Sighting, memory: MemoryStore | None
    ) -> InjectionResult:
        title = "Answer of a person"
        context = RetrievedContext(
            source="memory",
            content=answer,
            relevance_score=1.0,
            retrieved_at=sighting.observation.now,
            key=f"answer:{result.gap.need}",
            title=title,
            created_at=sighting.observation.now,
        )
        if memory is not None:
            try:
                metadata = {"title": title, "created_at": context.created_at}
                text = f"{result.gap.context_query}\n{answer}"
                await asyncio.wait_for(memory.store_embedding(context.key, text, metadata), self.config.deadline)
            except BaseException as raised:
                error = recordable(raised)
                logger.error("answer.not_remembered", key=context.key, error=f"{type(error).__name__}: {error}")
        fitted = await self._fitted(result.gap, Finding(contexts=(context,)), sighting)
        with_answer = replace(fitted, escalated=True)
        await self._record(with_answer)
        return with_answer

    async def _escalate(self, sighting: Sighting, emit: Emit) -> InjectionResult:
        gap, *pending = sighting.given_up
        result = replace(
            self.fit(gap, Finding(contexts=()), sighting), pending=tuple(pending[:MOST_PENDING]), escalated=True
        )
        emit("escalated", await self.shown(gap))
        await self._record(result)
        await record_result(result, self._snapshot(sighting, ()), self.config.deadline, self.snapshots)
        return result

    async def shown(self, gap: ContextGap) -> dict[str, Any]:
        """The facts of a gap for events and traces, redacted off the event loop."""
        facts = gap_facts(gap)
        return facts if self.redact is None else await within(self.patience, cleaned, facts, self.redact)

    async def find(self, gap: ContextGap, sighting: Sighting, memory: MemoryStore | None) -> Finding:
        """Search all sources; return passages that are relevant, new to the agent and distinct."""
        until = time.monotonic() + self.config.assistant_deadline
        turns, sources, seconds = sighting.observation.turns, self.asked(memory), self.config.deadline
        written = await self.assistant.writes(gap, turns, self.config.assistant_deadline) if self.assistant else ""
        try:
            async with ADMISSION.turn(self.config.max_concurrent, seconds):
                searched = await self._search(gap, sighting, sources, written)
                # A model may take long to pick, so that the next gap's turn does not wait for it.
                if self.assistant is None:
                    return await self._selected(gap, searched, until)
        except OverloadedError as error:
            logger.warning("gap.not_searched", gap_id=gap.gap_id, error=str(error))
            late = (SourceFailure(source=source.name, error=str(error), late=True) for source in sources)
            return Finding(contexts=(), failures=tuple(late))
        return await self._selected(gap, searched, until)

    async def _selected(self, gap: ContextGap, searched: _Searched, until: float) -> Finding:
        """The passages to give, of what was found."""
        from langgraph_scrum_master.retrieval.passages import passages

        queries, new, left, failures = searched
        try:
            picked = await self._picked(gap, queries, new, until)
            kept, further = await within(self.patience, self._chosen, new) if picked is None else picked
            shown = await within(self.patience, passages, kept, queries, self.count_tokens)
        except TimeoutError as error:
            failures = (*failures, SourceFailure.of("selection", error, self.patience))
            return Finding(contexts=(), dropped=tuple(left), failures=failures)
        return Finding(contexts=tuple(shown), dropped=_once((*left, *further), shown), failures=failures)

    async def _search(self, gap: ContextGap, sighting: Sighting, sources: Sequence[Source], written: str) -> _Searched:
        """The queries, the contexts for each that are new to the agent, the others, and the failures."""
        from langgraph_scrum_master.retrieval.retrieve import retrieve_each
        from langgraph_scrum_master.team.needs import build_queries

        seconds = self.config.deadline
        failures: tuple[SourceFailure, ...] = ()
        try:
            queries = await within(self.patience, build_queries, gap, sighting.observation, written)
            found, failures = await retrieve_each(queries, sighting.state, sources, seconds, breakers=self.breakers)
            new, left = await within(self.patience, self._new, gap, sighting, found)
        except TimeoutError as error:
            return (), [], [], (*failures, SourceFailure.of("selection", error, self.patience))
        return queries, new, left, failures

    async def _picked(
        self, gap: ContextGap, queries: Sequence[Query], new: Sequence[Sequence[RetrievedContext]], until: float
    ) -> Split | None:
        """The contexts that the assistant picks; None if it has no opinion."""
        from langgraph_scrum_master.retrieval.dedupe import distinct_contexts, picked
        from langgraph_scrum_master.retrieval.retrieve import merged

        if self.assistant is None or not any(new):
            return None
        offered, repeated = await within(self.patience, distinct_contexts, merged(new))
        query, best = " ".join(query.text for query in queries), offered[:PICKED_FROM]
        texts = [f"{context.title}\n{context.content}".strip() for context in best]
        places = await self.assistant.picks(gap, query, texts, until - time.monotonic())
        if places is None:
            return None
        kept, left = picked(offered, places)
        return kept, [*left, *repeated]

    def asked(self, memory: MemoryStore | None) -> tuple[Source, ...]:
        """The sources to search."""
        from langgraph_scrum_master.retrieval.sources import enabled_sources

        return enabled_sources(self.config, memory, self.sources, self.shelf_sources)

    def _new(
        self, gap: ContextGap, sighting: Sighting, found: Sequence[Sequence[RetrievedContext]]
    ) -> tuple[list[list[RetrievedContext]], list[Dropped]]:
        """The contexts for each query that are new to the agent."""
        from langgraph_scrum_master.retrieval.dedupe import filled, novel

        in_view = sighting.observation.turns[-self.config.view_window :] if self.config.view_window else ()
        seen = [*in_view, *(turn for turn in sighting.observation.turns if turn.agent == gap.agent)]
        statements, texts = [_statements(turn) for turn in seen], [gap.context_query, *(turn.text for turn in seen)]
        injected = injected_keys(sighting.state, gap.agent, in_view)
        new: list[list[RetrievedContext]] = []
        left: list[Dropped] = []
        for contexts in found:
            worded, empty = filled(contexts)
            kept, known = novel(worded, statements, texts, injected)
            new.append(kept)
            left += [*empty, *known]
        return new, left

    def _chosen(self, new: Sequence[Sequence[RetrievedContext]]) -> Split:
        """The contexts above the bar, not far below the best for their query, and distinct."""
        from langgraph_scrum_master.retrieval.dedupe import above, beside_the_best, distinct_contexts
        from langgraph_scrum_master.retrieval.retrieve import merged

        worth: list[list[RetrievedContext]] = []
        left: list[Dropped] = []
        for contexts in new:
            relevant, weak = above(contexts, self.config.min_relevance_score)
            once, again = distinct_contexts(relevant)
            near, far = beside_the_best(once)
            worth.append(near)
            left += [*weak, *again, *far]
        kept, repeated = distinct_contexts(merged(worth))
        return kept, [*left, *repeated]

    def fit(self, gap: ContextGap, finding: Finding, sighting: Sighting) -> InjectionResult:
        """Select the contexts that fit into the budget and render them."""
        from langgraph_scrum_master.retrieval.fit import select
        from langgraph_scrum_master.retrieval.frame import framed

        def fits(contexts: Sequence[RetrievedContext]) -> bool:
            text = framed(gap, contexts)
            within = len(text.encode()) <= self.config.max_context_size_bytes
            return within and self.count_tokens(text) <= self.config.max_context_tokens

        kept, left = select(finding.contexts, self.config.max_context_items, fits)
        text = framed(gap, kept)
        return InjectionResult(
            gap=gap,
            contexts_retrieved=tuple(kept),
            injected=bool(kept),
            injection_target=target_for(gap, sighting.state, sighting.observation),
            total_context_size=len(text.encode()),
            duration_ms=0.0,
            text=text,
            total_tokens=self.count_tokens(text),
            dropped=(*finding.dropped, *left),
            failures=finding.failures,
            after=sighting.observation.turns[-1].id if sighting.observation.turns else "",
        )

    async def _record(self, result: InjectionResult) -> None:
        if self.config.log_injections:
            log(result)
        count_result(result)
        if (recorder := self.recorder) is not None:
            # Redacted in the recorder's thread, since it takes time.
            await record_result(
                result, lambda each: recorder(redacted(each, self.redact)), self.config.deadline, recorder
            )

    def _snapshot(self, sighting: Sighting, sources: Sequence[Source]) -> Recorder | None:
        if (recorder := self.snapshots) is None:
            return None
        names = [source.name for source in sources]

        def record(result: InjectionResult) -> None:
            snapshot = taken(
                sighting.state,
                at=sighting.observation.now,
                thread=sighting.thread,
                config=self.config.to_dict(),
                sources=names,
                result=result,
                keys=recorder.keys,
            )
            recorder(redacted_snapshot(snapshot, self.redact))

        return record

    def update(self, sighting: Sighting, result: InjectionResult | None) -> dict[str, Any]:
        """The state update for a result."""
        if sighting.failure:
            return {"sm_output": failed_output(sighting.failure, self._now())}
        seen = sighting.observation
        if result is None:
            return state_update(sighting.state, seen, None, elsewhere=sighting.elsewhere)
        health, cycles = health_status(seen, self.tuning), cycle_analysis(seen)
        return state_update(sighting.state, seen, result, health, cycles, sighting.elsewhere)

    def new_outcomes(self, sighting: Sighting, update: Mapping[str, Any]) -> list[InjectionRecord]:
        """The records whose outcome this update sets for the first time."""
        waited = {r.gap_id for r in records(sighting.state.get("injection_history")) if r.outcome == "open"}
        updated = records(update.get("injection_history"))
        return [record for record in updated if record.gap_id in waited and record.outcome != "open"]

    async def record_outcomes(self, found: Sequence[InjectionRecord]) -> None:
        """Log, count and record outcomes of injections."""
        with redacting(self.redact):
            for record in found:
                await record_outcome(record, self.recorder, self.config.deadline, self.config.log_injections)

    def _now(self) -> str:
        return datetime.fromtimestamp(self.clock(), UTC).isoformat()


def _failed_sighting(state: State, error: Exception) -> Sighting:
    message = f"{type(error).__name__}: {error}"
    logger.error("observation.failed", error=message)
    return Sighting(state=state, observation=Observation(now=""), failure=message)


def failed_output(why: str, now: str) -> SMOutput:
    """The `sm_output` of a failed step."""
    return SMOutput(
        observed_at=now,
        current_agent="",
        circular_logic_detected=False,
        gate_blocked=False,
        gaps=(),
        injection_result=None,
        processing_notes=f"failed, the graph continues: {why}",
    )


def _once(dropped: Sequence[Dropped], kept: Sequence[RetrievedContext]) -> tuple[Dropped, ...]:
    """Each dropped context once, with its last reason, except those that another query returned."""
    shown = {(context.source, context.key) for context in kept}
    last = {(drop.source, drop.key): drop for drop in dropped}
    return tuple(drop for place, drop in last.items() if place not in shown)


def _statements(turn: Turn) -> str:
    """The turn without its questions: a question has words of its answer without giving it."""
    text = turn.text
    for need in sorted(asks(turn), key=lambda need: -need.start):
        text = f"{text[: need.start]}\n{text[need.end :]}"
    return text if "?" not in text else "\n".join(s for s in sentences(text) if not s.endswith("?"))


def gap_facts(gap: ContextGap) -> dict[str, Any]:
    """The facts of a gap, for events and traces."""
    return {
        "gap_id": gap.gap_id,
        "agent": gap.agent,
        "reason": gap.reason,
        "confidence": gap.confidence,
        "query": gap.context_query,
        "indicators": list(gap.indicators),
    }


def _warn_if_malformed(state: object, values: State) -> None:
    if not values and state != {}:
        logger.warning("state.malformed", expected="a dict, a dataclass or a Pydantic model", got=type(state).__name__)
    messages = values.get("messages", [])
    if not isinstance(messages, list | tuple):
        logger.warning("state.malformed", key="messages", expected="a list", got=type(messages).__name__)
