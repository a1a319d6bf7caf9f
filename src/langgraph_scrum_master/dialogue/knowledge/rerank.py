"""Applies a reranker to search results."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langgraph_scrum_master._internal.foreign import awaited
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.shapes import dict_of, read, text_of
from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.dialogue.knowledge.documents import SearchResult
from langgraph_scrum_master.model import SourceFailure
from langgraph_scrum_master.protocols import Reranker

ID_KEY, SCORE_KEY = "chunk_id", "relevance_score"
"""Metadata keys of a chunk's id and of the reranker's score."""


async def apply_reranker(
    reranker: Reranker, query: str, results: Sequence[SearchResult], deadline: float
) -> list[SearchResult] | None:
    """The results that the reranker keeps, in its order. None if it fails or times out, which is logged."""
    try:
        documents = await asyncio.wait_for(awaited(lambda: _call_reranker(reranker, query, results)), deadline)
        return _match_results(results, documents)
    # A custom reranker may raise anything.
    except Exception as error:
        logger.warning("reranker.failed", error=SourceFailure.of("reranker", error, deadline).error)
        return None


async def _call_reranker(reranker: Reranker, query: str, results: Sequence[SearchResult]) -> Sequence[Any]:
    # The first import of LangChain is slow.
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
            metadata={ID_KEY: each.chunk_id, "title": each.title, "url": each.url, "date": each.date},
        )
        for each in results
    ]


def _match_results(results: Sequence[SearchResult], documents: Sequence[Any]) -> list[SearchResult]:
    by_id = {each.chunk_id: each for each in results}
    matched: list[SearchResult] = []
    for document in documents:
        metadata = dict_of(read(document, "metadata"))
        result = by_id.pop(text_of(metadata.get(ID_KEY)), None)
        if result is not None:
            content = text_of(read(document, "page_content")) or result.content
            matched.append(replace(result, content=content, score=_score(metadata.get(SCORE_KEY), result.score)))
    return matched


def _score(value: Any, default: float) -> float:
    """The reranker's score if it is within 0 to 1. Some rerankers return unbounded logits."""
    try:
        score = float(value)
    except (TypeError, ValueError):
        return default
    return score if 0 <= score <= 1 else default
