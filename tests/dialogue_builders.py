"""Values of a dialogue for tests, and small places to look things up in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph_scrum_master._internal.threads import wait_for
from langgraph_scrum_master.dialogue import (
    ContextContent,
    DialogueTurn,
    EntityContext,
    FormattedHistory,
    HistoryConfig,
    KnowledgeChunk,
    ResolvedEntity,
)
from langgraph_scrum_master.dialogue.history import format_history
from langgraph_scrum_master.text.extract import extract
from langgraph_scrum_master.text.tokens import estimate_tokens


def a_turn(text: str, speaker: str = "user", **fields: Any) -> DialogueTurn:
    return DialogueTurn(**({"turn_id": f"t-{text[:12]}", "speaker": speaker, "text": text} | fields))


def a_dialogue(turns: int, words: str = "We talk of rivers and gardens, part {}.") -> tuple[DialogueTurn, ...]:
    return tuple(a_turn(words.format(i), ("assistant", "user")[i % 2], turn_id=f"t{i}") for i in range(1, turns + 1))


def a_chunk(content: str = "Paper is wood.", relevance: float = 0.9, **fields: Any) -> KnowledgeChunk:
    title = fields.get("title", "Handbook")
    defaults: dict[str, Any] = {
        "chunk_id": f"c-{content[:20]}",
        "doc_id": "d1",
        "title": title,
        "formatted": f"Source: {title}\n---\n{content}\n---",
    }
    return KnowledgeChunk(content=content, relevance=relevance, **(defaults | fields))


def an_entity(name: str = "John Smith", relevance: float = 0.9, **fields: Any) -> EntityContext:
    defaults: dict[str, Any] = {
        "entity_id": name.lower(),
        "entity_type": "person",
        "description": "An engineer who looks after the paper machine",
        "attributes": (("email", "john@example.org"), ("department", "Engineering")),
        "relationships": (),
        "formatted": f"• {name} (person)\n  An engineer who looks after the paper machine\n  email: john@example.org",
        "compressed": f"• {name} (person)",
    }
    return EntityContext(name=name, relevance=relevance, **(defaults | fields))


async def by_extract(text: str, max_tokens: int) -> str:
    return extract(text, max_tokens, estimate_tokens)


def a_history(
    turns: Sequence[DialogueTurn], max_tokens: int = 1000, config: HistoryConfig | None = None
) -> FormattedHistory:
    return wait_for(format_history(turns, max_tokens, by_extract, estimate_tokens, config or HistoryConfig()))


def a_content(turns: int = 12, entities: int = 5, chunks: int = 5, **fields: Any) -> ContextContent:
    defaults: dict[str, Any] = {
        "history": a_history(a_dialogue(turns)),
        "entities": tuple(an_entity(f"Person {i}", 1 - i / 100) for i in range(entities)),
        "rag_chunks": tuple(a_chunk(f"Fact {i} of paper is {i}.", 1 - i / 100) for i in range(chunks)),
    }
    return ContextContent(**(defaults | fields))


class People:
    """Entities that are known by their name."""

    def __init__(self, *entities: EntityContext, active: int | None = None) -> None:
        self.entities = entities
        self.active_count = len(entities) if active is None else active

    def resolve(self, text: str) -> Sequence[ResolvedEntity]:
        named = (entity for entity in self.entities if entity.name.lower() in text.lower())
        return [ResolvedEntity(entity_id=each.entity_id, canonical_name=each.name, confidence=1.0) for each in named]

    def contexts(self, resolved: Sequence[ResolvedEntity]) -> Sequence[EntityContext]:
        first = {each.entity_id for each in resolved}
        return sorted(self.entities, key=lambda entity: entity.entity_id not in first)


class Books:
    """Documents that have a word of the query."""

    def __init__(self, *chunks: KnowledgeChunk) -> None:
        self.chunks = chunks

    async def retrieve(
        self, query: str, entities: Sequence[ResolvedEntity] = (), limit: int | None = None
    ) -> Sequence[KnowledgeChunk]:
        words = set(query.lower().strip("?").split())
        return [chunk for chunk in self.chunks if words & set(chunk.content.lower().strip(".").split())][:limit]
