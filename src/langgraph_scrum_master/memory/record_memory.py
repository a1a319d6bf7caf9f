"""`RecordMemory`: the full memory interface over a backend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Self, TypeAlias, TypeVar

from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.serialisation import json_shapes
from langgraph_scrum_master._internal.shapes import is_printable, well_formed
from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.errors import ConfigError, ScrumMasterError, StoreError
from langgraph_scrum_master.memory.backend import Backend
from langgraph_scrum_master.memory.records import (
    SEARCHED,
    CodePattern,
    Decision,
    DecisionFilter,
    DecisionResult,
    Kind,
    Memory,
    MemoryResult,
    PatternResult,
    Ranked,
    Record,
    created_of,
    decode,
    distinct_records,
    memory_record,
    result_of,
    session_of,
    why,
)
from langgraph_scrum_master.model import digest, instant, utc_now
from langgraph_scrum_master.protocols import Capability
from langgraph_scrum_master.rank.match import Match

T = TypeVar("T")

CANDIDATES = 100
"""Nearest records of each kind that are ranked."""

_FEW = 20
"""Least number of records ranked in a search over many shelves. The best ten differ from those of a ranking of 100 in
one case of 200."""

_MATCHING = 500
"""Newest records that are ranked in a search by metadata."""

ATTEMPTS = 8
"""Retries of a call after the backend has repaired the cause of an error."""

_BATCH = 1_000
"""Records per write; progress is reported after each."""

_Progress: TypeAlias = Callable[[int], None]
"""Called with the number of records stored so far."""

_joint_results: ContextVar[Mapping[tuple[RecordMemory, str, int], list[MemoryResult]]] = ContextVar("joint_results")


class RecordMemory:
    """A `MemoryStore` over a backend. No call blocks the event loop; failures raise `StoreError`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __repr__(self) -> str:
        shelf = f", shelf={self._backend.shelf!r}" if self._backend.shelf else ""
        return f"{type(self).__name__}({self._backend.place}, namespace={self._backend.tenant!r}{shelf})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordMemory) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it supports in addition to `MemoryStore`."""
        return self._backend.capabilities

    @property
    def namespace(self) -> str:
        """The tenant."""
        return self._backend.tenant

    @property
    def origin(self) -> object:
        """What its calls go to, such as the database that it shares with other namespaces."""
        return self._backend.origin

    def for_namespace(self, namespace: str) -> Self:
        """The memory of another tenant in the same store."""
        check_namespace(namespace)
        return self._over(self._backend.elsewhere(namespace, ""))

    def beside(self, name: str) -> Self:
        """A separate shelf in the same store, such as the one for a project's code."""
        own = self._backend.shelf
        return self._over(self._backend.elsewhere(self._backend.tenant, f"{own}/{name}" if own else name))

    def _over(self, backend: Backend) -> Self:
        other = object.__new__(type(self))
        RecordMemory.__init__(other, backend)
        return other

    async def open(self) -> None:
        """Load what the first search needs."""
        await self._call(self._backend.open)

    def close(self) -> None:
        """Close files and connections of all tenants in the same store; the next use opens them again."""
        with self._store_errors():
            self._backend.close()

    async def put(self, records: Sequence[Record], progress: _Progress | None = None) -> None:
        """Store the records in batches; a record with the same kind and key is replaced."""
        stored = distinct_records(records)
        for start in range(0, len(stored), _BATCH):
            await self._call(self._backend.put, stored[start : start + _BATCH])
            if progress is not None:
                progress(min(len(stored), start + _BATCH))

    async def drop(self, kinds: Sequence[Kind], keys: Sequence[str]) -> None:
        """Delete the records of these kinds with these keys; missing keys are ignored."""
        if wanted := list(dict.fromkeys(map(well_formed, keys))):
            await self._call(self._backend.drop, kinds, wanted)

    async def store_embedding(self, key: str, content: str, metadata: Mapping[str, Any]) -> None:
        """Store a text under a key."""
        await self.store_many([(key, content, metadata)])

    async def store_many(
        self, rows: Iterable[Memory | tuple[str, str, Mapping[str, Any]]], progress: _Progress | None = None
    ) -> None:
        """Store many texts, each as a `Memory`, or as key, content and metadata with the fields of one."""
        records = [
            memory_record(row.key, row.content, row.fields()) if isinstance(row, Memory) else memory_record(*row)
            for row in rows
        ]
        await self.put(records, progress)

    async def forget(self, *keys: str) -> None:
        """Delete memories, decisions, patterns and summaries by key. This cannot be undone."""
        await self.drop(SEARCHED, keys)

    async def store_decision(self, decision: Decision) -> str:
        """Store a decision and return its id."""
        await self.put([Record(kind="decision", key=decision.id, text=decision.text, data=decision.to_dict())])
        return decision.id

    async def store_pattern(self, pattern: CodePattern) -> str:
        """Store a pattern and return its id."""
        await self.put([Record(kind="pattern", key=pattern.id, text=pattern.text, data=pattern.to_dict())])
        return pattern.id

    async def store_relationship(self, source: str, target: str, relation: str) -> None:
        """Store a relationship between two things, by their keys or by their names in texts."""
        source, target, relation = str(source), str(target), str(relation)
        data = {"source": source, "target": target, "relation": relation}
        key = f"relationship:{digest(source, relation, target)}"
        await self.put([Record(kind="relationship", key=key, text=f"{source} {relation} {target}", data=data)])

    async def search_similar(self, query: str, k: int = 5) -> list[MemoryResult]:
        """The memories, decisions and patterns that match the query best. No threshold is applied."""
        return [result_of(*ranked) for ranked in await self._ranked(SEARCHED, query, CANDIDATES, k)]

    async def search_answers(
        self, need: str, around: Sequence[tuple[str, float]] = (), k: int = 5
    ) -> list[MemoryResult]:
        """The memories, decisions and patterns that most likely answer a need. No threshold is applied.

        `around` holds the messages around the need, each with its weight relative to the need.
        """
        if not need.strip():
            return []
        context = [(well_formed(text), weight) for text, weight in around if text.strip() and weight > 0]
        found = await self._call(self._backend.answering, SEARCHED, well_formed(need), context, CANDIDATES, max(0, k))
        return [result_of(*ranked) for ranked in found]

    async def search_by_words(self, query: str, k: int = 5) -> list[MemoryResult]:
        """As `search_similar`, for a query that cannot be embedded: by its words alone."""
        if not query.strip():
            return []
        wanted = (SEARCHED, well_formed(query), CANDIDATES, max(0, k))
        return [result_of(*ranked) for ranked in await self._call(self._backend.ranked_by_words, *wanted)]

    async def search_quickly(self, query: str, k: int = 5) -> list[MemoryResult]:
        """As `search_similar`, for a search over many shelves: fewer candidates are ranked."""
        cached = _joint_results.get({}).get((self, query, k))
        if cached is not None:
            return list(cached)
        return [result_of(*ranked) for ranked in await self._ranked(SEARCHED, query, max(k, _FEW), k)]

    @asynccontextmanager
    async def joint_search(self, query: str, names: Sequence[str], k: int, patience: float) -> AsyncIterator[None]:
        """Search several shelves at once, as one corpus. Inside the block, `search_quickly` returns their results.

        If the backend cannot do that, each shelf is searched separately. Raises `TimeoutError` after `patience`
        seconds.
        """
        shelves = [self.beside(name) if name else self for name in names]
        results: dict[tuple[RecordMemory, str, int], list[MemoryResult]] = {}
        with suppress(ScrumMasterError):
            search = self._call(
                self._backend.ranked_shelves,
                [shelf._backend.shelf for shelf in shelves],
                SEARCHED,
                well_formed(query),
                max(k, _FEW),
                max(0, k),
            )
            for shelf, found in zip(shelves, await asyncio.wait_for(search, patience) or (), strict=False):
                results[shelf, query, k] = [result_of(*ranked) for ranked in found]
        token = _joint_results.set(results)
        try:
            yield
        finally:
            _joint_results.reset(token)

    async def search_where(self, query: str, wanted: Mapping[str, str], k: int = 5) -> list[MemoryResult]:
        """The memories with all of these metadata values that match the query best."""
        found = await self._call(self._backend.matching, well_formed(query), wanted, _MATCHING)
        best = sorted(found, key=lambda each: (-each.match.score, each.record.key))[: max(0, k)]
        return [result_of(*ranked) for ranked in best]

    async def get_many(self, keys: Sequence[str]) -> dict[str, MemoryResult]:
        """The memories with these keys."""
        found = await self._call(self._backend.keyed, list(dict.fromkeys(map(well_formed, keys))))
        return {record.key: result_of(record, Match(1.0)) for record in found}

    async def every(self) -> list[MemoryResult]:
        """All memories."""
        return [result_of(record, Match(1.0)) for record in await self.list_all("memory")]

    async def list_all(self, kind: Kind) -> list[Record]:
        """All records of a kind."""
        return await self._call(self._backend.every, kind)

    async def embedded(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector for each text, from the memory's embedder."""
        return await self._call(self._backend.embedded, texts)

    async def nearest(self, vector: Sequence[float], k: int = 5) -> list[MemoryResult]:
        """The memories whose vectors are nearest to this one, with their cosines as scores, from 0 to 1."""
        return [result_of(*ranked) for ranked in await self._call(self._backend.nearest_to, list(vector), max(0, k))]

    async def notes(self, book: str, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """The notes in a book of this memory, optionally those with these keys. Searches do not find notes."""
        return await self._call(self._backend.notes, book, keys)

    async def save_notes(self, book: str, notes: Mapping[str, Any]) -> None:
        """Write notes into a book of this memory; those that are None are removed."""
        await self._call(self._backend.save_notes, book, notes)

    async def recent(self, query: str, session_id: str, since: str, k: int = 10) -> list[MemoryResult]:
        """The newest memories of the session, or created since then, newest first, scored against the query."""
        if not query.strip():
            return []
        wanted = (well_formed(query), well_formed(session_id), max(0.0, instant(since)), max(0, k))
        return [result_of(*ranked) for ranked in await self._call(self._backend.recent, *wanted)]

    async def end_session(self, session_id: str, summary: str, at: str | None = None) -> None:
        """Store the summary of a session, for the next one.

        Ending it again replaces the summary; an empty summary deletes it.
        """
        data = {"session": session_id, "created_at": at or utc_now()}
        key = f"session:{session_id}"
        if not summary.strip():
            await self.drop(("session",), [key])
            return
        await self.put([Record(kind="session", key=key, text=summary, data=json_shapes(data))])

    async def last_session(self, other_than: str = "") -> MemoryResult | None:
        """The summary of the session that ended last, other than this one."""
        record = await self._call(self._backend.newest, "session")
        if record and other_than and session_of(record) == other_than:
            others = [each for each in await self.list_all("session") if session_of(each) != other_than]
            record = max(others, key=created_of, default=None)
        return result_of(record, Match(1.0)) if record else None

    async def search_decisions(
        self, query: str, filters: DecisionFilter | None = None, k: int = 5
    ) -> list[DecisionResult]:
        """The decisions that pass the filter and match the query best."""
        if filters is None or not query.strip():
            ranked = await self._ranked(("decision",), query, CANDIDATES, None)
        else:
            ranked = await self._call(self._backend.ranked_decisions, well_formed(query), filters)
        found = [
            DecisionResult(decision=decision, similarity=match.score, **why(match))
            for record, match in ranked
            if (decision := decode(Decision, record)) and (filters is None or filters.accepts(decision))
        ]
        return found[: max(0, k)]

    async def get_decisions_by_agent(self, agent_type: str, limit: int = 10) -> list[Decision]:
        """The agent's decisions, newest first."""
        records = await self._call(self._backend.decisions_by_agent, agent_type, max(0, limit))
        decisions = [decode(Decision, record) for record in records]
        own = [decision for decision in decisions if decision and decision.agent_type == agent_type]
        return sorted(own, key=lambda decision: (-instant(decision.timestamp), decision.id))[: max(0, limit)]

    async def search_patterns(
        self, query: str = "", pattern_type: str | None = None, k: int = 5
    ) -> list[PatternResult]:
        """The patterns that match the query best; with an empty query, all of the type."""
        if not query.strip():
            ranked = [Ranked(record, Match(1.0)) for record in await self._patterns(pattern_type)]
        elif pattern_type is None:
            ranked = await self._ranked(("pattern",), query, CANDIDATES, None)
        else:
            ranked = await self._call(self._backend.ranked_patterns, well_formed(query), pattern_type)
        found = [
            PatternResult(pattern=pattern, similarity=match.score, **why(match))
            for record, match in ranked
            if (pattern := decode(CodePattern, record)) and pattern_type in (None, pattern.pattern_type)
        ]
        return found[: max(0, k)]

    async def get_patterns_by_type(self, pattern_type: str) -> list[CodePattern]:
        """All patterns of the type."""
        patterns = [decode(CodePattern, record) for record in await self._patterns(pattern_type)]
        return [pattern for pattern in patterns if pattern and pattern.pattern_type == pattern_type]

    async def _patterns(self, pattern_type: str | None) -> list[Record]:
        if pattern_type is None:
            return await self.list_all("pattern")
        return await self._call(self._backend.patterns_by_type, pattern_type)

    async def _ranked(self, kinds: Sequence[Kind], query: str, limit: int, k: int | None) -> list[Ranked]:
        if not query.strip():
            return []
        return await self._call(
            self._backend.ranked, kinds, well_formed(query), limit, None if k is None else max(0, k)
        )

    @property
    def _identity(self) -> tuple[str, str, str]:
        return self._backend.place, self._backend.tenant, self._backend.shelf

    async def _call(self, call: Callable[..., T], *args: Any) -> T:
        def guarded() -> T:
            with self._store_errors():
                for attempt in range(ATTEMPTS):
                    try:
                        return call(*args)
                    except Exception as error:
                        if not self._backend.cured(error, attempt):
                            raise
                return call(*args)

        return await off_loop(guarded)

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            yield
        except ScrumMasterError:
            raise
        # Databases raise many types of error.
        except BaseException as raised:
            error = recordable(raised)
            raise StoreError(f"{self!r} cannot be used: {type(error).__name__}: {error}") from error


def check_namespace(namespace: str) -> str:
    """The namespace. Raises `ConfigError` if it is empty or has control or other invisible characters."""
    if not is_printable(namespace):
        raise ConfigError(f"namespace must be a non-empty text without control characters, got {namespace!r}")
    return namespace
