"""Result → state update: the one place that makes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langgraph_scrum_master.model import (
    ContextGap,
    InjectionRecord,
    InjectionResult,
    Observation,
    RecordStatus,
    SMOutput,
    Turn,
    digest,
)
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.shapes import items_of, read
from langgraph_scrum_master.state import Payload, cleared, payloads, records

CONTEXT_KEY = "injected_context"
HANDOFF_KEY = "handoff_context"

RECENT_EXCHANGES = 5


def target_for(gap: ContextGap, state: State, observation: Observation) -> str:
    """The state key for the gap's context: the pending handoff's, if it is a dict and to this agent, else our own."""
    handed_over = isinstance(state.get(HANDOFF_KEY), dict) and observation.handoff_target == gap.agent
    return HANDOFF_KEY if handed_over else CONTEXT_KEY


def injection_update(result: InjectionResult, state: State) -> dict[str, Any]:
    """What to write into the state for a result: the payload at its target, the result, and the records."""
    update: dict[str, Any] = {
        "injection_result": replace(result, text=""),
        "injection_history": [_served(result, state), *(_waiting(gap) for gap in result.pending)],
    }
    if not result.injected:
        return update
    if result.injection_target == HANDOFF_KEY:
        update[HANDOFF_KEY] = {**state[HANDOFF_KEY], CONTEXT_KEY: _payload(result, state)}
    else:
        update[CONTEXT_KEY] = _payload(result, state)
    return update


def step_update(
    state: State, observation: Observation, gaps: Sequence[ContextGap], result: InjectionResult | None
) -> dict[str, Any]:
    """What a step of the scrum master writes: payloads whose agent has spoken go, the result comes. Often nothing."""
    update = _clearing(state, observation.turns)
    if result is None:
        return update
    gone = payloads(update.get(CONTEXT_KEY))
    update |= injection_update(result, state)
    if gone and CONTEXT_KEY in update:
        update[CONTEXT_KEY] = {**update[CONTEXT_KEY], "others": gone}
    return {**update, "sm_output": _output(observation, gaps, result, state)}


def context_for(state: State, agent: str) -> str:
    """What waits in the state for this agent to read; empty if nothing does."""
    waiting = payloads(state.get(CONTEXT_KEY))
    handoff = state.get(HANDOFF_KEY)
    if isinstance(handoff, Mapping):
        waiting += payloads(handoff.get(CONTEXT_KEY))
    return "\n\n".join(payload["text"] for payload in waiting if payload.get("agent") == agent and payload.get("text"))


def _clearing(state: State, turns: Sequence[Turn]) -> dict[str, Any]:
    update: dict[str, Any] = {}
    waiting = payloads(state.get(CONTEXT_KEY))
    if gone := [cleared(payload["gap_id"]) for payload in waiting if _has_spoken(payload, turns)]:
        update[CONTEXT_KEY] = {**gone[0], "others": gone[1:]}
    handoff = state.get(HANDOFF_KEY)
    if isinstance(handoff, dict) and any(_has_spoken(payload, turns) for payload in payloads(handoff.get(CONTEXT_KEY))):
        update[HANDOFF_KEY] = {key: value for key, value in handoff.items() if key != CONTEXT_KEY}
    return update


def _output(observation: Observation, gaps: Sequence[ContextGap], result: InjectionResult, state: State) -> SMOutput:
    return SMOutput(
        observed_at=observation.now,
        current_agent=observation.current_agent,
        circular_logic_detected=bool(observation.cycles),
        gate_blocked=observation.gate_blocked,
        gaps=tuple(gaps),
        injection_result=_served(result, state),
        processing_notes=_notes(result),
        recent_exchanges=tuple(f"{h.source}→{h.target}" for h in observation.handoffs[-RECENT_EXCHANGES:]),
    )


def _payload(result: InjectionResult, state: State) -> Payload:
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
        "after": _position(state),
        "others": [],
    }


def _position(state: State) -> dict[str, Any]:
    messages = items_of(state.get("messages"))
    return {"message": str(read(messages[-1], "id") or "") if messages else "", "count": len(messages)}


def _has_spoken(payload: Payload, turns: Sequence[Turn]) -> bool:
    # Where the message is gone, the history was cut in front of it, and all that is left came after.
    after = payload.get("after") or {}
    last = after.get("message") or f"#{after.get('count', 0) - 1}"
    ids = [turn.id for turn in turns]
    start = ids.index(last) + 1 if last in ids else 0
    return any(turn.kind == "agent" and turn.agent == payload.get("agent") for turn in turns[start:])


def _served(result: InjectionResult, state: State) -> InjectionRecord:
    known = {record.gap_id: record for record in records(state.get("injection_history"))}
    earlier = known.get(result.gap.gap_id)
    return replace(
        _record(result.gap, "injected" if result.injected else "abstained"),
        attempts=(earlier.attempts if earlier else 0) + 1,
        keys=tuple(context.key for context in result.contexts_retrieved),
        scores=tuple(context.relevance_score for context in result.contexts_retrieved),
        size=result.total_context_size,
        text_digest=digest(result.text) if result.text else "",
        after=_position(state)["message"],
    )


def _waiting(gap: ContextGap) -> InjectionRecord:
    return _record(gap, "pending")


def _record(gap: ContextGap, status: RecordStatus) -> InjectionRecord:
    return InjectionRecord(
        gap_id=gap.gap_id, need=gap.need, agent=gap.agent, reason=gap.reason, status=status, at=gap.detected_at
    )


def _notes(result: InjectionResult) -> str:
    gap = result.gap
    kept = _counted(len(result.contexts_retrieved), "context")
    outcome = (
        f"gave it {kept}, {result.total_tokens} tokens, in {result.injection_target}"
        if result.injected
        else f"found nothing worth its tokens among {_counted(len(result.dropped), 'context')}"
    )
    failed = f"; failed: {', '.join(failure.source for failure in result.failures)}" if result.failures else ""
    waiting = f"; {_counted(len(result.pending), 'more gap')} waiting" if result.pending else ""
    return f"{gap.agent} lacks context ({gap.reason}, {gap.confidence:.2f}): {outcome}{failed}{waiting}"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
