"""A reranker's word on the order of pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.shapes import dict_of, read, text_of
from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.dialogue.knowledge.documents import SearchResult
from langgraph_scrum_master.model import SourceFailure
from langgraph_scrum_master.protocols import Reranker

IDENTITY, SCORE = "chunk_id", "relevance_score"
"""The metadata by which a piece is known again, and that say how relevant it is."""


async def reranked(
    reranker: Reranker, query: str, results: Sequence[SearchResult], deadline: float
) -> list[SearchResult] | None:
    """The pieces that the reranker keeps, in its order; None if it fails or is late, which is logged."""
    try:
        given = await asyncio.wait_for(_asked(reranker, query, results), deadline)
        return _known_again(results, given)
    # A model of the user's may raise anything.
    except Exception as error:
        logger.warning("reranker.failed", error=SourceFailure.of("reranker", error, deadline).error)
        return None


async def _asked(reranker: Reranker, query: str, results: Sequence[SearchResult]) -> Sequence[Any]:
    # LangChain may have to be loaded first, which takes long.
    documents = await off_loop(_documents, results)
    compress = getattr(reranker, "acompress_documents", None)
    if compress is not None:
        return list(await compress(documents, query))
    return list(await off_loop(reranker.compress_documents, documents, query))


def _documents(results: Sequence[SearchResult]) -> list[Any]:
    from langchain_core.documents import Document

    return [
        Document(
            page_content=each.content,
            metadata={IDENTITY: each.chunk_id, "title": each.title, "url": each.url, "date": each.date},
        )
        for each in results
    ]


def _known_again(results: Sequence[SearchResult], given: Sequence[Any]) -> list[SearchResult]:
    waiting = {each.chunk_id: each for each in results}
    kept: list[SearchResult] = []
    for document in given:
        metadata = dict_of(read(document, "metadata"))
        result = waiting.pop(text_of(metadata.get(IDENTITY)), None)
        if result is not None:
            content = text_of(read(document, "page_content")) or result.content
            kept.append(replace(result, content=content, score=_score(metadata.get(SCORE), result.score)))
    return kept


def _score(given: Any, own: float) -> float:
    """What the reranker says, if that is a relevance: some give unbounded logits."""
    try:
        score = float(given)
    except (TypeError, ValueError):
        return own
    return score if 0 <= score <= 1 else own
