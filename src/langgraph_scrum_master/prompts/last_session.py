"""What the last session came to."""

from __future__ import annotations

from collections.abc import Iterable

from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import SessionMemory, State


class SessionSource:
    """The summary of the session that ended last."""

    name = "session"

    def __init__(self, memory: SessionMemory) -> None:
        self._memory = memory

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """One context, or none."""
        found = await self._memory.last_session()
        if found is None or not found.content.strip():
            return []
        return [
            RetrievedContext(
                source="session",
                content=found.content,
                relevance_score=1.0,
                metadata=found.metadata,
                retrieved_at=query.now,
                key=found.key,
                created_at=str(found.metadata.get("created_at", "")),
            )
        ]
