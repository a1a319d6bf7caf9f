"""The memory as a source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph_scrum_master._internal.breakers import origin_of
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master.errors import EmbeddingError
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import MemoryStore, Opens, State, supports


class MemorySource:
    """Memories, decisions and patterns of a store."""

    name = "memory"

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    @property
    def origin(self) -> object:
        """What the calls of the store go to."""
        return origin_of(self._memory)

    async def open(self) -> None:
        """Load what the first search would load."""
        if isinstance(self._memory, Opens):
            await self._memory.open()

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts with the store's own scores."""
        try:
            results = await answers_in(self._memory, query)
        except EmbeddingError as error:
            if not supports(self._memory, "words"):
                raise
            logger.warning("query.not_embedded", error=str(error))
            results = await self._memory.search_by_words(query.text, k=query.k)
        return [remembered(query, result) for result in results]


async def answers_in(memory: MemoryStore, query: Query) -> Sequence[MemoryResult]:
    """The memories that may answer. A store without `answers` is searched with and without the surrounding text."""
    if supports(memory, "answers"):
        return await memory.search_answers(query.text, query.around, k=query.k)
    results = {result.key: result for result in await memory.search_similar(query.text, k=query.k)}
    if query.around:
        with_surroundings = "\n".join((query.text, *(text for text, _ in query.around)))
        for result in await memory.search_similar(with_surroundings, k=query.k):
            if result.key not in results or results[result.key].score < result.score:
                results[result.key] = result
    return sorted(results.values(), key=lambda result: -result.score)[: query.k]


def remembered(query: Query, result: MemoryResult) -> RetrievedContext:
    """A search result as a context, with its strengths."""
    return RetrievedContext(
        source="memory",
        content=result.content,
        relevance_score=result.score,
        metadata=result.metadata,
        retrieved_at=query.now,
        key=result.key,
        title=_title(result),
        created_at=str(result.metadata.get("created_at") or result.metadata.get("timestamp") or ""),
        strengths=result.strengths,
        weighted_agreement=result.weighted_agreement,
    )


def _title(result: MemoryResult) -> str:
    metadata = result.metadata
    match metadata.get("kind"):
        case "decision":
            by = f"decision of {metadata.get('agent_type', '')}"
            return f"{result.key}, {by}" if not result.key.startswith("decision:") else by.capitalize()
        case "pattern":
            return f"Pattern: {metadata.get('name', '')}"
        case _:
            return str(metadata.get("title", ""))
