"""Search over a project's memories, code, commits, experiences and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from langgraph_scrum_master._internal.shapes import one_of
from langgraph_scrum_master.errors import NotFoundError
from langgraph_scrum_master.learning.records import (
    AXES,
    Axis,
    CodeUnit,
    Commit,
    Experience,
    MemoryCategory,
    OutcomeStatus,
    Strategy,
    Value,
    check_search,
    decode_all,
    experiences_on,
)
from langgraph_scrum_master.memory.adapter import full_memory
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.protocols import FullMemory, MemoryStore, require
from langgraph_scrum_master.text.domains import Domain

T = TypeVar("T")

_Match = tuple[T, MemoryResult]
"""A decoded record, and the search result it comes from, with its score."""

_SHELVES = {
    "memories": "",
    "code": "code",
    "experiences": experiences_on("full"),
    "values": "values",
    "commits": "commits",
}


class Searcher:
    """Searches a memory, and its shelves of code, commits, experiences and values."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = full_memory(memory, "Searcher")

    def shelf(self, name: str) -> FullMemory:
        """The shelf of this name."""
        return self._memory.beside(name)

    def prefetch(
        self, query: str, names: Iterable[str], limit: int, patience: float
    ) -> AbstractAsyncContextManager[None]:
        """Search the named types at once. Inside the context manager, searches for the query use these results."""
        shelves = [_SHELVES[name] for name in names]
        return self._memory.joint_search(query, shelves, limit, patience)

    async def search_memories(
        self, query: str, limit: int = 20, category: MemoryCategory | str | None = None
    ) -> list[MemoryResult]:
        """Facts, preferences and decisions, of the given category only."""
        check_search(query, limit=limit)
        if category is not None:
            wanted = {"category": one_of("category", category, MemoryCategory)}
            return list(await self._memory.search_where(query, wanted, k=limit))
        return list(await self._memory.search_quickly(query, k=limit))

    async def search_code(self, query: str, limit: int = 20) -> list[_Match[CodeUnit]]:
        """Code units."""
        check_search(query, limit=limit)
        return decode_all(CodeUnit.read, await self.shelf("code").search_quickly(query, k=limit))

    async def search_commits(self, query: str, limit: int = 20) -> list[_Match[Commit]]:
        """Commits."""
        check_search(query, limit=limit)
        return decode_all(Commit.read, await self.shelf("commits").search_quickly(query, k=limit))

    async def search_values(self, query: str, limit: int = 20) -> list[_Match[Value]]:
        """Values: principles that several experiences share."""
        check_search(query, limit=limit)
        return decode_all(Value.read, await self.shelf("values").search_quickly(query, k=limit))

    async def search_experiences(
        self,
        query: str,
        axis: Axis | str = "full",
        domain: Domain | str | None = None,
        strategy: Strategy | str | None = None,
        outcome: OutcomeStatus | str | None = None,
        limit: int = 20,
    ) -> list[_Match[Experience]]:
        """Experiences that match on this axis, of the given domain, strategy and outcome only."""
        check_search(query, limit=limit)
        shelf = self.shelf(experiences_on(one_of("axis", axis, Axis)))
        filters = (("domain", domain, Domain), ("strategy", strategy, Strategy), ("outcome", outcome, OutcomeStatus))
        wanted = {name: one_of(name, value, valid) for name, value, valid in filters if value is not None}
        if wanted:
            return decode_all(Experience.read, await shelf.search_where(query, wanted, k=limit))
        return decode_all(Experience.read, await shelf.search_quickly(query, k=limit))

    async def keep_experience(self, *experiences: Experience) -> None:
        """Store experiences on every axis for which they have text. An experience with the same id is replaced."""
        require(self._memory, "keep_experience", "shelves", "deletion")
        for axis in AXES:
            shelf, records = self.shelf(experiences_on(axis)), [each.to_memory(axis) for each in experiences]
            empty = [each.id for each, record in zip(experiences, records, strict=True) if record is None]
            await shelf.store_many([record for record in records if record is not None])
            if empty:
                await shelf.forget(*empty)

    async def get_experience(self, identity: str) -> Experience | None:
        """The experience with this id, or None."""
        results = await self.shelf(experiences_on("full")).get_many([identity])
        return next((each for each, _ in decode_all(Experience.read, list(results.values()))), None)

    async def change_experience(self, identity: str, change: Callable[[Experience], Experience]) -> Experience:
        """Apply a change to the experience with this id, store it and return it."""
        current = await self.get_experience(identity)
        if current is None:
            raise NotFoundError(f"there is no experience {identity!r}: list all experiences to see their ids")
        changed = change(current)
        await self.keep_experience(changed)
        return changed

    async def all_experiences(self) -> list[Experience]:
        """All experiences, newest first."""
        results = await self.shelf(experiences_on("full")).every()
        experiences = [each for each, _ in decode_all(Experience.read, results)]
        return sorted(experiences, key=lambda each: (each.created_at, each.id), reverse=True)
