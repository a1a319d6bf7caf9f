"""What a dialogue is told about the people and things it names, and from documents."""

from __future__ import annotations

from dataclasses import dataclass

from langgraph_scrum_master.codec import Plain
from langgraph_scrum_master.model import clamp, freeze


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedEntity(Plain):
    """An entity that a text names."""

    entity_id: str
    canonical_name: str
    confidence: float
    """1 if the text has its name, less for an alias, and less still for a near-miss."""
    mention: str = ""
    """The words of the text."""

    def __post_init__(self) -> None:
        clamp(self, "confidence", 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRelationship(Plain):
    """How an entity is related to another."""

    relation: str
    target_id: str
    target_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityContext(Plain):
    """What a prompt says about an entity."""

    entity_id: str
    name: str
    entity_type: str
    description: str
    attributes: tuple[tuple[str, str], ...]
    relationships: tuple[EntityRelationship, ...]
    relevance: float
    formatted: str
    compressed: str
    """The same in one line."""

    def __post_init__(self) -> None:
        freeze(self, "relationships")
        object.__setattr__(self, "attributes", tuple((name, value) for name, value in self.attributes))
        clamp(self, "relevance", 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeChunk(Plain):
    """A piece of a document that serves a query."""

    chunk_id: str
    doc_id: str
    title: str
    content: str
    relevance: float
    date: str = ""
    url: str = ""
    formatted: str

    def __post_init__(self) -> None:
        clamp(self, "relevance", 0.0, 1.0)
