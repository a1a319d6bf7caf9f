"""The facts of a result without text, for logs, events, traces and metrics."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from langgraph_scrum_master._internal import telemetry
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.recorders import record as hand_over
from langgraph_scrum_master.model import InjectionRecord, InjectionResult
from langgraph_scrum_master.protocols import Recorder, RecordsOutcomes

GapOutcome: TypeAlias = Literal["injected", "abstained", "escalated"]
"""The outcome of a step with a gap."""


def outcome(result: InjectionResult) -> GapOutcome:
    """The outcome of a result."""
    if result.injected:
        return "injected"
    return "escalated" if result.escalated else "abstained"


def facts(result: InjectionResult) -> dict[str, Any]:
    """The facts of a result, without text."""
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
        **({"model_tokens": result.model_tokens} if result.model_tokens else {}),
    }


def count_result(result: InjectionResult) -> None:
    """Update the metrics for a result."""
    reason = result.gap.reason
    if not result.escalated:
        telemetry.count("gaps", reason=reason)
    counted = {"injected": "injections", "abstained": "abstentions", "escalated": "escalations"}[outcome(result)]
    telemetry.count(counted, reason=reason)
    telemetry.measure("duration", result.duration_ms / 1000, outcome=outcome(result))
    if result.injected:
        telemetry.measure("tokens", result.total_tokens, reason=reason)
    for failure in result.failures:
        telemetry.count("source_failures", source=failure.source, late=failure.late)


def log(result: InjectionResult) -> None:
    """Log the facts of a result."""
    logger.info(f"context.{outcome(result)}", **facts(result))


async def record_outcome(record: InjectionRecord, recorder: Recorder | None, seconds: float, logged: bool) -> None:
    """Log and count the outcome of an injection, and pass it to the recorder if it records outcomes."""
    if logged:
        logger.info(f"injection.{record.outcome}", gap_id=record.gap_id, agent=record.agent, reason=record.reason)
    telemetry.count("outcomes", outcome=record.outcome, reason=record.reason)
    outcomes: object = recorder
    if isinstance(outcomes, RecordsOutcomes):
        await hand_over(record, outcomes.record_outcome, seconds, gap_id=record.gap_id)


async def record_result(
    result: InjectionResult, recorder: Recorder | None, seconds: float, origin: object = None
) -> None:
    """Pass the result to the recorder, if there is one. Failures and delays do not affect the step."""
    await hand_over(result, recorder, seconds, origin, gap_id=result.gap.gap_id)
