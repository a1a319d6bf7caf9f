"""Memory in a LangGraph `BaseStore`, such as the one that a graph is compiled with."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem

from langgraph_scrum_master._internal.shapes import as_label, storable
from langgraph_scrum_master.memory.external import ForeignBackend, most_matching
from langgraph_scrum_master.memory.record_memory import RecordMemory, check_namespace
from langgraph_scrum_master.memory.records import Kind, Record, created_of, session_of

_ROOT = "scrum_master"
"""The first label of our namespaces; the tenant, the shelf if there is one, and the kind follow."""

NOTES = "notes"
"""The label of notes; the name of their book follows."""

_MOST = 1_000
"""Records of a kind that are ranked if the store has no index: those with most of the query's words."""

_SESSION, CREATED, WRITTEN = "sm_session", "sm_created", "sm_written"
"""The names of our own fields of an item, prefixed so that they do not clash with those of the application."""

_TEXT_KEYS = ("content", "text", "memory")


class StoreMemory(RecordMemory):
    """A `MemoryStore` in a LangGraph store.

    Items are stored under `("scrum_master", namespace, kind)`. Items that the application puts there, with their text
    under `content`, `text` or `memory`, are found too.
    """

    def __init__(self, store: BaseStore, *, namespace: str = "default") -> None:
        super().__init__(LangGraphBackend(store, check_namespace(namespace)))

    def labels(self, kind: Kind) -> tuple[str, ...]:
        """The store's namespace for a kind of record."""
        backend = self._backend
        return backend.labels(kind) if isinstance(backend, LangGraphBackend) else ()


class LangGraphBackend(ForeignBackend):
    """One shelf of one tenant in a LangGraph store.

    It uses the blocking methods of the store: some stores have no others, and stores that run on an event loop accept
    them from another thread.
    """

    def __init__(self, store: BaseStore, tenant: str, shelf: str = "") -> None:
        self.store = store
        self.tenant = tenant
        self.shelf = shelf

    @property
    def place(self) -> str:
        """The class of the store, for error messages."""
        return type(self.store).__name__

    @property
    def origin(self) -> object:
        """The store."""
        return self.store

    def elsewhere(self, tenant: str, shelf: str) -> LangGraphBackend:
        """Another shelf or tenant in the same store."""
        return LangGraphBackend(self.store, tenant, shelf)

    def labels(self, *kind: str) -> tuple[str, ...]:
        """The store's namespace for a kind of record."""
        shelf = (as_label(self.shelf),) if self.shelf else ()
        return (_ROOT, as_label(self.tenant), *shelf, *kind)

    def put(self, records: Sequence[Record]) -> None:
        """Store the records in one batch."""
        # Preserves the order within a batch, because some stores give all items of a batch the same time.
        written = [time.time() + i * 1e-6 for i in range(len(records))]
        self.store.batch(
            [
                PutOp(self.labels(record.kind), storable(record.key), _item(record, at))
                for record, at in zip(records, written, strict=True)
            ]
        )

    def drop(self, kinds: Sequence[Kind], keys: Sequence[str]) -> None:
        """Remove the records in one batch."""
        self.store.batch([PutOp(self.labels(kind), storable(key), None) for kind in kinds for key in keys])

    def keyed(self, keys: Sequence[str]) -> list[Record]:
        """The memories with these keys."""
        found = self.store.batch([GetOp(self.labels("memory"), storable(key)) for key in keys])
        return [record for item in found if isinstance(item, Item) and (record := _record("memory", item))]

    def newest(self, kind: Kind) -> Record | None:
        """The newest record of a kind."""
        return next(iter(_newest_first(kind, self._pages(self.labels(kind)))), None)

    def every(self, kind: Kind) -> list[Record]:
        """All records of a kind."""
        return [record for item in self._pages(self.labels(kind)) if (record := _record(kind, item))]

    def nearest(self, kind: Kind, query: str, limit: int) -> list[Record]:
        """The results of the store's search; without an index, the records with most of the query's words."""
        labels = self.labels(kind)
        items = _own(labels, self.store.search(labels, query=query, limit=limit))
        if items and items[0].score is None:
            return most_matching(self.every(kind), query, max(limit, _MOST))
        found = [record for item in items if (record := _record(kind, item))]
        if len(found) < limit:
            # An index that tenants share may have spent its candidates on other tenants.
            known = {record.key for record in found}
            first = _own(labels, self.store.search(labels, limit=_MOST))
            others = [record for item in first if item.key not in known and (record := _record(kind, item))]
            found += most_matching(others, query, limit)
        return found

    def since(self, kind: Kind, session: str, since: float) -> list[Record]:
        """The records of the session, or created since, newest first."""
        filters: list[dict[str, Any]] = [{CREATED: {"$gte": since}}, *([{_SESSION: session}] if session else [])]
        try:
            items = [item for each in filters for item in self._pages(self.labels(kind), each)]
        # InMemoryStore cannot compare items of the application that have no time; reading all of them is fast there.
        except (TypeError, ValueError):
            items = self._pages(self.labels(kind))
        found = _newest_first(kind, list({item.key: item for item in items}.values()))
        return [each for each in found if created_of(each) >= since or (session and session_of(each) == session)]

    def having(self, kind: Kind, wanted: Mapping[str, str]) -> list[Record]:
        """The records whose metadata have these values, newest first."""
        every = _newest_first(kind, self._pages(self.labels(kind)))
        return [record for record in every if all(record.data.get(name) == value for name, value in wanted.items())]

    def notes(self, book: str, keys: Sequence[str] | None) -> dict[str, Any]:
        """The notes in a book."""
        labels = self.labels(NOTES, as_label(book))
        if keys is None:
            return {item.key: item.value["value"] for item in self._pages(labels)}
        found = self.store.batch([GetOp(labels, storable(key)) for key in keys])
        return {item.key: item.value["value"] for item in found if isinstance(item, Item)}

    def save_notes(self, book: str, notes: Mapping[str, Any]) -> None:
        """Write notes into a book."""
        labels = self.labels(NOTES, as_label(book))
        # Not indexed, because they are never searched.
        self.store.batch(
            [
                PutOp(labels, storable(key), None if value is None else {"value": storable(value)}, index=False)
                for key, value in notes.items()
            ]
        )

    def _pages(self, labels: tuple[str, ...], where: dict[str, Any] | None = None) -> list[SearchItem]:
        """All items of a namespace that pass the filter."""
        items: list[SearchItem] = []
        while page := self.store.search(labels, filter=where, limit=_MOST, offset=len(items)):
            items += page
        return _own(labels, items)


def _own(labels: tuple[str, ...], items: Sequence[SearchItem]) -> list[SearchItem]:
    # A search also returns items of longer namespaces, which may belong to another tenant.
    return [item for item in items if tuple(item.namespace) == labels]


def _newest_first(kind: Kind, items: Sequence[SearchItem]) -> list[Record]:
    """The records by creation time, then by write time, newest first."""
    records = [(record, item) for item in items if (record := _record(kind, item))]
    return [record for record, _ in sorted(records, key=lambda pair: (created_of(pair[0]), _at(pair[1])), reverse=True)]


def _at(item: Item) -> float:
    at = item.value.get(WRITTEN)
    return float(at) if isinstance(at, int | float) else item.updated_at.timestamp()


def _item(record: Record, written: float) -> dict[str, Any]:
    # At the top level, because stores filter by top-level fields.
    where = {_SESSION: session_of(record), CREATED: created_of(record), WRITTEN: written}
    return {"content": storable(record.text), "data": storable(record.data), **where}


def _record(kind: Kind, item: Item) -> Record | None:
    text = next((item.value[key] for key in _TEXT_KEYS if isinstance(item.value.get(key), str)), "")
    data = item.value.get("data")
    if not isinstance(data, dict):
        data = {key: value for key, value in item.value.items() if key not in _TEXT_KEYS}
    return Record(kind=kind, key=item.key, text=text, data=data) if text else None
