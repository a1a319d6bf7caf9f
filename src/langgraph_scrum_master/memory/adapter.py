"""Adapter that gives any store the full interface, or an error that names the missing capability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, cast

from langgraph_scrum_master._internal.breakers import origin_of
from langgraph_scrum_master.memory.records import (
    CodePattern,
    Decision,
    DecisionFilter,
    DecisionResult,
    Memory,
    MemoryResult,
    PatternResult,
)
from langgraph_scrum_master.protocols import (
    CAPABILITIES,
    Capability,
    FullMemory,
    MemoryStore,
    Opens,
    checked_memory,
    require,
    supports,
)


def full_memory(memory: MemoryStore, user: str) -> FullMemory:
    """The store with every method. Methods of missing capabilities raise `ConfigError`, which names `user`."""
    checked_memory(memory)
    complete = all(supports(memory, capability) for capability in CAPABILITIES)
    return cast("FullMemory", memory) if complete else MemoryAdapter(memory, user)


class MemoryAdapter:
    """A store that lacks capabilities.

    Batches and joint searches fall back to the nine core methods. Methods of any other missing capability raise
    `ConfigError`.
    """

    def __init__(self, memory: MemoryStore, user: str) -> None:
        self._memory = memory
        self._user = user

    def __repr__(self) -> str:
        return repr(self._memory)

    @property
    def origin(self) -> object:
        """What the calls of the store go to."""
        return origin_of(self._memory)

    async def open(self) -> None:
        """Load what the first search needs, if the store supports it."""
        if isinstance(self._memory, Opens):
            await self._memory.open()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities of the store."""
        return frozenset(each for each in CAPABILITIES if supports(self._memory, each))

    async def store_embedding(self, key: str, content: str, metadata: Mapping[str, Any]) -> None:
        """Store a text under a key."""
        await self._memory.store_embedding(key, content, metadata)

    async def search_similar(self, query: str, k: int = 5) -> Sequence[MemoryResult]:
        """The texts that match the query best."""
        return await self._memory.search_similar(query, k)

    async def store_relationship(self, source: str, target: str, relation: str) -> None:
        """Store a relationship between two things."""
        await self._memory.store_relationship(source, target, relation)

    async def store_pattern(self, pattern: CodePattern) -> str:
        """Store a pattern and return its id."""
        return await self._memory.store_pattern(pattern)

    async def search_patterns(
        self, query: str = "", pattern_type: str | None = None, k: int = 5
    ) -> Sequence[PatternResult]:
        """The patterns that match the query best."""
        return await self._memory.search_patterns(query, pattern_type, k)

    async def get_patterns_by_type(self, pattern_type: str) -> Sequence[CodePattern]:
        """All patterns of the type."""
        return await self._memory.get_patterns_by_type(pattern_type)

    async def store_decision(self, decision: Decision) -> str:
        """Store a decision and return its id."""
        return await self._memory.store_decision(decision)

    async def search_decisions(
        self, query: str, filters: DecisionFilter | None = None, k: int = 5
    ) -> Sequence[DecisionResult]:
        """The decisions that pass the filter and match the query best."""
        return await self._memory.search_decisions(query, filters, k)

    async def get_decisions_by_agent(self, agent_type: str, limit: int = 10) -> Sequence[Decision]:
        """The agent's decisions, newest first."""
        return await self._memory.get_decisions_by_agent(agent_type, limit)

    async def store_many(self, rows: Iterable[Memory | tuple[str, str, Mapping[str, Any]]]) -> None:
        """Store texts, in one batch or one by one."""
        if supports(self._memory, "batches"):
            await self._memory.store_many(rows)
            return
        for row in rows:
            key, content, metadata = (row.key, row.content, row.fields()) if isinstance(row, Memory) else row
            await self._memory.store_embedding(key, content, metadata)

    async def search_answers(
        self, need: str, around: Sequence[tuple[str, float]] = (), k: int = 5
    ) -> Sequence[MemoryResult]:
        """The texts that most likely answer a need."""
        return await self._with("answers").search_answers(need, around, k)

    async def search_by_words(self, query: str, k: int = 5) -> Sequence[MemoryResult]:
        """The texts that have the query's words."""
        return await self._with("words").search_by_words(query, k)

    async def search_quickly(self, query: str, k: int = 5) -> Sequence[MemoryResult]:
        """The texts that match the query best."""
        if supports(self._memory, "joint_search"):
            return await self._memory.search_quickly(query, k)
        return await self._memory.search_similar(query, k)

    def joint_search(
        self, query: str, names: Sequence[str], k: int, patience: float
    ) -> AbstractAsyncContextManager[None]:
        """Search several shelves at once, if the store supports it; otherwise each is searched separately."""
        if supports(self._memory, "joint_search"):
            return self._memory.joint_search(query, names, k, patience)
        return nullcontext()

    async def search_where(self, query: str, wanted: Mapping[str, str], k: int = 5) -> Sequence[MemoryResult]:
        """The texts with these metadata that match the query best."""
        return await self._with("filters").search_where(query, wanted, k)

    async def forget(self, *keys: str) -> None:
        """Remove records by their keys."""
        await self._with("deletion").forget(*keys)

    async def get_many(self, keys: Sequence[str]) -> Mapping[str, MemoryResult]:
        """The texts with these keys."""
        return await self._with("lookup").get_many(keys)

    async def every(self) -> Sequence[MemoryResult]:
        """All texts."""
        return await self._with("lookup").every()

    async def notes(self, book: str, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """The notes in a book."""
        return await self._with("notes").notes(book, keys)

    async def save_notes(self, book: str, notes: Mapping[str, Any]) -> None:
        """Write notes into a book."""
        await self._with("notes").save_notes(book, notes)

    async def embedded(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector for each text."""
        return await self._with("vectors").embedded(texts)

    async def nearest(self, vector: Sequence[float], k: int = 5) -> Sequence[MemoryResult]:
        """The memories whose vectors are nearest to this one."""
        return await self._with("vectors").nearest(vector, k)

    async def recent(self, query: str, session_id: str, since: str, k: int = 10) -> Sequence[MemoryResult]:
        """The newest memories of the session, or created since then."""
        return await self._with("sessions").recent(query, session_id, since, k)

    async def end_session(self, session_id: str, summary: str, at: str | None = None) -> None:
        """Store the summary of a session."""
        await self._with("sessions").end_session(session_id, summary, at)

    async def last_session(self, other_than: str = "") -> MemoryResult | None:
        """The summary of the session that ended last, other than this one."""
        return await self._with("sessions").last_session(other_than)

    @property
    def namespace(self) -> str:
        """The tenant."""
        return self._with("namespaces").namespace

    def for_namespace(self, namespace: str) -> MemoryStore:
        """The memory of this tenant."""
        return self._with("namespaces").for_namespace(namespace)

    def beside(self, name: str) -> FullMemory:
        """The shelf with this name in the same store and namespace."""
        return full_memory(self._with("shelves").beside(name), self._user)

    def _with(self, capability: Capability) -> FullMemory:
        require(self._memory, self._user, capability)
        return cast("FullMemory", self._memory)
