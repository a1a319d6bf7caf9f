"""What the team remembers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master.errors import EmbeddingError
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import MemoryStore, State, supports


class MemorySource:
    """Memories, decisions and patterns of a store, each once."""

    name = "memory"

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts with the store's own scores."""
        try:
            found = await answers_in(self._memory, query)
        except EmbeddingError as error:
            if not supports(self._memory, "words"):
                raise
            logger.warning("query.not_embedded", error=str(error))
            found = await self._memory.search_by_words(query.text, k=query.k)
        return [remembered(query, result) for result in found]


async def answers_in(memory: MemoryStore, query: Query) -> Sequence[MemoryResult]:
    """What a memory holds that may answer; one that only knows texts is asked with and without what was said."""
    if supports(memory, "answers"):
        return await memory.search_answers(query.text, query.around, k=query.k)
    found = {result.key: result for result in await memory.search_similar(query.text, k=query.k)}
    if query.around:
        said = "\n".join((query.text, *(text for text, _ in query.around)))
        for result in await memory.search_similar(said, k=query.k):
            if result.key not in found or found[result.key].score < result.score:
                found[result.key] = result
    return sorted(found.values(), key=lambda result: -result.score)[: query.k]


def remembered(query: Query, result: MemoryResult) -> RetrievedContext:
    """A memory as context, with why it was found."""
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
    said = result.metadata
    match said.get("kind"):
        case "decision":
            by = f"decision of {said.get('agent_type', '')}"
            return f"{result.key}, {by}" if not result.key.startswith("decision:") else by.capitalize()
        case "pattern":
            return f"Pattern: {said.get('name', '')}"
        case _:
            return str(said.get("title", ""))
