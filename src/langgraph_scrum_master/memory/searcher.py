"""One way to ask for all that a project has learned."""

from __future__ import annotations

from typing import TypeVar

from langgraph_scrum_master.learned import (
    AXES,
    Axis,
    CodeUnit,
    Commit,
    Domain,
    Experience,
    OutcomeStatus,
    Strategy,
    Value,
    experiences_on,
    one_of,
    readable,
)
from langgraph_scrum_master.memories import MemoryResult
from langgraph_scrum_master.memory.records import RecordMemory

T = TypeVar("T")

Found = tuple[T, MemoryResult]
"""What was found, and the memory that keeps it, with its score."""


class Searcher:
    """Asks a memory, and the shelves beside it for code, commits, experiences and values."""

    def __init__(self, memory: RecordMemory) -> None:
        self._memory = memory

    def shelf(self, name: str) -> RecordMemory:
        """The memory beside that holds what is named so."""
        return self._memory.beside(name)

    async def search_memories(self, query: str, limit: int = 20) -> list[MemoryResult]:
        """Facts, preferences and decisions."""
        return await self._memory.search_quickly(query, k=limit)

    async def search_code(self, query: str, limit: int = 20) -> list[Found[CodeUnit]]:
        """Units of code."""
        return readable(CodeUnit.read, await self.shelf("code").search_quickly(query, k=limit))

    async def search_commits(self, query: str, limit: int = 20) -> list[Found[Commit]]:
        """Changes to the project."""
        return readable(Commit.read, await self.shelf("commits").search_quickly(query, k=limit))

    async def search_values(self, query: str, limit: int = 20) -> list[Found[Value]]:
        """Principles that experiences have in common."""
        return readable(Value.read, await self.shelf("values").search_quickly(query, k=limit))

    async def search_experiences(
        self,
        query: str,
        axis: Axis | str = "full",
        domain: Domain | str | None = None,
        strategy: Strategy | str | None = None,
        outcome: OutcomeStatus | str | None = None,
        limit: int = 20,
    ) -> list[Found[Experience]]:
        """What was tried, by how it went on this axis; only of the domain, strategy and outcome that are given."""
        shelf = self.shelf(experiences_on(one_of("axis", axis, Axis)))
        given = (("domain", domain, Domain), ("strategy", strategy, Strategy), ("outcome", outcome, OutcomeStatus))
        wanted = {name: one_of(name, value, valid) for name, value, valid in given if value is not None}
        if wanted:
            return readable(Experience.read, await shelf.search_where(query, wanted, k=limit))
        return readable(Experience.read, await shelf.search_quickly(query, k=limit))

    async def keep_experience(self, experience: Experience) -> None:
        """Keep an experience on all axes on which it has something to say; keeping it again replaces it."""
        for axis in AXES:
            shelf, kept = self.shelf(experiences_on(axis)), experience.kept(axis)
            await (shelf.store_many([kept]) if kept else shelf.forget(experience.id))

    async def get_experience(self, identity: str) -> Experience | None:
        """The experience with this id."""
        found = await self.shelf(experiences_on("full")).get_many([identity])
        return next((each for each, _ in readable(Experience.read, list(found.values()))), None)

    async def all_experiences(self) -> list[Experience]:
        """Every experience, the newest first."""
        found = await self.shelf(experiences_on("full")).every()
        every = [each for each, _ in readable(Experience.read, found)]
        return sorted(every, key=lambda each: (each.created_at, each.id), reverse=True)
