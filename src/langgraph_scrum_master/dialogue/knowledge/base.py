"""The knowledge base."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.dialogue.knowledge.boosts import apply_boosts
from langgraph_scrum_master.dialogue.knowledge.documents import Document, SearchResult, chunk_id
from langgraph_scrum_master.dialogue.knowledge.rerank import apply_reranker
from langgraph_scrum_master.dialogue.model import ResolvedEntity, RetrievedChunks
from langgraph_scrum_master.dialogue.settings import RAGConfig
from langgraph_scrum_master.errors import ConfigError, NotFoundError
from langgraph_scrum_master.memory.adapter import full_memory
from langgraph_scrum_master.memory.records import Memory
from langgraph_scrum_master.protocols import Clock, MemoryStore, Opens, Reranker, TokenCounter, require
from langgraph_scrum_master.text.tokens import estimate_tokens

DOCUMENTS = "documents"
"""The notes that hold each document's metadata and number of chunks."""


class KnowledgeBase:
    """Stores documents in chunks on a shelf beside a memory, and retrieves those relevant to a query.

    The relevance of a chunk is the memory's score from 0 to 1, boosted for recent documents and for mentions of the
    query's entities. An interrupted write can be repeated.
    """

    def __init__(
        self,
        memory: MemoryStore,
        *,
        config: RAGConfig | None = None,
        reranker: Reranker | None = None,
        clock: Clock = time.time,
        count_tokens: TokenCounter = estimate_tokens,
    ) -> None:
        require(memory, "KnowledgeBase", "shelves", "notes", "deletion")
        self._shelf = full_memory(memory, "KnowledgeBase").beside("knowledge")
        self._config = config or RAGConfig()
        self._reranker = reranker
        self._clock = clock
        self._count_tokens = count_tokens
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def open(self) -> None:
        """Load in advance what the first search needs."""
        if isinstance(self._shelf, Opens):
            await self._shelf.open()

    async def index_document(self, document: Document) -> str:
        """Store a document, replacing one with the same id, and return its id."""
        _check_document(document)
        async with self._write_lock():
            return await self._store(document)

    async def update_document(self, doc_id: str, document: Document) -> None:
        """Replace the document with this id. Raises `NotFoundError` if there is none."""
        _check_document(document)
        async with self._write_lock():
            if await self._chunk_count(doc_id) is None:
                raise NotFoundError(f"there is no document {doc_id!r} to update: add it with index_document")
            await self._store(replace(document, id=doc_id))

    async def remove_document(self, doc_id: str) -> bool:
        """Remove a document, and return whether it existed."""
        async with self._write_lock():
            chunks = await self._chunk_count(doc_id)
            if chunks is None:
                return False
            await self._shelf.forget(*(chunk_id(doc_id, i) for i in range(chunks)))
            await self._shelf.save_notes(DOCUMENTS, {doc_id: None})
            return True

    async def retrieve(
        self, query: str, entities: Sequence[ResolvedEntity] = (), limit: int | None = None
    ) -> RetrievedChunks:
        """At most `final_chunk_count` chunks relevant to the query, best first, none below `min_relevance`."""
        count = self._config.final_chunk_count if limit is None else max(0, limit)
        candidates = await self.search(query, max(count, self._config.initial_retrieval_count))
        boosted = await off_loop(self.boost, candidates, entities)
        reranked = await self._rerank(query, boosted)
        ranked = boosted if reranked is None else reranked
        relevant = [each.chunk() for each in ranked if each.score >= self._config.min_relevance]
        return RetrievedChunks(relevant[:count], looked_at=len(candidates), reranked=reranked is not None)

    async def search(self, query: str, limit: int) -> list[SearchResult]:
        """The chunks most similar to the query, best first, without boosts."""
        return [SearchResult.read(result) for result in await self._shelf.search_similar(query, k=limit)]

    async def embed(self, query: str) -> list[float]:
        """The query's vector, from the embedder of the memory."""
        return (await self._shelf.embedded([query]))[0]

    async def search_vector(self, vector: Sequence[float], limit: int) -> list[SearchResult]:
        """The chunks whose vectors are nearest to this one, scored by cosine, without boosts."""
        return [SearchResult.read(result) for result in await self._shelf.nearest(vector, limit)]

    def boost(self, results: Sequence[SearchResult], entities: Sequence[ResolvedEntity]) -> list[SearchResult]:
        """Add the boosts for recency and for mentions of the entities; best first."""
        return apply_boosts(results, entities, self._clock(), self._config)

    async def rerank(self, query: str, results: Sequence[SearchResult]) -> list[SearchResult]:
        """The chunks in the reranker's order. Unchanged if there is none or it fails, which is logged."""
        reranked = await self._rerank(query, results)
        return list(results) if reranked is None else reranked

    async def _rerank(self, query: str, results: Sequence[SearchResult]) -> list[SearchResult] | None:
        if self._reranker is None or not self._config.enable_reranking or not results:
            return None
        return await apply_reranker(self._reranker, query, results, self._config.rerank_deadline)

    async def _store(self, document: Document) -> str:
        chunks = await off_loop(self._split, document)
        before = await self._chunk_count(document.id) or 0
        # Noted before the write, so that an interrupted write can be cleaned up later.
        if before < len(chunks):
            await self._note(document, len(chunks))
        await self._shelf.store_many(chunks)
        if before >= len(chunks):
            await self._shelf.forget(*(chunk_id(document.id, i) for i in range(len(chunks), before)))
            await self._note(document, len(chunks))
        return document.id

    def _split(self, document: Document) -> list[Memory]:
        return list(document.to_memories(self._config.chunk_tokens, self._config.overlap_tokens, self._count_tokens))

    async def _note(self, document: Document, chunks: int) -> None:
        metadata = {name: value for name, value in document.to_dict().items() if name not in ("text", "id")}
        await self._shelf.save_notes(DOCUMENTS, {document.id: {"document": metadata, "pieces": chunks}})

    async def _chunk_count(self, doc_id: str) -> int | None:
        """An upper bound of the document's stored chunks. None if there is no such document."""
        notes = await self._shelf.notes(DOCUMENTS, [doc_id])
        return int(notes[doc_id]["pieces"]) if doc_id in notes else None

    def _write_lock(self) -> asyncio.Lock:
        """Serialises writes, so that concurrent writes cannot mix two versions of a document."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def _check_document(document: object) -> None:
    if not isinstance(document, Document):
        raise ConfigError(f"expected a Document with title and text, got {document!r:.80}")
