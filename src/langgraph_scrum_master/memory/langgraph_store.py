"""Memory in the store that a graph was compiled with: any LangGraph `BaseStore`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from typing import Any, TypeVar

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem

from langgraph_scrum_master.blocking import off_loop
from langgraph_scrum_master.errors import ConfigError, ScrumMasterError, StoreError
from langgraph_scrum_master.memory.records import (
    SEARCHED,
    SHELF,
    Kind,
    Ranked,
    Record,
    RecordMemory,
    created_of,
    linked,
    names_of,
    session_of,
)
from langgraph_scrum_master.rank.answers import answers_among
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.rank.relevance import relevance
from langgraph_scrum_master.shapes import as_label, storable
from langgraph_scrum_master.text.references import canonical
from langgraph_scrum_master.text.terms import terms

T = TypeVar("T")

ROOT = "scrum_master"
"""The first label of our namespaces; the tenant and the kind follow."""

MOST = 1_000
"""Records of a kind that are ranked where the store itself cannot search: those that have most of the words."""

SESSION, CREATED, WRITTEN = "sm_session", "sm_created", "sm_written"
"""What an item says beside its text and data; not what a host would call its own."""

_TEXT_KEYS = ("content", "text", "memory")


class StoreMemory(RecordMemory):
    """A `MemoryStore` in a LangGraph store.

    Items are kept under `("scrum_master", namespace, kind)`. What the host itself puts there, with its text under
    `content`, `text` or `memory`, is found too.
    """

    def __init__(self, store: BaseStore, *, namespace: str = "default") -> None:
        if not namespace:
            raise ConfigError(f"namespace must be a non-empty text, got {namespace!r}")
        self._store = store
        self._namespace = namespace

    def __repr__(self) -> str:
        return f"StoreMemory({type(self._store).__name__}, namespace={self._namespace!r})"

    @property
    def namespace(self) -> str:
        """Whose memory it is."""
        return self._namespace

    def for_namespace(self, namespace: str) -> StoreMemory:
        """The memory of another tenant in the same store."""
        return StoreMemory(self._store, namespace=namespace)

    def labels(self, kind: Kind) -> tuple[str, ...]:
        """The store's namespace for a kind of record."""
        return (ROOT, as_label(self._namespace), kind)

    async def open(self) -> None:
        """Load what the first use would load: the embedder and what ranks."""
        await self._off_loop(relevance, "warm", ["warm"], embedder_for("static"))

    async def put(self, records: Sequence[Record]) -> None:
        """Keep the records in one batch."""
        rows = {(record.kind, record.key): record for record in records}
        # In the order in which they are written, also where a store gives all of a batch the same time.
        written = [time.time() + i * 1e-6 for i in range(len(rows))]
        puts = [
            PutOp(self.labels(kind), storable(key), _item(record, at))
            for ((kind, key), record), at in zip(rows.items(), written, strict=True)
        ]
        await self._off_loop(self._store.batch, puts)

    async def drop(self, kind: Kind, keys: Sequence[str]) -> None:
        """Let go of the records with these keys."""
        await self._off_loop(self._store.batch, [PutOp(self.labels(kind), storable(key), None) for key in keys])

    async def ranked(self, kinds: Sequence[Kind], query: str, limit: int, k: int | None = None) -> list[Ranked]:
        """The records of these kinds that serve the query best, of those that the store finds."""
        return (await self._off_loop(self._ranked_here, kinds, query, limit))[:k]

    async def answering(
        self, kinds: Sequence[Kind], need: str, around: Sequence[tuple[str, float]], limit: int, k: int
    ) -> list[Ranked]:
        """The records of these kinds that most likely answer the need."""
        return await self._off_loop(self._answering, kinds, need, around, limit, k)

    async def compared(self, query: str, session: str, since: float, limit: int) -> list[Ranked]:
        """The newest records of the session, or made since, newest first, compared with the query."""
        return await self._off_loop(self._compared, query, session, since, limit)

    async def matching(self, query: str, wanted: Mapping[str, str], limit: int) -> list[Ranked]:
        """The memories whose data say all that is wanted, the newest of very many, compared with the query."""
        return await self._off_loop(self._matching, query, wanted, limit)

    async def kept(self, keys: Sequence[str]) -> list[Record]:
        """The memories that are kept under these keys."""
        return await self._off_loop(self._kept, keys)

    def beside(self, name: str) -> StoreMemory:
        """A memory of its own in the same place, such as that of a project's code."""
        return self.for_namespace(f"{self._namespace}{SHELF}{name}")

    async def newest(self, kind: Kind) -> Record | None:
        """The newest record of a kind."""
        return await self._off_loop(lambda: next(iter(_newest_first(kind, self._pages(kind))), None))

    async def list_all(self, kind: Kind) -> list[Record]:
        """All records of a kind."""
        return await self._off_loop(self._list_all, kind)

    async def _off_loop(self, call: Callable[..., T], *args: Any) -> T:
        # By the store's blocking methods: some stores have no others, and those that live on an event loop take
        # such calls from another thread.
        try:
            return await off_loop(call, *args)
        except ScrumMasterError:
            raise
        except Exception as error:
            raise StoreError(f"{self!r} cannot be used: {type(error).__name__}: {error}") from error

    def _ranked_here(self, kinds: Sequence[Kind], query: str, limit: int) -> list[Ranked]:
        found = [record for kind in kinds for record in self._nearest(kind, query, limit)]
        ranked = self._matched(query, found)
        return sorted(ranked, key=lambda each: (-each.match.score, each.record.key))

    def _answering(
        self, kinds: Sequence[Kind], need: str, around: Sequence[tuple[str, float]], limit: int, k: int
    ) -> list[Ranked]:
        said = "\n".join((need, *(text for text, _ in around)))
        found = {
            (kind, record.key): record
            for kind in kinds
            for query in dict.fromkeys((need, said))
            for record in self._nearest(kind, query, limit)
        }
        records = list(found.values())
        matches = answers_among(need, around, [record.text for record in records], embedder_for("static"))
        ranked = [Ranked(record, match) for record, match in zip(records, matches, strict=True)]
        return sorted(ranked, key=lambda each: (-each.match.score, each.record.key))[:k]

    def _compared(self, query: str, session: str, since: float, limit: int) -> list[Ranked]:
        found = [record for kind in SEARCHED for record in self._since(kind, session, since)[:limit]]
        return self._matched(query, sorted(found, key=created_of, reverse=True)[:limit])

    def _matching(self, query: str, wanted: Mapping[str, str], limit: int) -> list[Ranked]:
        every = _newest_first("memory", self._pages("memory"))
        found = [record for record in every if all(record.data.get(name) == said for name, said in wanted.items())]
        return self._matched(query, found[:limit])

    def _kept(self, keys: Sequence[str]) -> list[Record]:
        found = self._store.batch([GetOp(self.labels("memory"), storable(key)) for key in keys])
        return [record for item in found if isinstance(item, Item) and (record := _record("memory", item))]

    def _since(self, kind: Kind, session: str, since: float) -> list[Record]:
        """The records of the session, or made since, newest first."""
        filters: list[dict[str, Any]] = [{CREATED: {"$gte": since}}, *([{SESSION: session}] if session else [])]
        try:
            items = [item for each in filters for item in self._pages(kind, each)]
        # A store in memory cannot compare what the host put there without a time; it is read fast.
        except (TypeError, ValueError):
            items = self._pages(kind)
        found = _newest_first(kind, list({item.key: item for item in items}.values()))
        return [each for each in found if created_of(each) >= since or (session and session_of(each) == session)]

    def _pages(self, kind: Kind, some: dict[str, Any] | None = None) -> list[SearchItem]:
        """All items of a kind, or those that a filter leaves."""
        items: list[SearchItem] = []
        while page := self._store.search(self.labels(kind), filter=some, limit=MOST, offset=len(items)):
            items += page
        return self._own(kind, items)

    def _matched(self, query: str, found: Sequence[Record]) -> list[Ranked]:
        related = self._related() if found else {}
        matches = relevance(
            query,
            [record.text for record in found],
            embedder_for("static"),
            sessions=[session_of(record) for record in found],
            linked=[
                [*linked(record), *(other for name in names_of(record) for other in related.get(name, ()))]
                for record in found
            ],
            keys=[record.key for record in found],
        )
        return [Ranked(record, match) for record, match in zip(found, matches, strict=True)]

    def _related(self) -> dict[str, list[str]]:
        """What relationships link each name with."""
        found: dict[str, list[str]] = {}
        for record in self._list_all("relationship"):
            one, other = (canonical(str(record.data.get(end))) for end in ("source", "target"))
            if one != other:
                found.setdefault(one, []).append(other)
                found.setdefault(other, []).append(one)
        return found

    def _nearest(self, kind: Kind, query: str, limit: int) -> list[Record]:
        items = self._own(kind, self._store.search(self.labels(kind), query=query, limit=limit))
        if items and items[0].score is None:
            return _wordiest(self._list_all(kind), query, max(limit, MOST))
        found = [record for item in items if (record := _record(kind, item))]
        if len(found) < limit:
            # An index that tenants share may have looked at the nearest of others, which do not count here.
            known = {record.key for record in found}
            first = self._own(kind, self._store.search(self.labels(kind), limit=MOST))
            others = [record for item in first if item.key not in known and (record := _record(kind, item))]
            found += _wordiest(others, query, limit)
        return found

    def _list_all(self, kind: Kind) -> list[Record]:
        return [record for item in self._pages(kind) if (record := _record(kind, item))]

    def _own(self, kind: Kind, items: Sequence[SearchItem]) -> list[SearchItem]:
        # A search also answers with what lies below the prefix: another tenant's must never pass.
        return [item for item in items if tuple(item.namespace) == self.labels(kind)]


def _wordiest(records: list[Record], query: str, most: int) -> list[Record]:
    """The records that have most of the query's words, if they are too many to rank."""
    if len(records) <= most:
        return records
    wanted = terms(query)
    return nlargest(most, records, key=lambda record: sum(map(record.text.lower().__contains__, wanted)))


def _newest_first(kind: Kind, items: Sequence[SearchItem]) -> list[Record]:
    """The records by when they say they were made, then by when they were written."""
    records = [(record, item) for item in items if (record := _record(kind, item))]
    return [record for record, _ in sorted(records, key=lambda pair: (created_of(pair[0]), _at(pair[1])), reverse=True)]


def _at(item: Item) -> float:
    at = item.value.get(WRITTEN)
    return float(at) if isinstance(at, int | float) else item.updated_at.timestamp()


def _item(record: Record, written: float) -> dict[str, Any]:
    # These stand outside of the data: stores filter by what is there.
    where = {SESSION: session_of(record), CREATED: created_of(record), WRITTEN: written}
    return {"content": storable(record.text), "data": storable(record.data), **where}


def _record(kind: Kind, item: Item) -> Record | None:
    text = next((item.value[key] for key in _TEXT_KEYS if isinstance(item.value.get(key), str)), "")
    data = item.value.get("data")
    if not isinstance(data, dict):
        data = {key: value for key, value in item.value.items() if key not in _TEXT_KEYS}
    return Record(kind=kind, key=item.key, text=text, data=data) if text else None
