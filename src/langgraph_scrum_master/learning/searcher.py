"""One way to ask for all that a project has learned."""

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
    experiences_on,
    readable,
    refuse_bad,
)
from langgraph_scrum_master.memory.adapter import full_memory
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.protocols import FullMemory, MemoryStore, require
from langgraph_scrum_master.text.domains import Domain

T = TypeVar("T")

_Found = tuple[T, MemoryResult]
"""What was found, and the memory that keeps it, with its score."""


_SHELVES = {
    "memories": "",
    "code": "code",
    "experiences": experiences_on("full"),
    "values": "values",
    "commits": "commits",
}


class Searcher:
    """Asks a memory, and the shelves beside it for code, commits, experiences and values."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = full_memory(memory, "Searcher")

    def shelf(self, name: str) -> FullMemory:
        """The memory beside that holds what is named so."""
        return self._memory.beside(name)

    def asked_before(
        self, query: str, names: Iterable[str], limit: int, patience: float
    ) -> AbstractAsyncContextManager[None]:
        """Ask for all that is named at once; while that is open, each search for the query has its answer."""
        shelves = [_SHELVES[name] for name in names]
        return self._memory.joint_search(query, shelves, limit, patience)

    async def search_memories(
        self, query: str, limit: int = 20, category: MemoryCategory | str | None = None
    ) -> list[MemoryResult]:
        """Facts, preferences and decisions; only of the category that is given."""
        refuse_bad(query, limit=limit)
        if category is not None:
            wanted = {"category": one_of("category", category, MemoryCategory)}
            return list(await self._memory.search_where(query, wanted, k=limit))
        return list(await self._memory.search_quickly(query, k=limit))

    async def search_code(self, query: str, limit: int = 20) -> list[_Found[CodeUnit]]:
        """Units of code."""
        refuse_bad(query, limit=limit)
        return readable(CodeUnit.read, await self.shelf("code").search_quickly(query, k=limit))

    async def search_commits(self, query: str, limit: int = 20) -> list[_Found[Commit]]:
        """Changes to the project."""
        refuse_bad(query, limit=limit)
        return readable(Commit.read, await self.shelf("commits").search_quickly(query, k=limit))

    async def search_values(self, query: str, limit: int = 20) -> list[_Found[Value]]:
        """Principles that experiences have in common."""
        refuse_bad(query, limit=limit)
        return readable(Value.read, await self.shelf("values").search_quickly(query, k=limit))

    async def search_experiences(
        self,
        query: str,
        axis: Axis | str = "full",
        domain: Domain | str | None = None,
        strategy: Strategy | str | None = None,
        outcome: OutcomeStatus | str | None = None,
        limit: int = 20,
    ) -> list[_Found[Experience]]:
        """What was tried, by how it went on this axis; only of the domain, strategy and outcome that are given."""
        refuse_bad(query, limit=limit)
        shelf = self.shelf(experiences_on(one_of("axis", axis, Axis)))
        given = (("domain", domain, Domain), ("strategy", strategy, Strategy), ("outcome", outcome, OutcomeStatus))
        wanted = {name: one_of(name, value, valid) for name, value, valid in given if value is not None}
        if wanted:
            return readable(Experience.read, await shelf.search_where(query, wanted, k=limit))
        return readable(Experience.read, await shelf.search_quickly(query, k=limit))

    async def keep_experience(self, *experiences: Experience) -> None:
        """Keep experiences on all axes on which they have something to say; keeping one again replaces it."""
        require(self._memory, "keep_experience", "shelves", "deletion")
        for axis in AXES:
            shelf, kept = self.shelf(experiences_on(axis)), [each.kept(axis) for each in experiences]
            silent = [each.id for each, memory in zip(experiences, kept, strict=True) if memory is None]
            await shelf.store_many([memory for memory in kept if memory is not None])
            if silent:
                await shelf.forget(*silent)

    async def get_experience(self, identity: str) -> Experience | None:
        """The experience with this id."""
        found = await self.shelf(experiences_on("full")).get_many([identity])
        return next((each for each, _ in readable(Experience.read, list(found.values()))), None)

    async def change_experience(self, identity: str, change: Callable[[Experience], Experience]) -> Experience:
        """Keep the experience with this id as it is after a change; gives it."""
        known = await self.get_experience(identity)
        if known is None:
            raise NotFoundError(f"there is no experience {identity!r}: a list of all experiences has their ids")
        changed = change(known)
        await self.keep_experience(changed)
        return changed

    async def all_experiences(self) -> list[Experience]:
        """Every experience, the newest first."""
        found = await self.shelf(experiences_on("full")).every()
        every = [each for each, _ in readable(Experience.read, found)]
        return sorted(every, key=lambda each: (each.created_at, each.id), reverse=True)
