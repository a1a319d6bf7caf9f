"""Memories that are similar to a query."""

from __future__ import annotations

from collections.abc import Iterable

from langgraph_scrum_master._internal.breakers import origin_of
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import MemoryStore, State
from langgraph_scrum_master.retrieval.sources.memory import remembered


class SimilarSource:
    """The results of one search over all kinds of records."""

    name = "memory"

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory
        self.origin = origin_of(memory)

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """The `query.k` best, with the store's own scores."""
        return [remembered(query, result) for result in await self._memory.search_similar(query.text, k=query.k)]
