"""Builds the state update for a result. No other module does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langgraph_scrum_master._internal.shapes import unwrapped
from langgraph_scrum_master.model import (
    ContextGap,
    CycleAnalysis,
    HealthStatus,
    InjectionRecord,
    InjectionResult,
    Observation,
    RecordStatus,
    SMOutput,
    Turn,
    digest,
)
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.team.history import CONTEXT_KEY, HANDOFF_KEY, has_injections, has_spoken, waiting
from langgraph_scrum_master.team.outcome import news_in, outcomes
from langgraph_scrum_master.team.state import FIGURES_KEY, Payload, cleared, merge_records, payloads, records

RECENT_EXCHANGES = 5

_IDS_BEFORE = 20
"""Number of message ids before a payload that are stored with it, to find the turns after it."""

_NO_HELP = "the same need came up again after all attempts, context did not help"


def target_for(gap: ContextGap, state: State, observation: Observation) -> str:
    """The state key for the gap's context: the pending handoff if it is a dict and for this agent, else our own."""
    handed_over = isinstance(state.get(HANDOFF_KEY), dict) and observation.handoff_target == gap.agent
    return HANDOFF_KEY if handed_over else CONTEXT_KEY


def state_update(
    state: State,
    observation: Observation,
    result: InjectionResult | None,
    health: HealthStatus | None = None,
    cycles: CycleAnalysis | None = None,
    elsewhere: Sequence[ContextGap] = (),
) -> dict[str, Any]:
    """The state update of a step: the result and `sm_output`, without payloads that were read.

    For a healthy team it is empty, apart from periodic statistics. Gaps `elsewhere` are served by others and do not
    change. The update works with `|=` on a plain dict and with the reducers of `ScrumMasterState`.
    """
    figures = {} if observation.figures is None else {FIGURES_KEY: dict(observation.figures)}
    if result is None and not has_injections(state):
        return figures
    history = records(state.get("injection_history"))
    update = _payloads_update(state, observation.turns, result)
    news = [] if result is None else [_served(result, state), *(_record(gap, "pending") for gap in result.pending)]
    if result is not None and result.injected:
        news[0] = replace(news[0], outcome="open", news=news_in(result, observation.turns))
    if result is not None:
        update["injection_result"] = result.slim()
        output = _output(observation, result, news[0])
        update["sm_output"] = replace(output, health_status=health, cycle_analysis=cycles)
    seen = (*elsewhere, *(() if result is None else (result.gap, *result.pending)))
    with_outcome = outcomes(history, observation.turns, seen)
    if news := [*_closed(history, result, elsewhere, observation), *with_outcome, *news]:
        update["injection_history"] = merge_records(history, news)
    return update | figures


def context_for(state: object, agent: str) -> str:
    """The injected text that waits for this agent; empty if there is none."""
    return "\n\n".join(
        str(payload.get("text", "")) for payload in waiting(unwrapped(state)[0]) if payload.get("agent") == agent
    )


def _payloads_update(state: State, turns: Sequence[Turn], result: InjectionResult | None) -> dict[str, Any]:
    new = _payload(result, turns) if result is not None and result.injected else None
    handed_over = (
        result is not None and result.injection_target == HANDOFF_KEY and isinstance(state.get(HANDOFF_KEY), dict)
    )
    return {
        **_ours_update(state.get(CONTEXT_KEY), turns, None if handed_over else new),
        **_handoff_update(state.get(HANDOFF_KEY), turns, new if handed_over else None),
    }


def _ours_update(payload: Payload | None, turns: Sequence[Turn], new: Payload | None) -> dict[str, Any]:
    waiting_now = payloads(payload)
    gone = [cleared(each["gap_id"]) for each in waiting_now if has_spoken(each, turns)]
    if new is None:
        return {CONTEXT_KEY: {**gone[0], "others": gone[1:]}} if gone else {}
    others = [each for each in waiting_now if not has_spoken(each, turns) and each["gap_id"] != new["gap_id"]]
    return {CONTEXT_KEY: {**new, "others": [*others, *gone]}}


def _handoff_update(handoff: object, turns: Sequence[Turn], new: Payload | None) -> dict[str, Any]:
    if not isinstance(handoff, dict):
        return {}
    if new is not None:
        return {HANDOFF_KEY: {**handoff, CONTEXT_KEY: new}}
    if any(has_spoken(each, turns) for each in payloads(handoff.get(CONTEXT_KEY))):
        return {HANDOFF_KEY: {key: value for key, value in handoff.items() if key != CONTEXT_KEY}}
    return {}


def _payload(result: InjectionResult, turns: Sequence[Turn]) -> Payload:
    counts: dict[str, int] = {}
    for context in result.contexts_retrieved:
        counts[context.source] = counts.get(context.source, 0) + 1
    return {
        "gap_id": result.gap.gap_id,
        "agent": result.gap.agent,
        "reason": result.gap.reason,
        "query": result.gap.context_query,
        "text": result.text,
        "contexts": [
            {
                "key": context.key,
                "source": context.source,
                "title": context.title,
                "relevance_score": context.relevance_score,
                "size": context.size,
                "truncated": context.truncated,
            }
            for context in result.contexts_retrieved
        ],
        "sources": counts,
        "total_context_size": result.total_context_size,
        "total_tokens": result.total_tokens,
        "before": [turn.id for turn in turns[-_IDS_BEFORE:]],
        "others": [],
    }


def _served(result: InjectionResult, state: State) -> InjectionRecord:
    known = {record.gap_id: record for record in records(state.get("injection_history"))}
    earlier = known.get(result.gap.gap_id)
    attempts, failed = (earlier.attempts, earlier.failed) if earlier else (0, 0)
    source_failed = bool(result.failures) and not result.injected
    counts = not source_failed and not result.escalated
    return replace(
        _record(result.gap, "injected" if result.injected else "abstained"),
        attempts=attempts + counts,
        failed=failed + source_failed,
        keys=tuple(context.key for context in result.contexts_retrieved),
        scores=tuple(context.relevance_score for context in result.contexts_retrieved),
        size=result.total_context_size,
        tokens=result.total_tokens,
        text_digest=digest(result.text) if result.text else "",
        after=result.after,
        escalated=result.escalated,
    )


def _closed(
    history: Sequence[InjectionRecord],
    result: InjectionResult | None,
    elsewhere: Sequence[ContextGap],
    observation: Observation,
) -> list[InjectionRecord]:
    """Pending records whose gap no longer exists."""
    open_now = {gap.gap_id for gap in (*elsewhere, *(() if result is None else (result.gap, *result.pending)))}
    stale = (r for r in history if r.status == "pending" and r.gap_id not in open_now)
    return [replace(record, status="closed", at=observation.now) for record in stale]


def _record(gap: ContextGap, status: RecordStatus) -> InjectionRecord:
    return InjectionRecord(
        gap_id=gap.gap_id, need=gap.need, agent=gap.agent, reason=gap.reason, status=status, at=gap.detected_at
    )


def _output(observation: Observation, result: InjectionResult, record: InjectionRecord) -> SMOutput:
    return SMOutput(
        observed_at=observation.now,
        current_agent=observation.current_agent,
        circular_logic_detected=bool(observation.cycles),
        gate_blocked=observation.gate_blocked,
        gaps=(result.gap, *result.pending),
        injection_result=record,
        processing_notes=_notes(result),
        recent_exchanges=tuple(f"{h.source}→{h.target}" for h in observation.handoffs[-RECENT_EXCHANGES:]),
        exchange_count=len(observation.handoffs),
        escalation_triggered=result.escalated,
        escalation_reason=_NO_HELP if result.escalated else "",
    )


def _notes(result: InjectionResult) -> str:
    gap = result.gap
    contexts = _counted(len(result.contexts_retrieved), "context")
    if result.escalated and not result.injected:
        return f"{gap.agent} lacks context ({gap.reason}, {gap.confidence:.2f}): {_NO_HELP}"
    outcome = (
        f"gave it {contexts}, {result.total_tokens} tokens, in {result.injection_target}"
        if result.injected
        else f"found nothing worth its tokens among {_counted(len(result.dropped), 'context')}"
    )
    failed = f"; failed: {', '.join(failure.source for failure in result.failures)}" if result.failures else ""
    more = f"; {_counted(len(result.pending), 'more gap')} waiting" if result.pending else ""
    return f"{gap.agent} lacks context ({gap.reason}, {gap.confidence:.2f}): {outcome}{failed}{more}"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
