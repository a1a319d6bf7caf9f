"""What the team remembers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from langgraph_scrum_master.errors import EmbeddingError
from langgraph_scrum_master.logs import logger
from langgraph_scrum_master.memories import Decision, DecisionResult, MemoryResult, PatternResult
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import MemoryStore, SearchesWords, State


class MemorySource:
    """Memories, decisions and patterns of a store; a memory found in several ways is offered once."""

    name = "memory"

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts with the store's own scores; a search that fails leaves the others, and raises if all do."""
        searches = await asyncio.gather(
            self._similar(query), self._decisions(query), self._patterns(query), return_exceptions=True
        )
        errors = [found for found in searches if isinstance(found, BaseException)]
        if len(errors) == len(searches):
            raise errors[0]
        for error in errors:
            logger.warning("search.failed", source=self.name, error=f"{type(error).__name__}: {error}")
        contexts = [context for found in searches if not isinstance(found, BaseException) for context in found]
        return {context.key: context for context in contexts}.values()

    async def _similar(self, query: Query) -> list[RetrievedContext]:
        try:
            found = await self._memory.search_similar(query.text, k=query.k)
        except EmbeddingError as error:
            if not isinstance(self._memory, SearchesWords):
                raise
            logger.warning("query.not_embedded", error=str(error))
            found = await self._memory.search_by_words(query.text, k=query.k)
        return [remembered(query, result) for result in found]

    async def _decisions(self, query: Query) -> list[RetrievedContext]:
        found = await self._memory.search_decisions(query.text, k=query.k)
        return [_decided(query, hit) for hit in found]

    async def _patterns(self, query: Query) -> list[RetrievedContext]:
        found = await self._memory.search_patterns(query.text, k=query.k)
        return [_habit(query, hit) for hit in found]


def _decided(query: Query, hit: DecisionResult) -> RetrievedContext:
    decision = hit.decision
    return RetrievedContext(
        source="memory",
        content=decision.text,
        relevance_score=hit.similarity,
        strengths=hit.strengths,
        weighted_agreement=hit.weighted_agreement,
        metadata={"kind": "decision", "agent": decision.agent_type, "type": decision.decision_type},
        retrieved_at=query.now,
        key=decision.id,
        title=_decision_title(decision),
        created_at=decision.timestamp,
    )


def _habit(query: Query, hit: PatternResult) -> RetrievedContext:
    pattern = hit.pattern
    return RetrievedContext(
        source="memory",
        content=pattern.text,
        relevance_score=hit.similarity,
        strengths=hit.strengths,
        weighted_agreement=hit.weighted_agreement,
        metadata={"kind": "pattern", "type": pattern.pattern_type},
        retrieved_at=query.now,
        key=pattern.id,
        title=f"Pattern: {pattern.name}",
        created_at=pattern.created_at,
    )


def remembered(query: Query, result: MemoryResult) -> RetrievedContext:
    """A memory as context, with why it was found."""
    return RetrievedContext(
        source="memory",
        content=result.content,
        relevance_score=result.score,
        metadata=result.metadata,
        retrieved_at=query.now,
        key=result.key,
        title=str(result.metadata.get("title", "")),
        created_at=str(result.metadata.get("created_at") or result.metadata.get("timestamp") or ""),
        strengths=result.strengths,
        weighted_agreement=result.weighted_agreement,
    )


def _decision_title(decision: Decision) -> str:
    named = not decision.id.startswith("decision:")
    return f"{decision.id}, decision of {decision.agent_type}" if named else f"Decision of {decision.agent_type}"
