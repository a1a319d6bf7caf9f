"""What can be asked about documents."""

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


class EmbeddedQuery(list[float]):
    """A query's vector, with its words, which count for the order too."""

    def __init__(self, text: str, vector: Sequence[float]) -> None:
        super().__init__(vector)
        self.text = text

    def __repr__(self) -> str:
        return f"EmbeddedQuery({self.text!r}, {len(self)} numbers)"


def knowledge_predicates(base: KnowledgeBase, count: TokenCounter) -> Predicates:
    """The predicates for these documents."""

    def retrieve(query: str, entities: Sequence[ResolvedEntity], tokens: int) -> tuple[KnowledgeChunk, ...]:
        return select_chunks(wait_for(base.retrieve(query, entities)), tokens, count)

    def search(query: object, limit: int) -> list[SearchResult]:
        if not isinstance(query, EmbeddedQuery):
            raise ConfigError(f"search-vector-index must be given what embed-query gave, got {query!r:.80}")
        return wait_for(base.search(query.text, limit))

    def rerank(query: str, results: Sequence[SearchResult]) -> list[SearchResult]:
        return wait_for(base.rerank(query, results))

    def top(chunks: Sequence[object], limit: int) -> tuple[KnowledgeChunk, ...]:
        return top_chunks([instance(KnowledgeChunk, chunk) for chunk in chunks], limit)

    return {
        "retrieve-rag-chunks": retrieve,
        "embed-query": _embedded,
        "search-vector-index": search,
        "apply-rag-boosts": base.boost,
        "rerank-chunks": rerank,
        "format-chunk": _formatted,
        "select-top-chunks": top,
    }


def _embedded(query: str) -> EmbeddedQuery:
    from langgraph_scrum_master.rank.embedders import embedder_for

    return EmbeddedQuery(query, [float(number) for number in embedder_for("static").embed_query(query)])


def _formatted(chunk: object, source: object) -> str:
    """A piece, or a text, below the document that it is from."""
    content, title = (
        given if isinstance(given, str) else read(given, name)
        for given, name in ((chunk, "content"), (source, "title"))
    )
    if not isinstance(content, str) or not isinstance(title, str):
        raise ConfigError(f"format-chunk must be given a piece and its document, got {chunk!r:.80} and {source!r:.80}")
    return format_chunk(content, title, text_of(read(source, "date")))
