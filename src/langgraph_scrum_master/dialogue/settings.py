"""The settings of a dialogue's prompt: history, entities, document chunks, and the token budget."""

from __future__ import annotations

from dataclasses import dataclass

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.settings import (
    check_settings,
    flag,
    number_between,
    setting,
    template_text,
    whole_number,
)
from langgraph_scrum_master.config import TokenBudget
from langgraph_scrum_master.errors import ConfigError

DIALOGUE_BUDGET = TokenBudget(system=500, history=1000, entities=500, rag=1500, query=596)
"""Budget of a dialogue turn, for a prompt of 4096 tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig(Plain):
    """How a dialogue's history is rendered."""

    verbatim_turns: int = setting(6, whole_number(1))
    """Number of latest turns that are quoted verbatim; older ones are summarised."""
    max_summary_tokens: int = setting(500, whole_number(1))
    """Maximum tokens of the summary."""
    include_speakers: bool = setting(True, flag())
    """Whether the speaker's name precedes each turn."""
    include_timestamps: bool = setting(False, flag())
    """Whether each turn starts with hours and minutes, from its timestamp."""
    template: str = setting("", template_text("text", "speaker", "time", at_the_end=True))
    """Template for a turn, such as `<{speaker}, {time}> {text}`."""

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityContextConfig(Plain):
    """How entities are rendered in a prompt."""

    max_entities: int = setting(10, whole_number(0))
    """Maximum number of entities."""
    min_relevance: float = setting(0.3, number_between(0, 1))
    """Entities below it are omitted. With the default, an entity drops out six turns after its last mention."""
    attributes_per_entity: int = setting(5, whole_number(0))
    """Maximum number of attributes per entity."""
    include_relationships: bool = setting(True, flag())
    """Whether related entities are listed."""
    half_life: float = setting(5.0, number_between(0.01, 1_000_000))
    """Turns after which the salience of an entity that is not mentioned halves."""
    template: str = setting("", template_text("name", "type", "description", "attributes", "related"))
    """Template for an entity, such as `{name} ({type}): {attributes}`."""

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RAGConfig(Plain):
    """How documents are split, and which chunks are retrieved."""

    initial_retrieval_count: int = setting(20, whole_number(1))
    """Number of candidate chunks."""
    final_chunk_count: int = setting(5, whole_number(1))
    """Number of chunks in the prompt."""
    min_relevance: float = setting(0.5, number_between(0, 1))
    """Chunks below it are omitted. From 0.7 a chunk is worth its tokens on its own; lower ones may complement it."""
    enable_reranking: bool = setting(True, flag())
    """Whether to use the reranker, if there is one."""
    rerank_deadline: float = setting(3.0, number_between(0.001, 3600))
    """Seconds for the reranker, less than the deadline of a whole prompt. After a timeout, the order is unchanged."""
    recency_weight: float = setting(0.3, number_between(0, 1))
    """Weight of a document's recency: up to 0.2 of it is added to the relevance."""
    entity_weight: float = setting(0.5, number_between(0, 1))
    """Weight of the entities that a chunk names: up to 0.3 of it is added to the relevance."""
    chunk_tokens: int = setting(300, whole_number(20))
    """Maximum size of a chunk."""
    overlap_tokens: int = setting(40, whole_number(0))
    """Maximum overlap with the previous chunk where a section is split."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.overlap_tokens > self.chunk_tokens // 2:
            most = f"at most half of chunk_tokens, {self.chunk_tokens // 2}"
            raise ConfigError(f"overlap_tokens must be {most}, got {self.overlap_tokens!r}")
