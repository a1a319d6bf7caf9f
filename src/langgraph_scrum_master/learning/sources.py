"""What a project has learned, kept beside its memory: code, commits, values and experiences."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from langgraph_scrum_master.learning.records import ContextItem, Shown, experiences_on, readable
from langgraph_scrum_master.learning.render import SHOWN
from langgraph_scrum_master.memory.adapter import full_memory
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import FullMemory, MemoryStore, Opens, Source, State, supports
from langgraph_scrum_master.rank.relevance import raised
from langgraph_scrum_master.retrieval.sources.memory import answers_in

SAME_DOMAIN = 1 / 7
"""What the domain adds to the agreement with something that went wrong in it: as much as one more space that agrees
wholly, of about seven that a query speaks in. With it the bar of 0.7 is reached from 0.4 on.
"""

MOST_WARNINGS = 3
"""Of what went wrong before, how much is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfSource:
    """What one shelf holds."""

    name: str
    shelf: FullMemory
    shown: Shown

    async def open(self) -> None:
        """Load what the first search would load."""
        await _opened(self.shelf)

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts with the shelf's own scores."""
        return _contexts(query, self.shown, await answers_in(self.shelf, query))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperiencesSource:
    """What was tried, and for work that a gate turned back what went wrong before in its domain."""

    memory: FullMemory
    shown: Shown
    warned: Shown
    name: str = "experiences"

    async def open(self) -> None:
        """Load what the first search would load."""
        for axis in _WARNING:
            await _opened(self._on(axis))

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts with the shelf's own scores; a warning has that of its likeness to the failure, and the domain's."""
        found = {result.key: result for result in await self._on("full").search_similar(query.text, k=query.k)}
        warnings = await self._warnings(query, found) if query.domain else []
        told = {warning.key for warning in warnings}
        return [*warnings, *_contexts(query, self.shown, [found[key] for key in found if key not in told])]

    def _on(self, axis: str) -> FullMemory:
        return self.memory.beside(experiences_on(axis))

    async def _warnings(self, query: Query, found: Mapping[str, MemoryResult]) -> list[RetrievedContext]:
        """The failures, surprises and root causes of the domain that are most like this failure, each once."""
        searches = (
            self._on(axis).search_where(query.failure, {"domain": query.domain, **wanted}, k=query.k)
            for axis, wanted in _WARNING.items()
        )
        likest: dict[str, MemoryResult] = {}
        for result in (result for results in await asyncio.gather(*searches) for result in results):
            alike = (result, *(known for known in (likest.get(result.key), found.get(result.key)) if known))
            likest[result.key] = max(alike, key=lambda each: each.score)
        best = sorted(likest.values(), key=lambda each: (-each.score, each.key))[:MOST_WARNINGS]
        return _contexts(query, self.warned, best, SAME_DOMAIN)


_WARNING: Mapping[str, Mapping[str, str]] = {"full": {"outcome": "falsified"}, "surprise": {}, "root_cause": {}}
"""By axis, what an experience must say beside its domain."""

_SHELVES = ("code", "commits", "values")


def learned_sources(memory: MemoryStore) -> dict[str, Source]:
    """The sources beside the memory by their names: none without shelves, no experiences without filters."""
    if not supports(memory, "shelves"):
        return {}
    full = full_memory(memory, "a source of what was learned")
    found: dict[str, Source] = {
        name: ShelfSource(name=name, shelf=full.beside(name), shown=SHOWN[name]) for name in _SHELVES
    }
    if supports(memory, "filters"):
        found["experiences"] = ExperiencesSource(memory=full, shown=SHOWN["experiences"], warned=SHOWN["premortem"])
    return found


def _contexts(query: Query, shown: Shown, results: Sequence[MemoryResult], more: float = 0.0) -> list[RetrievedContext]:
    return [_context(query, item, result, more) for item, result in readable(shown, results)]


def _context(query: Query, item: ContextItem, result: MemoryResult, more: float) -> RetrievedContext:
    """The head as its title, the rest as its content: what the agent knows already is told by what is said."""
    head, _, body = item.content.partition("\n")
    return RetrievedContext(
        source=item.source,
        content=body or head,
        relevance_score=raised(result.score, more),
        metadata=item.metadata,
        retrieved_at=query.now,
        key=result.key,
        title=_MARKUP.sub("", head).strip(" :"),
        created_at=str(result.metadata.get("created_at") or ""),
        strengths=result.strengths,
        weighted_agreement=result.weighted_agreement,
    )


_MARKUP = re.compile(r"[*`]")


async def _opened(shelf: FullMemory) -> None:
    if isinstance(shelf, Opens):
        await shelf.open()
