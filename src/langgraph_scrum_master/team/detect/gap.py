"""Builds a gap from evidence."""

from __future__ import annotations

from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.model import Addressee, ContextGap, GapReason, Observation, Span, digest

UNKNOWN_AGENT = "unknown"

_LONGEST_QUERY = 1_000
"""Maximum characters of a query; longer texts are documents, not questions."""

LAST_TURNS, _LONGEST_TURN = 2, 300
"""Number of an agent's turns, and characters of each, that describe its current work."""

MOST_MISSING = 100
"""Maximum number of missing names."""

MOST_PARTS = 8
"""Maximum number of separate needs."""


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
    about: str = "",
    whom: Addressee | str = "",
    spans: tuple[Span, ...] = (),
) -> ContextGap:
    """A gap whose id is derived from its evidence."""
    agent = well_formed(agent or observation.current_agent or UNKNOWN_AGENT)
    query = _clipped(query)
    parts = tuple(dict.fromkeys(clipped for part in parts if (clipped := _clipped(part).strip())))
    return ContextGap(
        gap_id=f"gap-{digest(agent, reason, query, *indicators)}",
        agent=agent,
        reason=reason,
        context_query=query,
        confidence=confidence,
        indicators=indicators,
        detected_at=observation.now,
        missing=tuple(_clipped(name) for name in missing[:MOST_MISSING]),
        parts=parts[:MOST_PARTS] if len(parts) > 1 else (),
        about=about,
        whom=whom,
        spans=spans,
    )


def current_work(observation: Observation, agent: str) -> str:
    """The agent's current work, for a need without a name: the story or task, and its last turns."""
    own = [
        turn.text for turn in observation.turns if turn.kind == "agent" and turn.agent == agent and turn.text.strip()
    ]
    latest = [text[:_LONGEST_TURN] for text in own[-LAST_TURNS:]]
    return " ".join(filter(None, (observation.task, *latest)))


def _clipped(text: str) -> str:
    text = well_formed(text)
    return text if len(text) <= _LONGEST_QUERY else text[:_LONGEST_QUERY].rsplit(" ", 1)[0]
