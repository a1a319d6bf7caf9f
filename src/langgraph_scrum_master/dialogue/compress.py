"""A dialogue's content in fewer tokens: section by section into its budget, or all of it, level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from langgraph_scrum_master.dialogue.history import LEVELS, Summarize, compress_history, shorten_history
from langgraph_scrum_master.dialogue.model import (
    CompressionLevel,
    ContextContent,
    EntityContext,
    KnowledgeChunk,
    SystemPrompt,
)
from langgraph_scrum_master.errors import CannotCompressError
from langgraph_scrum_master.protocols import TokenCounter
from langgraph_scrum_master.text.similarity import SaidTexts
from langgraph_scrum_master.text.trim import trim

BELOW: dict[CompressionLevel, float] = {"light": 0.2, "medium": 0.4, "heavy": 0.6}
"""The level that serves where less than this share must go; beyond, only the essential is told."""

MOST_ENTITIES = {"heavy": 3, "extreme": 1}
MOST_CHUNKS = {"medium": 3, "heavy": 2, "extreme": 1}


def compression_level(reduction: float) -> CompressionLevel:
    """The level for a share of the tokens that must go."""
    return next((level for level, below in BELOW.items() if reduction < below), LEVELS[-1])


async def handle_overflow(
    content: ContextContent, budget: Mapping[str, int], summarize: Summarize, count: TokenCounter
) -> ContextContent:
    """The content with every section within its tokens."""
    return replace(
        content,
        system=truncate_system(content.system, budget["system"], count),
        history=await compress_history(content.history, budget["history"], summarize, count),
        entities=prioritize_entities(content.entities, budget["entities"], count),
        rag_chunks=select_chunks(content.rag_chunks, budget["rag"], count),
    )


async def compress(
    content: ContextContent, target_tokens: int, summarize: Summarize, count: TokenCounter
) -> ContextContent:
    """The content within so many tokens, at the level that should do or one above; an error if none does."""
    before = content.total_tokens(count)
    if before <= target_tokens:
        return content
    start = LEVELS.index(compression_level((before - target_tokens) / before))
    content = await compress_at_level(content, LEVELS[start], summarize, count)
    for level in LEVELS[start + 1 :]:
        if content.total_tokens(count) <= target_tokens:
            break
        content = await _step(content, level, summarize, count)
    if (least := content.total_tokens(count)) > target_tokens:
        raise CannotCompressError(
            f"{before} tokens cannot be compressed to {target_tokens!r}: {least} are left of them, give as many or more"
        )
    return content


async def compress_at_level(
    content: ContextContent, level: CompressionLevel, summarize: Summarize, count: TokenCounter
) -> ContextContent:
    """The content at a level: what the lighter ones leave out is left out as well, so it never has more tokens."""
    for each in LEVELS[: LEVELS.index(level) + 1]:
        content = await _step(content, each, summarize, count)
    return content


async def _step(
    content: ContextContent, level: CompressionLevel, summarize: Summarize, count: TokenCounter
) -> ContextContent:
    entities: Sequence[EntityContext] = content.entities
    if level == "medium":
        entities = reduce_entities(entities, count)
    chunks = _distinct(content.rag_chunks) if level == "light" else content.rag_chunks
    shorter = replace(
        content,
        history=await shorten_history(content.history, level, summarize, count),
        entities=tuple(_by_relevance(entities)[: MOST_ENTITIES.get(level)]),
        rag_chunks=top_chunks(chunks, MOST_CHUNKS.get(level)),
    )
    # Side by side, texts may have other tokens than each by itself.
    before, after = content.tokens(count), shorter.tokens(count)
    if after["entities"] > before["entities"]:
        shorter = replace(shorter, entities=content.entities)
    if after["rag"] > before["rag"]:
        shorter = replace(shorter, rag_chunks=content.rag_chunks)
    return shorter


def truncate_system(prompt: SystemPrompt, max_tokens: int, count: TokenCounter) -> SystemPrompt:
    """The prompt within so many tokens: preferences go first, the last of them foremost, then the personality."""
    while prompt.preferences and count(prompt.text) > max_tokens:
        prompt = replace(prompt, preferences=prompt.preferences[:-1])
    if prompt.instructions and count(prompt.text) > max_tokens:
        prompt = replace(prompt, personality="")
    if count(prompt.text) <= max_tokens:
        return prompt
    return SystemPrompt(instructions=trim(prompt.text, lambda start: count(start) <= max_tokens))


def prioritize_entities(
    entities: Sequence[EntityContext], max_tokens: int, count: TokenCounter
) -> tuple[EntityContext, ...]:
    """As many of the most relevant as fit, in their shorter form where the longer one does not."""
    kept: tuple[EntityContext, ...] = ()
    for entity in _by_relevance(entities):
        for form in (entity, *reduce_entities([entity], count)):
            if count(ContextContent(entities=(*kept, form)).texts["entities"]) <= max_tokens:
                kept = (*kept, form)
                break
    return kept


def select_chunks(chunks: Sequence[KnowledgeChunk], max_tokens: int, count: TokenCounter) -> tuple[KnowledgeChunk, ...]:
    """As many as fit, the best first, as they come: a reranker's order is not the relevance's."""
    kept: tuple[KnowledgeChunk, ...] = ()
    for chunk in chunks:
        if count(ContextContent(rag_chunks=(*kept, chunk)).texts["rag"]) <= max_tokens:
            kept = (*kept, chunk)
    return kept


def top_chunks(chunks: Sequence[KnowledgeChunk], limit: int | None) -> tuple[KnowledgeChunk, ...]:
    """The best so many, or all."""
    return tuple(chunks if limit is None else chunks[: max(0, limit)])


def reduce_entities(entities: Sequence[EntityContext], count: TokenCounter) -> list[EntityContext]:
    """The entities in their shorter form, where there is one that has fewer tokens."""
    return [
        replace(entity, formatted=entity.compressed)
        if entity.compressed and count(entity.compressed) < count(entity.formatted)
        else entity
        for entity in entities
    ]


def _distinct(chunks: Sequence[KnowledgeChunk]) -> list[KnowledgeChunk]:
    """The pieces without those that say what a better one says."""
    shelf, known = SaidTexts(), set[str]()
    kept: list[KnowledgeChunk] = []
    for chunk in chunks:
        if chunk.chunk_id not in known and shelf.add(chunk.content):
            kept.append(chunk)
            known.add(chunk.chunk_id)
    return kept


def _by_relevance(entities: Sequence[EntityContext]) -> list[EntityContext]:
    return sorted(entities, key=lambda entity: -entity.relevance)
