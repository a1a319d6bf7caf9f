"""Compresses the content of a dialogue prompt: each section to its budget, or all of it level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from langgraph_scrum_master.dialogue.history import LEVELS, Summarize, compress_history, extend_summary, shorten_history
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

MAX_REDUCTION: dict[CompressionLevel, float] = {"light": 0.2, "medium": 0.4, "heavy": 0.6}
"""The share of tokens below which a level is enough. Above the last, the level is extreme."""

MAX_ENTITIES = {"heavy": 3, "extreme": 1}
MAX_CHUNKS = {"medium": 3, "heavy": 2, "extreme": 1}


def compression_level(reduction: float) -> CompressionLevel:
    """The level for a reduction by a share of the tokens."""
    return next((level for level, limit in MAX_REDUCTION.items() if reduction < limit), LEVELS[-1])


async def handle_overflow(
    content: ContextContent, budget: Mapping[str, int], summarize: Summarize, count: TokenCounter
) -> ContextContent:
    """Fit every section to its budget."""
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
    """Compress the content to the target, starting at the level that should be enough.

    Raises `CannotCompressError` if no level is enough.
    """
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
        raise CannotCompressError(f"{before} tokens cannot be compressed to {target_tokens!r}: the minimum is {least}")
    room = count(content.history.text) + target_tokens - least
    return replace(content, history=await extend_summary(content.history, room, summarize, count))


async def compress_at_level(
    content: ContextContent, level: CompressionLevel, summarize: Summarize, count: TokenCounter
) -> ContextContent:
    """Apply a level and all lighter ones, so a heavier level never has more tokens."""
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
        entities=tuple(_by_relevance(entities)[: MAX_ENTITIES.get(level)]),
        rag_chunks=top_chunks(chunks, MAX_CHUNKS.get(level)),
    )
    # Token counts of joined texts may differ from the sum of their counts.
    before, after = content.tokens(count), shorter.tokens(count)
    if after["entities"] > before["entities"]:
        shorter = replace(shorter, entities=content.entities)
    if after["rag"] > before["rag"]:
        shorter = replace(shorter, rag_chunks=content.rag_chunks)
    return shorter


def truncate_system(prompt: SystemPrompt, max_tokens: int, count: TokenCounter) -> SystemPrompt:
    """Cut the prompt to fit: preferences from the last on, then the personality, then the end of the instructions."""
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
    """Select as many of the most relevant entities as fit, in compressed form where the full one does not fit."""
    selected: tuple[EntityContext, ...] = ()
    for entity in _by_relevance(entities):
        for form in (entity, *reduce_entities([entity], count)):
            if count(ContextContent(entities=(*selected, form)).texts["entities"]) <= max_tokens:
                selected = (*selected, form)
                break
    return selected


def select_chunks(chunks: Sequence[KnowledgeChunk], max_tokens: int, count: TokenCounter) -> tuple[KnowledgeChunk, ...]:
    """Select as many chunks as fit in the given order, which may be a reranker's and not that of the relevance."""
    selected: tuple[KnowledgeChunk, ...] = ()
    for chunk in chunks:
        if count(ContextContent(rag_chunks=(*selected, chunk)).texts["rag"]) <= max_tokens:
            selected = (*selected, chunk)
    return selected


def top_chunks(chunks: Sequence[KnowledgeChunk], limit: int | None) -> tuple[KnowledgeChunk, ...]:
    """The first `limit` chunks, or all."""
    return tuple(chunks if limit is None else chunks[: max(0, limit)])


def reduce_entities(entities: Sequence[EntityContext], count: TokenCounter) -> list[EntityContext]:
    """Use the compressed form of each entity where that saves tokens."""
    return [
        replace(entity, formatted=entity.compressed)
        if entity.compressed and count(entity.compressed) < count(entity.formatted)
        else entity
        for entity in entities
    ]


def _distinct(chunks: Sequence[KnowledgeChunk]) -> list[KnowledgeChunk]:
    """Remove chunks that duplicate a better one."""
    texts, ids = SaidTexts(), set[str]()
    selected: list[KnowledgeChunk] = []
    for chunk in chunks:
        if chunk.chunk_id not in ids and texts.add(chunk.content):
            selected.append(chunk)
            ids.add(chunk.chunk_id)
    return selected


def _by_relevance(entities: Sequence[EntityContext]) -> list[EntityContext]:
    return sorted(entities, key=lambda entity: -entity.relevance)
