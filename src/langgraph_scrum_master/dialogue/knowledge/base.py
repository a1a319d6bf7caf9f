"""Documents to look things up in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.config import RAGConfig
from langgraph_scrum_master.dialogue.knowledge.boosts import boosted
from langgraph_scrum_master.dialogue.knowledge.documents import Document, SearchResult, chunk_id
from langgraph_scrum_master.dialogue.knowledge.rerank import reranked
from langgraph_scrum_master.dialogue.model import ResolvedEntity, RetrievedChunks
from langgraph_scrum_master.errors import ConfigError, NotFoundError
from langgraph_scrum_master.memory.adapter import full_memory
from langgraph_scrum_master.memory.records import Memory
from langgraph_scrum_master.protocols import Clock, MemoryStore, Opens, Reranker, TokenCounter, require
from langgraph_scrum_master.text.tokens import estimate_tokens

DOCUMENTS = "documents"
"""The book in which it is noted how many pieces each document has."""


class KnowledgeBase:
    """Keeps documents in pieces on a shelf beside a memory, and finds those that serve a query.

    A piece is as relevant as the memory says, from 0 to 1, and a little more if its document is new or if it names the
    entities that are asked about. Writing may be interrupted and repeated.
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
        self._writing: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def open(self) -> None:
        """Load what the first search would load."""
        if isinstance(self._shelf, Opens):
            await self._shelf.open()

    async def index_document(self, document: Document) -> str:
        """Keep a document, in the place of the one with its id if there is one; gives the id."""
        _refuse_other(document)
        async with self._one_writer():
            return await self._keep(document)

    async def update_document(self, doc_id: str, document: Document) -> None:
        """Keep this in the place of the document with that id, which must be there."""
        _refuse_other(document)
        async with self._one_writer():
            if await self._pieces_of(doc_id) is None:
                raise NotFoundError(f"there is no document {doc_id!r} to update: index_document keeps a new one")
            await self._keep(replace(document, id=doc_id))

    async def remove_document(self, doc_id: str) -> bool:
        """Let go of a document; whether it was there."""
        async with self._one_writer():
            pieces = await self._pieces_of(doc_id)
            if pieces is None:
                return False
            await self._shelf.forget(*(chunk_id(doc_id, i) for i in range(pieces)))
            await self._shelf.save_notes(DOCUMENTS, {doc_id: None})
            return True

    async def retrieve(
        self, query: str, entities: Sequence[ResolvedEntity] = (), limit: int | None = None
    ) -> RetrievedChunks:
        """The pieces that serve the query, best first, none below `min_relevance`, at most `final_chunk_count`."""
        most = self._config.final_chunk_count if limit is None else max(0, limit)
        found = await self.search(query, max(most, self._config.initial_retrieval_count))
        own = await off_loop(self.boost, found, entities)
        other = await self._reranked(query, own)
        ranked = own if other is None else other
        relevant = [each.chunk() for each in ranked if each.score >= self._config.min_relevance]
        return RetrievedChunks(relevant[:most], looked_at=len(found), reranked=other is not None)

    async def search(self, query: str, limit: int) -> list[SearchResult]:
        """The pieces nearest to the query, best first, by their words alone."""
        return [SearchResult.read(result) for result in await self._shelf.search_similar(query, k=limit)]

    def boost(self, results: Sequence[SearchResult], entities: Sequence[ResolvedEntity]) -> list[SearchResult]:
        """The pieces with what is added for being new and for naming the entities, best first."""
        return boosted(results, entities, self._clock(), self._config)

    async def rerank(self, query: str, results: Sequence[SearchResult]) -> list[SearchResult]:
        """The pieces in the reranker's order, or as they are if there is none or it fails, which is logged."""
        other = await self._reranked(query, results)
        return list(results) if other is None else other

    async def _reranked(self, query: str, results: Sequence[SearchResult]) -> list[SearchResult] | None:
        if self._reranker is None or not self._config.enable_reranking or not results:
            return None
        return await reranked(self._reranker, query, results, self._config.rerank_deadline)

    async def _keep(self, document: Document) -> str:
        pieces = await off_loop(self._cut, document)
        before = await self._pieces_of(document.id) or 0
        # Noted before: whatever is kept from here on can be let go of later.
        if before < len(pieces):
            await self._note(document, len(pieces))
        await self._shelf.store_many(pieces)
        if before >= len(pieces):
            await self._shelf.forget(*(chunk_id(document.id, i) for i in range(len(pieces), before)))
            await self._note(document, len(pieces))
        return document.id

    def _cut(self, document: Document) -> list[Memory]:
        return list(document.kept(self._config.chunk_tokens, self._config.overlap_tokens, self._count_tokens))

    async def _note(self, document: Document, pieces: int) -> None:
        about = {name: value for name, value in document.to_dict().items() if name not in ("text", "id")}
        await self._shelf.save_notes(DOCUMENTS, {document.id: {"document": about, "pieces": pieces}})

    async def _pieces_of(self, doc_id: str) -> int | None:
        """How many pieces of the document are kept, at most; None if it is not there."""
        found = await self._shelf.notes(DOCUMENTS, [doc_id])
        return int(found[doc_id]["pieces"]) if doc_id in found else None

    def _one_writer(self) -> asyncio.Lock:
        """A document that is written by two at once would be a mixture of both."""
        return self._writing.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def _refuse_other(given: object) -> None:
    if not isinstance(given, Document):
        raise ConfigError(f"a Document must be given, with title and text, got {given!r:.80}")
