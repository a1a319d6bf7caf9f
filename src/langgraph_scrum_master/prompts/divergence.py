"""Whether a query is about something else than what was worked on lately."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.model import DivergenceAlert, Query, RetrievedContext, instant
from langgraph_scrum_master.protocols import SessionMemory, State
from langgraph_scrum_master.rank.spaces import SPACES, Space
from langgraph_scrum_master.text.terms import terms
from langgraph_scrum_master.text.trim import trim

LATELY = 2 * 3_600.0
"""Seconds."""

COMPARED = 10
"""The newest memories, with which the query is compared."""

_MOST = 3
"""Alerts at once, the least similar first."""

LEAST_WORDS = 3
"""Words that a query must have: "go on" is about nothing, and no shift."""

EXCEPTIONS = 1
"""Spaces beside the first that may find it similar."""

SUMMARY = 120
"""Characters of the memory that an alert quotes."""

# Letters of scripts that put no blanks between words, of which a word has about two.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")

_LOOKED_AT = [space for space in SPACES if space.code in ("E1", "E6", "E7", "E10", "E12", "E13")]
"""The spaces that tell what a text is about."""


class DivergenceSource:
    """Alerts where a query is unlike all that the session, or the last two hours, brought to memory."""

    name = "alert"

    def __init__(self, memory: SessionMemory) -> None:
        self._memory = memory

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """At most three alerts, the least similar first; none as long as the query is like anything recent."""
        if max(len(terms(query.text)), len(_UNSPACED.findall(query.text)) // 2) < LEAST_WORDS:
            return []
        since = datetime.fromtimestamp(instant(query.now) - LATELY, UTC).isoformat()
        recent = await self._memory.recent(query.text, query.session, since, k=COMPARED)
        return [_context(query, alert) for alert in divergence(recent)]


def goes_on(query: Query, found: Sequence[RetrievedContext], bar: float) -> bool:
    """Whether anything recent was found that serves the query: then it is no shift, and nothing need be compared."""
    since = instant(query.now) - LATELY
    serving = (context for context in found if context.source == "memory" and context.relevance_score >= bar)
    return any(
        instant(context.created_at) >= since or (query.session and context.metadata.get("session") == query.session)
        for context in serving
    )


def divergence(recent: Sequence[MemoryResult]) -> list[DivergenceAlert]:
    """In which spaces the query is unlike all of these; nothing unless it is in meaning and in most others."""
    alerts = [(space, _alert(space, nearest)) for space in _LOOKED_AT if (nearest := _nearest(space, recent))]
    unlike = [alert for space, alert in alerts if alert.similarity < space.diverges]
    in_meaning = any(alert.space == "E1" for alert in unlike)
    if not in_meaning or len(alerts) - len(unlike) > EXCEPTIONS:
        return []
    return sorted(unlike, key=lambda alert: (alert.similarity, alert.space != "E1"))[:_MOST]


def _nearest(space: Space, recent: Sequence[MemoryResult]) -> MemoryResult | None:
    """The one that is most like the query, the newest of several; None where the space has nothing to say."""
    speaking = [result for result in recent if space.code in result.strengths]
    return max(speaking, key=lambda result: result.strengths[space.code], default=None)


def _alert(space: Space, nearest: MemoryResult) -> DivergenceAlert:
    said = " ".join(nearest.content.split()).replace('"', "'")
    return DivergenceAlert(
        space=space.code,
        space_name=f"{space.name.split(maxsplit=1)[1].capitalize()} space",
        memory_id=nearest.key,
        recent_memory_summary=trim(said, lambda start: len(start) <= SUMMARY, "...") or said[:SUMMARY],
        similarity=round(nearest.strengths[space.code], 2),
    )


def _context(query: Query, alert: DivergenceAlert) -> RetrievedContext:
    said = f'Recent activity in {alert.space_name}: "{alert.recent_memory_summary}"'
    return RetrievedContext(
        source="alert",
        content=f"{said}\nCurrent appears different - similarity: {alert.similarity:.2f}",
        relevance_score=1 - alert.similarity,
        metadata=alert.to_dict(),
        retrieved_at=query.now,
        key=f"alert:{alert.space}",
        title=alert.space_name,
    )
