"""Making a gap out of evidence."""

from __future__ import annotations

from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.model import Addressee, ContextGap, GapReason, Observation, Span, digest

UNKNOWN_AGENT = "unknown"

_LONGEST_QUERY = 1_000
"""Characters of a query; what is longer is no question but a document."""


LAST_TURNS, _LONGEST_TURN = 2, 300
"""Turns of an agent, and characters of each, that tell what it works on."""

MOST_MISSING = 100
"""Names of what is missing."""

MOST_PARTS = 8
"""Things that are looked for by themselves."""


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
    """The gap, with an id that the same evidence gives again."""
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
    """What the agent works on, for a need that nobody has named: the story or task, and its own last turns."""
    own = [
        turn.text for turn in observation.turns if turn.kind == "agent" and turn.agent == agent and turn.text.strip()
    ]
    said = [text[:_LONGEST_TURN] for text in own[-LAST_TURNS:]]
    return " ".join(filter(None, (observation.task, *said)))


def _clipped(text: str) -> str:
    text = well_formed(text)
    return text if len(text) <= _LONGEST_QUERY else text[:_LONGEST_QUERY].rsplit(" ", 1)[0]
