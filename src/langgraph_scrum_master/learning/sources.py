"""Sources of retrieval over the shelves: code, commits, values and experiences."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from langgraph_scrum_master._internal.breakers import origin_of
from langgraph_scrum_master.learning.records import decode_all, experiences_on
from langgraph_scrum_master.learning.render import RENDERERS, RenderedRecord, Renderer
from langgraph_scrum_master.memory.adapter import full_memory
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import FullMemory, MemoryStore, Opens, Source, State, supports
from langgraph_scrum_master.rank.relevance import raised
from langgraph_scrum_master.retrieval.sources.memory import answers_in

SAME_DOMAIN = 1 / 7
"""Added to the agreement of a failure in the same domain: as much as one more space at full strength, of about seven
that apply to a query. It lifts a score of 0.4 to the bar of 0.7.
"""

MAX_WARNINGS = 3
"""The number of past failures per query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfSource:
    """The records of one shelf."""

    name: str
    shelf: FullMemory
    render: Renderer

    @property
    def origin(self) -> object:
        """What the calls of the memory go to."""
        return origin_of(self.shelf)

    async def open(self) -> None:
        """Load what the first search would load."""
        await _opened(self.shelf)

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts with the shelf's own scores."""
        return _contexts(query, self.render, await answers_in(self.shelf, query))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperiencesSource:
    """Experiences, and after a gate failure past failures in its domain."""

    memory: FullMemory
    render: Renderer
    render_warning: Renderer
    name: str = "experiences"

    @property
    def origin(self) -> object:
        """What the calls of the memory go to."""
        return origin_of(self.memory)

    async def open(self) -> None:
        """Load what the first search would load."""
        for axis in _WARNING:
            await _opened(self._on(axis))

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts with the shelf's own scores. Warnings are scored by similarity to the failure, plus the domain."""
        results = {result.key: result for result in await self._on("full").search_similar(query.text, k=query.k)}
        warnings = await self._warnings(query, results) if query.domain else []
        warned = {warning.key for warning in warnings}
        others = [result for key, result in results.items() if key not in warned]
        return [*warnings, *_contexts(query, self.render, others)]

    def _on(self, axis: str) -> FullMemory:
        return self.memory.beside(experiences_on(axis))

    async def _warnings(self, query: Query, results: Mapping[str, MemoryResult]) -> list[RetrievedContext]:
        """The failures, surprises and root causes of the domain that are most similar to this failure."""
        searches = (
            self._on(axis).search_where(query.failure, {"domain": query.domain, **wanted}, k=query.k)
            for axis, wanted in _WARNING.items()
        )
        best: dict[str, MemoryResult] = {}
        for result in (result for matches in await asyncio.gather(*searches) for result in matches):
            same_key = (result, *(other for other in (best.get(result.key), results.get(result.key)) if other))
            best[result.key] = max(same_key, key=lambda each: each.score)
        top = sorted(best.values(), key=lambda each: (-each.score, each.key))[:MAX_WARNINGS]
        return _contexts(query, self.render_warning, top, SAME_DOMAIN)


_WARNING: Mapping[str, Mapping[str, str]] = {"full": {"outcome": "falsified"}, "surprise": {}, "root_cause": {}}
"""By axis, the filters for warnings besides the domain."""

_SHELVES = ("code", "commits", "values")


def learned_sources(memory: MemoryStore) -> dict[str, Source]:
    """The sources over the memory's shelves by name. Experiences need a memory with filters."""
    if not supports(memory, "shelves"):
        return {}
    full = full_memory(memory, "a source over shelves")
    sources: dict[str, Source] = {
        name: ShelfSource(name=name, shelf=full.beside(name), render=RENDERERS[name]) for name in _SHELVES
    }
    if supports(memory, "filters"):
        sources["experiences"] = ExperiencesSource(
            memory=full, render=RENDERERS["experiences"], render_warning=RENDERERS["premortem"]
        )
    return sources


def _contexts(
    query: Query, render: Renderer, results: Sequence[MemoryResult], boost: float = 0.0
) -> list[RetrievedContext]:
    return [_context(query, rendered, result, boost) for rendered, result in decode_all(render, results)]


def _context(query: Query, rendered: RenderedRecord, result: MemoryResult, boost: float) -> RetrievedContext:
    return RetrievedContext(
        source=rendered.source,
        content=rendered.body or rendered.heading,
        relevance_score=raised(result.score, boost),
        metadata=rendered.metadata,
        retrieved_at=query.now,
        key=result.key,
        title=rendered.title,
        created_at=str(result.metadata.get("created_at") or ""),
        strengths=result.strengths,
        weighted_agreement=result.weighted_agreement,
    )


async def _opened(shelf: FullMemory) -> None:
    if isinstance(shelf, Opens):
        await shelf.open()
