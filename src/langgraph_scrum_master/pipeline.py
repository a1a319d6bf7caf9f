"""The verbs in order: observe, detect, query, retrieve, rank, fit, render, inject, record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

import structlog

from langgraph_scrum_master.config import InjectionConfig
from langgraph_scrum_master.detect import DETECTORS, detect
from langgraph_scrum_master.inject import step_update, target_for
from langgraph_scrum_master.model import (
    ContextGap,
    Dropped,
    InjectionResult,
    Observation,
    RetrievedContext,
    SourceFailure,
    Turn,
)
from langgraph_scrum_master.observe import observe
from langgraph_scrum_master.protocols import Clock, Detector, MemoryStore, Recorder, Source, State, TokenCounter
from langgraph_scrum_master.shapes import mapping_of
from langgraph_scrum_master.state import records
from langgraph_scrum_master.text.tokens import estimate_tokens

logger = structlog.get_logger("langgraph_scrum_master")

Emit: TypeAlias = Callable[[str, dict[str, Any]], None]
"""Tells whoever watches the run what happens, as it happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What was observed, and the gaps that are not settled yet, the one to serve first."""

    state: State
    observation: Observation
    gaps: tuple[ContextGap, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found for a gap and is worth giving, and what was left on the way."""

    contexts: tuple[RetrievedContext, ...]
    dropped: tuple[Dropped, ...] = ()
    failures: tuple[SourceFailure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The stages with their settings."""

    config: InjectionConfig = field(default_factory=InjectionConfig)
    detectors: tuple[Detector, ...] = DETECTORS
    sources: tuple[Source, ...] = ()
    clock: Clock = time.time
    recorder: Recorder | None = None
    count_tokens: TokenCounter = estimate_tokens

    def sight(self, state: object) -> Sighting:
        """Observe and detect: no I/O, and on a healthy team nothing more happens."""
        values = mapping_of(state)
        _warn_if_malformed(state, values)
        observation = observe(values, now=self._now(), requirements=self.config.requirements)
        return Sighting(
            state=values,
            observation=observation,
            gaps=unsettled(detect(observation, self.detectors), values, self.config.max_attempts),
        )

    async def serve(self, sighting: Sighting, memory: MemoryStore | None, emit: Emit) -> InjectionResult | None:
        """Find context for the first gap and make the result of it; None if there is no gap."""
        if not sighting.gaps:
            return None
        started = self.clock()
        gap, *pending = sighting.gaps
        emit("gap", _seen_gap(gap))
        finding = await self.find(gap, sighting, memory)
        emit("retrieved", {"gap_id": gap.gap_id, "kept": len(finding.contexts), "dropped": len(finding.dropped)})
        result = replace(
            self.fit(gap, finding, sighting), pending=tuple(pending), duration_ms=(self.clock() - started) * 1000
        )
        emit("injected" if result.injected else "abstained", _summary(result))
        self.log(result)
        if self.recorder is not None:
            await asyncio.to_thread(self._record, self.recorder, result)
        return result

    async def find(self, gap: ContextGap, sighting: Sighting, memory: MemoryStore | None) -> Finding:
        """Ask all sources, and keep what is relevant, new to the agent, and said once."""
        from langgraph_scrum_master.query import build_query
        from langgraph_scrum_master.rank.dedupe import above, distinct, novel
        from langgraph_scrum_master.retrieve import retrieve
        from langgraph_scrum_master.sources import enabled

        sources = enabled(self.config, memory, self.sources)
        query = build_query(gap, sighting.observation)
        found, failures = await retrieve(query, sighting.state, sources, self.config.deadline)
        relevant, too_weak = above(found, self.config.min_relevance_score)
        new, known = novel(relevant, _seen_texts(gap, sighting, self.config), _seen_keys(gap, sighting, self.config))
        kept, repeated = distinct(new)
        return Finding(contexts=tuple(kept), dropped=(*too_weak, *known, *repeated), failures=failures)

    def fit(self, gap: ContextGap, finding: Finding, sighting: Sighting) -> InjectionResult:
        """The contexts that fit into the budget, as the text for the agent."""
        from langgraph_scrum_master.fit import select
        from langgraph_scrum_master.render import framed

        def fits(contexts: Sequence[RetrievedContext]) -> bool:
            text = framed(gap, contexts)
            within = len(text.encode(errors="replace")) <= self.config.max_context_size_bytes
            return within and self.count_tokens(text) <= self.config.max_context_tokens

        kept, left = select(finding.contexts, self.config.max_context_items, fits)
        text = framed(gap, kept)
        return InjectionResult(
            gap=gap,
            contexts_retrieved=tuple(kept),
            injected=bool(kept),
            injection_target=target_for(gap, sighting.state, sighting.observation),
            total_context_size=len(text.encode(errors="replace")),
            duration_ms=0.0,
            text=text,
            total_tokens=self.count_tokens(text),
            dropped=(*finding.dropped, *left),
            failures=finding.failures,
        )

    def log(self, result: InjectionResult) -> None:
        """Log the facts of a result, without any text, unless that is turned off."""
        if self.config.log_injections:
            logger.info("context.injected" if result.injected else "context.abstained", **_summary(result))

    def update(self, sighting: Sighting, result: InjectionResult | None) -> dict[str, Any]:
        """What to write into the state."""
        return step_update(sighting.state, sighting.observation, sighting.gaps, result)

    def _now(self) -> str:
        return datetime.fromtimestamp(self.clock(), UTC).isoformat()

    def _record(self, recorder: Recorder, result: InjectionResult) -> None:
        # The audit log must not cost the agent its context.
        try:
            recorder(result)
        except Exception as error:
            logger.error("recorder.failed", gap_id=result.gap.gap_id, error=f"{type(error).__name__}: {error}")


def unsettled(gaps: Sequence[ContextGap], state: State, max_attempts: int) -> tuple[ContextGap, ...]:
    """The gaps that were not served yet and whose need was not tried too often."""
    history = records(state.get("injection_history"))
    served = {record.gap_id for record in history if record.status == "injected"}
    tries: dict[str, int] = {}
    for record in history:
        tries[record.need] = tries.get(record.need, 0) + record.attempts
    return tuple(gap for gap in gaps if gap.gap_id not in served and tries.get(gap.need, 0) < max_attempts)


def _seen_texts(gap: ContextGap, sighting: Sighting, config: InjectionConfig) -> list[str]:
    turns = sighting.observation.turns
    in_view = _in_view(sighting, config)
    own = (turn for turn in turns if turn.agent == gap.agent)
    return [*(turn.text for turn in (*in_view, *own)), gap.context_query]


def _seen_keys(gap: ContextGap, sighting: Sighting, config: InjectionConfig) -> set[str]:
    in_view = {"", *(turn.id for turn in _in_view(sighting, config))}
    given = (record for record in records(sighting.state.get("injection_history")) if record.agent == gap.agent)
    return {key for record in given if record.after in in_view for key in record.keys}


def _in_view(sighting: Sighting, config: InjectionConfig) -> tuple[Turn, ...]:
    return sighting.observation.turns[-config.view_window :] if config.view_window else ()


def _seen_gap(gap: ContextGap) -> dict[str, Any]:
    return {
        "gap_id": gap.gap_id,
        "agent": gap.agent,
        "reason": gap.reason,
        "confidence": gap.confidence,
        "query": gap.context_query,
        "indicators": list(gap.indicators),
    }


def _summary(result: InjectionResult) -> dict[str, Any]:
    """The facts of a result without any text."""
    return {
        "gap_id": result.gap.gap_id,
        "agent": result.gap.agent,
        "reason": result.gap.reason,
        "confidence": result.gap.confidence,
        "target": result.injection_target,
        "contexts": [context.key for context in result.contexts_retrieved],
        "dropped": len(result.dropped),
        "failures": [failure.source for failure in result.failures],
        "tokens": result.total_tokens,
        "size": result.total_context_size,
        "duration_ms": round(result.duration_ms, 3),
    }


def _warn_if_malformed(state: object, values: State) -> None:
    if not values and state != {}:
        logger.warning("state.malformed", expected="a dict, a dataclass or a Pydantic model", got=type(state).__name__)
    messages = values.get("messages", [])
    if not isinstance(messages, list | tuple):
        logger.warning("state.malformed", key="messages", expected="a list", got=type(messages).__name__)
