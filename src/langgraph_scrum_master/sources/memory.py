"""What the team remembers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from langgraph_scrum_master.model import Decision, MemoryResult, Query, RetrievedContext
from langgraph_scrum_master.protocols import MemoryStore, State


class MemorySource:
    """Memories, decisions and patterns of a store; a memory found in several ways is offered once."""

    name = "memory"

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts with the store's own scores."""
        similar, decisions, patterns = await asyncio.gather(
            self._memory.search_similar(query.text, k=query.k),
            self._memory.search_decisions(query.text, k=query.k),
            self._memory.search_patterns(query.text, k=query.k),
        )
        found = [_remembered(query, result) for result in similar]
        found += [
            RetrievedContext(
                source="memory",
                content=hit.decision.text,
                relevance_score=hit.similarity,
                metadata={"kind": "decision", "agent": hit.decision.agent_type, "type": hit.decision.decision_type},
                retrieved_at=query.now,
                key=hit.decision.id,
                title=_decision_title(hit.decision),
                created_at=hit.decision.timestamp,
            )
            for hit in decisions
        ]
        found += [
            RetrievedContext(
                source="memory",
                content=hit.pattern.text,
                relevance_score=hit.similarity,
                metadata={"kind": "pattern", "type": hit.pattern.pattern_type},
                retrieved_at=query.now,
                key=hit.pattern.id,
                title=f"Pattern: {hit.pattern.name}",
                created_at=hit.pattern.created_at,
            )
            for hit in patterns
        ]
        return {context.key: context for context in found}.values()


def _remembered(query: Query, result: MemoryResult) -> RetrievedContext:
    return RetrievedContext(
        source="memory",
        content=result.content,
        relevance_score=result.score,
        metadata=result.metadata,
        retrieved_at=query.now,
        key=result.key,
        title=str(result.metadata.get("title", "")),
        created_at=str(result.metadata.get("created_at", "")),
    )


def _decision_title(decision: Decision) -> str:
    named = not decision.id.startswith("decision:")
    return f"{decision.id}, decision of {decision.agent_type}" if named else f"Decision of {decision.agent_type}"
