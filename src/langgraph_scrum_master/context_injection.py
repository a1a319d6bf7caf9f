"""The functional API for plain dicts, without a graph: detect, retrieve, inject, and all three in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langgraph_scrum_master.config import InjectionConfig
from langgraph_scrum_master.model import ContextGap, InjectionResult, RetrievedContext
from langgraph_scrum_master.protocols import MemoryStore, State
from langgraph_scrum_master.scrum_master import shelf_sources
from langgraph_scrum_master.team.pipeline import Finding, Pipeline
from langgraph_scrum_master.team.record.facts import log


async def detect_context_gap(state: State) -> ContextGap | None:
    """The most confident gap, or None for a healthy team."""
    gaps = Pipeline().sight(state).gaps
    return gaps[0] if gaps else None


async def retrieve_relevant_context(
    gap: ContextGap, memory: MemoryStore | None, state: State, config: InjectionConfig
) -> tuple[RetrievedContext, ...]:
    """Contexts for the gap from the enabled sources: relevant, new to the agent, best first."""
    pipeline = _pipeline(config)
    finding = await pipeline.find(gap, pipeline.sight(state), memory)
    return finding.contexts[: config.max_context_items]


async def inject_context(
    gap: ContextGap, contexts: Sequence[RetrievedContext], state: State, config: InjectionConfig
) -> InjectionResult:
    """Fit the contexts into the budget and render them. Does not modify the state; see `injection_update`."""
    pipeline = _pipeline(config)
    started = pipeline.clock()
    result = pipeline.fit(gap, Finding(contexts=tuple(contexts)), pipeline.sight(state))
    result = replace(result, duration_ms=(pipeline.clock() - started) * 1000)
    if config.log_injections:
        log(result)
    return result


def injection_update(result: InjectionResult | None, state: object) -> dict[str, Any]:
    """The state update for a result: payload, result, history and `sm_output`. It removes payloads that were read.

    Works with `state |= …` on a plain dict and with a graph's reducers.
    """
    pipeline = Pipeline()
    return pipeline.update(pipeline.sight(state), result)


async def manage_context_injection(
    state: State, memory: MemoryStore | None = None, config: InjectionConfig | None = None
) -> InjectionResult | None:
    """Detect, retrieve and inject: the result for the most confident gap, or None for a healthy team."""
    pipeline = _pipeline(config or InjectionConfig())
    return await pipeline.serve(pipeline.sight(state), memory, lambda _event, _facts: None)


def _pipeline(config: InjectionConfig) -> Pipeline:
    return Pipeline(config=config, shelf_sources=shelf_sources)
