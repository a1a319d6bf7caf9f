"""MeTTa predicates for documents."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph_scrum_master._internal.shapes import read, text_of
from langgraph_scrum_master._internal.threads import wait_for
from langgraph_scrum_master.dialogue.compress import select_chunks, top_chunks
from langgraph_scrum_master.dialogue.knowledge import KnowledgeBase, SearchResult, format_chunk
from langgraph_scrum_master.dialogue.metta.values import Predicates, instance
from langgraph_scrum_master.dialogue.model import KnowledgeChunk, ResolvedEntity
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.protocols import TokenCounter


def knowledge_predicates(base: KnowledgeBase, count: TokenCounter) -> Predicates:
    """The predicates for the knowledge base."""

    def retrieve(query: str, entities: Sequence[ResolvedEntity], tokens: int) -> tuple[KnowledgeChunk, ...]:
        return select_chunks(wait_for(base.retrieve(query, entities)), tokens, count)

    def embed(query: str) -> list[float]:
        return wait_for(base.embed(query))

    def search(vector: object, limit: int) -> list[SearchResult]:
        if not isinstance(vector, list) or not all(isinstance(number, int | float) for number in vector):
            raise ConfigError(f"search-vector-index needs a vector such as embed-query returns, got {vector!r:.80}")
        return wait_for(base.search_vector(vector, limit))

    def rerank(query: str, results: Sequence[SearchResult]) -> list[SearchResult]:
        return wait_for(base.rerank(query, results))

    def top(chunks: Sequence[object], limit: int) -> tuple[KnowledgeChunk, ...]:
        return top_chunks([instance(KnowledgeChunk, chunk) for chunk in chunks], limit)

    return {
        "retrieve-rag-chunks": retrieve,
        "embed-query": embed,
        "search-vector-index": search,
        "apply-rag-boosts": base.boost,
        "rerank-chunks": rerank,
        "format-chunk": _format_chunk,
        "select-top-chunks": top,
    }


def _format_chunk(chunk: object, source: object) -> str:
    """Format a chunk or text with its source document."""
    content, title = (
        value if isinstance(value, str) else read(value, name)
        for value, name in ((chunk, "content"), (source, "title"))
    )
    if not isinstance(content, str) or not isinstance(title, str):
        raise ConfigError(f"format-chunk needs a chunk and its document, got {chunk!r:.80} and {source!r:.80}")
    return format_chunk(content, title, text_of(read(source, "date")))
