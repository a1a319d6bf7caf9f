"""Maintenance of a record store: checks, rebuild, statistics, backup, export and retention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.memory.database import DerivedError, ShelfRow, Statements
from langgraph_scrum_master.memory.jsonl import row_of
from langgraph_scrum_master.memory.records import RECORD_KINDS, SEARCHED, Kind, Record, distinct_records
from langgraph_scrum_master.memory.shelf import count_new, words_of
from langgraph_scrum_master.memory.sqlite import SqliteDatabase
from langgraph_scrum_master.memory.statistics import Statistics
from langgraph_scrum_master.memory.store import StoreBackend
from langgraph_scrum_master.memory.writer import rebuild

_PAGE = 1_000
"""Records per batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfReport(Plain):
    """The result of a check for one shelf."""

    shelf: str
    """Its name; empty for the memory itself."""
    records: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCheck(Plain):
    """The result of a check."""

    shelves: tuple[ShelfReport, ...] = ()
    problems: tuple[str, ...] = ()
    """Problems of the database itself."""
    rebuilt: bool = False
    """Whether the derived data was rebuilt."""

    @property
    def records(self) -> int:
        """Records in all shelves."""
        return sum(each.records for each in self.shelves)

    @property
    def sound(self) -> bool:
        """Whether no problem was found."""
        return not self.problems and not any(each.problems for each in self.shelves)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfStatistics(Plain):
    """The size of a shelf."""

    namespace: str
    shelf: str
    records: int
    by_kind: dict[str, int]
    embedder: str
    dimensions: int


def check_store(backend: StoreBackend, *, and_rebuild: bool = False) -> MemoryCheck:
    """Check the database, and the derived data of a tenant's shelves against the records; optionally rebuild it."""
    database = backend.store.database
    with database.reading() as statements:
        problems = tuple(statements.integrity())
    with database.snapshot() as statements:
        shelves = tuple(_check_shelf(statements, name, row) for name, row in statements.shelves(backend.tenant))
    if not and_rebuild:
        return MemoryCheck(shelves=shelves, problems=problems)
    rebuild(database)
    return replace(check_store(backend), rebuilt=True)


def _check_shelf(statements: Statements, name: str, row: ShelfRow) -> ShelfReport:
    """Compare the derived data of a shelf with its records."""
    actual, stored = Statistics(lambda ids: words_of(statements, row.id, ids)), Statistics(lambda _ids: {})
    problems: list[str] = []
    count_new(actual, statements, row)
    if (saved := statements.statistics(row.id)) is not None:
        try:
            stored.load(saved)
        except DerivedError as error:
            problems.append(str(error))
    count_new(stored, statements, row)
    total = sum(actual.kinds.values())
    if (greatest := statements.greatest_id(row.id)) > row.last:
        problems.append(f"the newest record is {greatest}, but searches end at {row.last}")
    if not problems and not _equal(actual, stored):
        problems.append("the statistics differ from the records")
    if total != row.records:
        problems.append(f"the shelf counts {row.records} records, but has {total}")
    try:
        if missing := _without_postings(statements, row):
            problems.append(f"{missing} records have no postings")
        elif not actual.counts_terms(statements.posting_counts(row.id)):
            problems.append("the postings differ from the words of the records")
    except DerivedError as error:
        problems.append(str(error))
    problems += statements.check_vectors(row)
    return ShelfReport(shelf=name, records=total, problems=tuple(problems))


def _equal(one: Statistics, other: Statistics) -> bool:
    return (
        (one.size, one.length) == (other.size, other.length)
        and {kind: count for kind, count in one.kinds.items() if count}
        == {kind: count for kind, count in other.kinds.items() if count}
        and np.array_equal(one.tokens, other.tokens)
        and np.array_equal(one.grams, other.grams)
        and one.same_terms(other)
    )


def _without_postings(statements: Statements, row: ShelfRow) -> int:
    """The number of records without postings."""
    indexed = set(statements.indexed(row.id))
    searchable = {number for kind in SEARCHED for number in statements.ids(row.id, kind)}
    return len(searchable - indexed)


def statistics(backend: StoreBackend, every_tenant: bool = False) -> list[ShelfStatistics]:
    """The size of each shelf of a tenant, or of all tenants."""
    with backend.store.database.reading() as statements:
        tenants = statements.tenants() if every_tenant else [backend.tenant]
        return [
            ShelfStatistics(
                namespace=tenant,
                shelf=name,
                records=row.records,
                by_kind=dict(sorted(statements.kinds(row.id).items())),
                embedder=row.embedder,
                dimensions=row.dimensions,
            )
            for tenant in tenants
            for name, row in statements.shelves(tenant)
        ]


def back_up(backend: StoreBackend, target: Path) -> None:
    """Copy the whole database into a new file; other processes may keep writing."""
    database = backend.store.database
    if not isinstance(database, SqliteDatabase):
        raise StoreError(f"{backend.place} cannot be copied into a file: use pg_dump")
    if target.exists():
        raise StoreError(f"{str(target)!r} already exists: choose a new file")
    database.backup(target)


def export_records(backend: StoreBackend) -> Iterator[dict[str, Any]]:
    """All records of a tenant, shelf by shelf, as JSON objects for `import_records`."""
    with backend.store.database.reading() as statements:
        for name, row in statements.shelves(backend.tenant):
            ids = statements.in_order(row.id)
            for start in range(0, len(ids), _PAGE):
                records = statements.records(row.id, ids[start : start + _PAGE])
                for number in ids[start : start + _PAGE]:
                    if record := records.get(number):
                        yield row_of(name, record)


def page_of_records(backend: StoreBackend, kinds: Sequence[Kind], limit: int, offset: int) -> tuple[list[Record], int]:
    """Some records of a shelf, those stored last first, and the number of all."""
    shelf = backend.current()
    if shelf.row is None:
        return [], 0
    with backend.store.database.reading() as statements:
        ids = sorted((each for kind in kinds for each in statements.ids(shelf.row.id, kind)), reverse=True)
    found = shelf.records(ids[offset : offset + limit])
    return [found[each] for each in ids[offset : offset + limit] if each in found], len(ids)


def records_with_key(backend: StoreBackend, key: str) -> list[Record]:
    """The records of a shelf with this key, of any kind."""
    shelf = backend.current()
    return [record for kind in RECORD_KINDS for record in shelf.keyed(kind, [key])]


def import_records(backend: StoreBackend, rows: Iterable[tuple[str, Record]], progress: Callable[[int], None]) -> int:
    """Store records, each with the name of its shelf, and return their number."""
    done = 0
    batches: dict[str, list[Record]] = {}
    for shelf, record in rows:
        batch = batches.setdefault(shelf, [])
        batch.append(record)
        if len(batch) == _PAGE:
            backend.elsewhere(backend.tenant, shelf).put(distinct_records(batch))
            done, batches[shelf] = done + len(batch), []
            progress(done)
    for shelf, batch in batches.items():
        if batch:
            backend.elsewhere(backend.tenant, shelf).put(distinct_records(batch))
            done += len(batch)
            progress(done)
    return done


def forget_before(backend: StoreBackend, before: float) -> int:
    """Delete the records created before a time and return their number. Records without a time stay."""
    return _forget(backend, lambda statements, row: statements.created_before(row.id, before))


def forget_session(backend: StoreBackend, session: str) -> int:
    """Delete the records of a session, including its summary, and return their number."""
    return _forget(backend, lambda statements, row: statements.of_session(row.id, session))


def _forget(backend: StoreBackend, wanted: Callable[[Statements, ShelfRow], list[int]]) -> int:
    shelf = backend.current()
    if shelf.row is None:
        return 0
    with backend.store.database.reading() as statements:
        ids = wanted(statements, shelf.row)
    return sum(
        backend.store.writer.remove_ids(shelf, ids[start : start + _PAGE]) for start in range(0, len(ids), _PAGE)
    )
