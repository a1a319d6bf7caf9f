"""Making a gap out of evidence."""

from __future__ import annotations

from langgraph_scrum_master.model import ContextGap, GapReason, Observation, digest

UNKNOWN_AGENT = "unknown"


def gap(
    observation: Observation,
    *,
    agent: str,
    reason: GapReason,
    query: str,
    confidence: float,
    indicators: tuple[str, ...],
    missing: tuple[str, ...] = (),
) -> ContextGap:
    """The gap, with an id that the same evidence gives again."""
    agent = agent or observation.current_agent or UNKNOWN_AGENT
    return ContextGap(
        gap_id=f"gap-{digest(agent, reason, query, *indicators)}",
        agent=agent,
        reason=reason,
        context_query=query,
        confidence=confidence,
        indicators=indicators,
        detected_at=observation.now,
        missing=missing,
    )
