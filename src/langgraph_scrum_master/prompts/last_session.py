"""The summary of the last session."""

from __future__ import annotations

from collections.abc import Iterable

from langgraph_scrum_master._internal.breakers import origin_of
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import SessionMemory, State


class SessionSource:
    """The summary of the session that ended last."""

    name = "session"

    def __init__(self, memory: SessionMemory) -> None:
        self._memory = memory
        self.origin = origin_of(memory)

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """The summary as a context, if there is one."""
        summary = await self._memory.last_session()
        if summary is None or not summary.content.strip():
            return []
        return [
            RetrievedContext(
                source="session",
                content=summary.content,
                relevance_score=1.0,
                metadata=summary.metadata,
                retrieved_at=query.now,
                key=summary.key,
                created_at=str(summary.metadata.get("created_at", "")),
            )
        ]
