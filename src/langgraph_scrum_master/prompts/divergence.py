"""Detects that a query differs from its session so far."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from langgraph_scrum_master._internal.breakers import origin_of
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.prompts.result import DivergenceAlert
from langgraph_scrum_master.protocols import SessionMemory, State
from langgraph_scrum_master.rank.spaces import SPACES, Space
from langgraph_scrum_master.text.terms import terms
from langgraph_scrum_master.text.trim import trim

COMPARED = 10
"""The number of latest turns that the query is compared with."""

_MAX_ALERTS = 3
"""The maximum number of alerts per query."""

LEAST_WORDS = 3
"""The minimum number of words in a query: "go on" is no change of topic."""

MAX_EXCEPTIONS = 1
"""The number of spaces besides E1 in which the query may still be similar."""

MAX_SUMMARY = 120
"""The maximum number of characters that an alert quotes."""

# Letters of scripts without spaces between words. A word has about two.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")

_TOPIC_SPACES = [space for space in SPACES if space.code in ("E1", "E6", "E7", "E10", "E12", "E13")]
"""The spaces that depend on the topic of a text."""


class DivergenceSource:
    """Alerts if a query differs from the latest turns of its session.

    Memories of other sessions are not compared: they are notes on anything, and not what the user was working on.
    """

    name = "alert"

    def __init__(self, memory: SessionMemory) -> None:
        self._memory = memory
        self.origin = origin_of(memory)

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Up to three alerts, least similar first; none if the query is similar to a turn."""
        if not query.session or max(len(terms(query.text)), len(_UNSPACED.findall(query.text)) // 2) < LEAST_WORDS:
            return []
        return [_context(query, alert) for alert in divergence(await own_turns(self._memory, query, COMPARED))]


async def own_turns(memory: SessionMemory, query: Query, k: int) -> list[MemoryResult]:
    """The latest memories of the query's session, newest first, without its summary."""
    recent = await memory.recent(query.text, query.session, query.now, k=k + 1)
    own = [each for each in recent if each.metadata.get("session") == query.session]
    return [each for each in own if each.metadata.get("kind") != "session"][:k]


def continues(query: Query, contexts: Sequence[RetrievedContext], bar: float) -> bool:
    """Whether a memory of the session is relevant to the query. Then there is no change of topic to detect."""
    own = (context for context in contexts if context.metadata.get("session") == query.session)
    return any(context.source == "memory" and context.relevance_score >= bar for context in own)


def divergence(recent: Sequence[MemoryResult]) -> list[DivergenceAlert]:
    """Alerts for the spaces in which the query differs from all of these, if these include E1 and most others."""
    alerts = [(space, _alert(space, nearest)) for space in _TOPIC_SPACES if (nearest := _nearest(space, recent))]
    divergent = [alert for space, alert in alerts if alert.similarity < space.diverges]
    differs_in_meaning = any(alert.space == "E1" for alert in divergent)
    if not differs_in_meaning or len(alerts) - len(divergent) > MAX_EXCEPTIONS:
        return []
    return sorted(divergent, key=lambda alert: (alert.similarity, alert.space != "E1"))[:_MAX_ALERTS]


def _nearest(space: Space, recent: Sequence[MemoryResult]) -> MemoryResult | None:
    """The most similar memory, the newest of equals; None if the space does not apply."""
    scored = [result for result in recent if space.code in result.strengths]
    return max(scored, key=lambda result: result.strengths[space.code], default=None)


def _alert(space: Space, nearest: MemoryResult) -> DivergenceAlert:
    text = " ".join(nearest.content.split()).replace('"', "'")
    return DivergenceAlert(
        space=space.code,
        space_name=f"{space.name.split(maxsplit=1)[1].capitalize()} space",
        memory_id=nearest.key,
        recent_memory_summary=trim(text, lambda start: len(start) <= MAX_SUMMARY, "...") or text[:MAX_SUMMARY],
        similarity=round(nearest.strengths[space.code], 2),
    )


def _context(query: Query, alert: DivergenceAlert) -> RetrievedContext:
    activity = f'Recent activity in {alert.space_name}: "{alert.recent_memory_summary}"'
    return RetrievedContext(
        source="alert",
        content=f"{activity}\nCurrent appears different - similarity: {alert.similarity:.2f}",
        relevance_score=1 - alert.similarity,
        metadata=alert.to_dict(),
        retrieved_at=query.now,
        key=f"alert:{alert.space}",
        title=alert.space_name,
    )
