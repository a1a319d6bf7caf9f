"""What all backends have in common: kinds of records, and the `MemoryStore` methods over three primitives."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from langgraph_scrum_master.blocking import off_loop
from langgraph_scrum_master.codec import from_plain, json_shapes
from langgraph_scrum_master.errors import DecodeError, ScrumMasterError
from langgraph_scrum_master.logs import logger
from langgraph_scrum_master.memories import (
    CodePattern,
    Decision,
    DecisionFilter,
    DecisionResult,
    Match,
    Memory,
    MemoryResult,
    PatternResult,
)
from langgraph_scrum_master.model import digest, instant, utc_now
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.shapes import dict_of, items_of, well_formed
from langgraph_scrum_master.text.references import canonical, own_reference, references

Stored = TypeVar("Stored", Decision, CodePattern)

Kind: TypeAlias = Literal["memory", "decision", "pattern", "session", "relationship"]
"""What a record is; a session's is the summary it ended with."""

SEARCHED: tuple[Kind, ...] = ("memory", "decision", "pattern", "session")
"""What `search_similar` looks through."""

CANDIDATES = 100
"""How many of the nearest of each kind are ranked."""

FEW = 20
"""How many of the nearest are ranked at least where it must be quick: the best ten of them are those of a hundred, but
for one in two hundred.
"""

EVERY = 10_000
"""How many are ranked where a filter may leave few of them."""

MATCHING = 500
"""How many of the newest are compared where the metadata decide."""

BATCH = 1_000
"""Records that are written at once; after each, progress is told."""

SHELF = "\x1f"
"""Between a tenant's name and that of a memory beside its own: no run may name a tenant with it."""

_asked_before: ContextVar[Mapping[tuple[RecordMemory, str, int], list[MemoryResult]]] = ContextVar("asked_before")

Progress: TypeAlias = Callable[[int], None]
"""Is told how many records are kept so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One thing remembered; `data` holds JSON shapes."""

    kind: Kind
    key: str
    text: str
    data: dict[str, Any]


class Ranked(NamedTuple):
    """A record, and how well it serves a query."""

    record: Record
    match: Match


class RecordMemory(ABC):
    """A `MemoryStore`, given how to put, drop, rank and list records."""

    @abstractmethod
    async def put(self, records: Sequence[Record]) -> None:
        """Keep the records; one with the same kind and key is replaced."""

    @abstractmethod
    async def drop(self, kind: Kind, keys: Sequence[str]) -> None:
        """Let go of the records with these keys; those that are not there are passed over."""

    @abstractmethod
    async def ranked(self, kinds: Sequence[Kind], query: str, limit: int, k: int | None = None) -> list[Ranked]:
        """The `k` records of these kinds that serve the query best, of the `limit` nearest or so, best first."""

    @abstractmethod
    async def answering(
        self, kinds: Sequence[Kind], need: str, around: Sequence[tuple[str, float]], limit: int, k: int
    ) -> list[Ranked]:
        """The `k` records of these kinds that most likely answer the need, of the `limit` nearest or so, best first."""

    @abstractmethod
    async def compared(self, query: str, session: str, since: float, limit: int) -> list[Ranked]:
        """The newest records of the session, or made since, newest first, compared with the query."""

    @abstractmethod
    async def matching(self, query: str, wanted: Mapping[str, str], limit: int) -> list[Ranked]:
        """The memories whose data say all that is wanted, the newest of very many, compared with the query."""

    @abstractmethod
    def beside(self, name: str) -> RecordMemory:
        """A memory of its own in the same place, such as that of a project's code; always the same one by its name."""

    @abstractmethod
    async def newest(self, kind: Kind) -> Record | None:
        """The newest record of a kind."""

    @abstractmethod
    async def kept(self, keys: Sequence[str]) -> list[Record]:
        """The memories that are kept under these keys."""

    @abstractmethod
    async def list_all(self, kind: Kind) -> list[Record]:
        """All records of a kind."""

    async def store_embedding(self, key: str, content: str, metadata: Mapping[str, Any]) -> None:
        """Keep a text under a key."""
        await self.store_many([(key, content, metadata)])

    async def store_many(
        self, rows: Iterable[Memory | tuple[str, str, Mapping[str, Any]]], progress: Progress | None = None
    ) -> None:
        """Keep many texts, each as a `Memory`, or as key, content and metadata, which may hold a memory's fields."""
        records = [
            _memory(row.key, row.content, row.fields()) if isinstance(row, Memory) else _memory(*row) for row in rows
        ]
        for start in range(0, len(records), BATCH):
            await self.put(records[start : start + BATCH])
            if progress is not None:
                progress(min(len(records), start + BATCH))

    async def forget(self, *keys: str) -> None:
        """Let go of memories, decisions, patterns and summaries by their keys."""
        for kind in SEARCHED:
            await self.drop(kind, keys)

    async def store_decision(self, decision: Decision) -> str:
        """Keep a decision; gives its id."""
        await self.put([Record(kind="decision", key=decision.id, text=decision.text, data=decision.to_dict())])
        return decision.id

    async def store_pattern(self, pattern: CodePattern) -> str:
        """Keep a pattern; gives its id."""
        await self.put([Record(kind="pattern", key=pattern.id, text=pattern.text, data=pattern.to_dict())])
        return pattern.id

    async def store_relationship(self, source: str, target: str, relation: str) -> None:
        """Keep that two things are related, by their keys or by the names they have in texts."""
        source, target, relation = str(source), str(target), str(relation)
        data = {"source": source, "target": target, "relation": relation}
        key = f"relationship:{digest(source, relation, target)}"
        await self.put([Record(kind="relationship", key=key, text=f"{source} {relation} {target}", data=data)])

    async def search_similar(self, query: str, k: int = 5) -> list[MemoryResult]:
        """The memories, decisions and patterns that serve the query best; no bar is applied."""
        return [result_of(*ranked) for ranked in await self._ranked(SEARCHED, query, k=max(0, k))]

    async def search_answers(
        self, need: str, around: Sequence[tuple[str, float]] = (), k: int = 5
    ) -> list[MemoryResult]:
        """The memories, decisions and patterns that most likely answer a need; no bar is applied.

        `around` is what was said around it, each with how much that counts: 1 as much as the need itself.
        """
        if not need.strip():
            return []
        said = [(well_formed(text), weight) for text, weight in around if text.strip() and weight > 0]
        found = await self.answering(SEARCHED, well_formed(need), said, CANDIDATES, max(0, k))
        return [result_of(*ranked) for ranked in found]

    async def search_quickly(self, query: str, k: int = 5) -> list[MemoryResult]:
        """The same where many memories are asked at once: few more are ranked than are wanted."""
        known = _asked_before.get({}).get((self, query, k))
        if known is not None:
            return list(known)
        return [result_of(*ranked) for ranked in await self._ranked(SEARCHED, query, max(k, FEW), max(0, k))]

    @asynccontextmanager
    async def asked_before(self, query: str, names: Sequence[str], k: int, patience: float) -> AsyncIterator[None]:
        """Ask the memories beside all at once; as long as this is open, `search_quickly` has their answers.

        What is rare is what is rare in all of them. Where they cannot be asked so, each answers for itself; raises
        `TimeoutError` if that takes too long.
        """
        memories = [self.beside(name) if name else self for name in names]
        known: dict[tuple[RecordMemory, str, int], list[MemoryResult]] = {}
        with suppress(ScrumMasterError):
            asked = self.ranked_at_once(memories, well_formed(query), max(k, FEW), max(0, k))
            for memory, found in (await asyncio.wait_for(asked, patience)).items():
                known[memory, query, k] = [result_of(*ranked) for ranked in found]
        token = _asked_before.set(known)
        try:
            yield
        finally:
            _asked_before.reset(token)

    async def ranked_at_once(
        self, memories: Sequence[RecordMemory], query: str, limit: int, k: int
    ) -> Mapping[RecordMemory, list[Ranked]]:
        """What each of these ranks best, where one search of all costs less than one each; else nothing."""
        return {}

    async def search_where(self, query: str, wanted: Mapping[str, str], k: int = 5) -> list[MemoryResult]:
        """The memories that serve the query best, of those whose metadata say all that is wanted."""
        found = await self.matching(well_formed(query), wanted, MATCHING)
        best = sorted(found, key=lambda each: (-each.match.score, each.record.key))[: max(0, k)]
        return [result_of(*ranked) for ranked in best]

    async def get_many(self, keys: Sequence[str]) -> dict[str, MemoryResult]:
        """The memories that are kept under these keys."""
        return {record.key: result_of(record, Match(1.0)) for record in await self.kept(keys)}

    async def every(self) -> list[MemoryResult]:
        """All memories that are kept."""
        return [result_of(record, Match(1.0)) for record in await self.list_all("memory")]

    async def embedded(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector for each text, as the memory's embedder makes it of the text alone."""
        return await off_loop(embedded, texts, embedder_for("static"))

    async def recent(self, query: str, session_id: str, since: str, k: int = 10) -> list[MemoryResult]:
        """The newest memories of the session, or made since then, newest first, each with how like the query it is."""
        if not query.strip():
            return []
        found = await self.compared(well_formed(query), well_formed(session_id), max(0.0, instant(since)), max(0, k))
        return [result_of(*ranked) for ranked in found]

    async def end_session(self, session_id: str, summary: str, at: str | None = None) -> None:
        """Keep what a session came to: the next one is told of it.

        Ending it again replaces the summary, an empty one takes it away.
        """
        data = {"session": session_id, "created_at": at or utc_now()}
        key = f"session:{session_id}"
        if not summary.strip():
            await self.drop("session", [key])
            return
        await self.put([Record(kind="session", key=key, text=summary, data=json_shapes(data))])

    async def last_session(self) -> MemoryResult | None:
        """The summary of the session that ended last."""
        record = await self.newest("session")
        return result_of(record, Match(1.0)) if record else None

    async def search_decisions(
        self, query: str, filters: DecisionFilter | None = None, k: int = 5
    ) -> list[DecisionResult]:
        """The decisions that pass the filter and fit the query best."""
        ranked = await self._ranked(("decision",), query, CANDIDATES if filters is None else EVERY)
        found = [
            DecisionResult(decision=decision, similarity=match.score, **_why(match))
            for record, match in ranked
            if (decision := _decoded(Decision, record)) and (filters is None or filters.accepts(decision))
        ]
        return found[:k]

    async def get_decisions_by_agent(self, agent_type: str, limit: int = 10) -> list[Decision]:
        """The agent's decisions, newest first."""
        decisions = [_decoded(Decision, record) for record in await self.list_all("decision")]
        own = [decision for decision in decisions if decision and decision.agent_type == agent_type]
        return sorted(own, key=lambda decision: (-instant(decision.timestamp), decision.id))[:limit]

    async def search_patterns(
        self, query: str = "", pattern_type: str | None = None, k: int = 5
    ) -> list[PatternResult]:
        """The patterns that fit the query best; with an empty query, any of the type."""
        if query.strip():
            ranked = await self._ranked(("pattern",), query, CANDIDATES if pattern_type is None else EVERY)
        else:
            ranked = [Ranked(record, Match(1.0)) for record in await self.list_all("pattern")]
        found = [
            PatternResult(pattern=pattern, similarity=match.score, **_why(match))
            for record, match in ranked
            if (pattern := _decoded(CodePattern, record)) and pattern_type in (None, pattern.pattern_type)
        ]
        return found[:k]

    async def get_patterns_by_type(self, pattern_type: str) -> list[CodePattern]:
        """All patterns of the type."""
        patterns = [_decoded(CodePattern, record) for record in await self.list_all("pattern")]
        return [pattern for pattern in patterns if pattern and pattern.pattern_type == pattern_type]

    async def _ranked(
        self, kinds: Sequence[Kind], query: str, limit: int = CANDIDATES, k: int | None = None
    ) -> list[Ranked]:
        return await self.ranked(kinds, well_formed(query), limit, k) if query.strip() else []


def embedded(texts: Sequence[str], embedder: Embedder) -> list[list[float]]:
    """A unit vector for each text, as the embedder makes it."""
    from langgraph_scrum_master.rank.asked import unit_vectors

    vectors: list[list[float]] = unit_vectors(texts, embedder).tolist() if texts else []
    return vectors


def session_of(record: Record) -> str:
    """The session that a record says it belongs to; nothing if it does not say."""
    session = record.data.get("session")
    return "" if session is None else well_formed(str(session))


def created_of(record: Record) -> float:
    """When a record says it was made, in seconds since the epoch; 0 if it does not say."""
    at = instant(str(record.data.get("created_at") or record.data.get("timestamp") or ""))
    return at if at > 0 else 0.0


def names_of(record: Record) -> tuple[str, str]:
    """What others refer to the record by: the name in its heading, and its key."""
    return own_reference(record.text), canonical(record.key)


def linked(record: Record) -> list[str]:
    """What else a record says it refers to: the records that it lists, by the names they have in texts."""
    listed = [str(name) for field in ("references", "artifact_ids") for name in items_of(record.data.get(field))]
    return [reference for name in listed for reference in (canonical(name), *references(name))]


def _memory(key: str, content: str, metadata: Mapping[str, Any]) -> Record:
    return Record(kind="memory", key=key, text=content, data=json_shapes(dict_of(metadata)))


def _decoded(kind: type[Stored], record: Record) -> Stored | None:
    """What the record holds; nothing, with a warning, if that is not what it should be."""
    try:
        return from_plain(kind, record.data)
    except DecodeError:
        logger.warning("record.skipped", kind=record.kind, key=record.key, expected=kind.__name__)
        return None


def result_of(record: Record, match: Match) -> MemoryResult:
    """The record as a search gives it."""
    return MemoryResult(
        key=record.key,
        content=record.text,
        score=match.score,
        metadata={"kind": record.kind, **record.data},
        **_why(match),
    )


def _why(match: Match) -> dict[str, Any]:
    return {"strengths": dict(match.strengths), "weighted_agreement": match.agreement}
