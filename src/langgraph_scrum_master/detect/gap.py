"""Making a gap out of evidence."""

from __future__ import annotations

from langgraph_scrum_master.model import ContextGap, GapReason, Observation, digest
from langgraph_scrum_master.shapes import well_formed

UNKNOWN_AGENT = "unknown"

LONGEST_QUERY = 1_000
"""Characters of a query; what is longer is no question but a document."""


def gap(
    observation: Observation,
    *,
    agent: str,
    reason: GapReason | str,
    query: str,
    confidence: float,
    indicators: tuple[str, ...],
    missing: tuple[str, ...] = (),
    parts: tuple[str, ...] = (),
) -> ContextGap:
    """The gap, with an id that the same evidence gives again."""
    agent = well_formed(agent or observation.current_agent or UNKNOWN_AGENT)
    query = well_formed(query)
    query = query if len(query) <= LONGEST_QUERY else query[:LONGEST_QUERY].rsplit(" ", 1)[0]
    return ContextGap(
        gap_id=f"gap-{digest(agent, reason, query, *indicators)}",
        agent=agent,
        reason=reason,
        context_query=query,
        confidence=confidence,
        indicators=indicators,
        detected_at=observation.now,
        missing=missing,
        parts=tuple(well_formed(part) for part in parts) if len(parts) > 1 else (),
    )
