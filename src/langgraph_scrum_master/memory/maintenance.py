"""Looking after a record store: checking it, rebuilding what is derived, statistics, backup, export and retention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.memory.database import DerivedError, ShelfRow, Statements
from langgraph_scrum_master.memory.records import SEARCHED, Kind, Record, distinct_records
from langgraph_scrum_master.memory.shelf import count_new, words_of
from langgraph_scrum_master.memory.sqlite import SqliteDatabase
from langgraph_scrum_master.memory.statistics import Statistics
from langgraph_scrum_master.memory.store import StoreBackend
from langgraph_scrum_master.memory.writer import rebuild

RECORD_KINDS: tuple[Kind, ...] = (*SEARCHED, "relationship")

_PAGE = 1_000
"""Records that are read at once."""

_Progress = Callable[[int, int], None]
"""Is called with how many of how many are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfReport(Plain):
    """What a check found in one shelf."""

    shelf: str
    """Its name; empty for the memory itself."""
    records: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCheck(Plain):
    """What a check found."""

    shelves: tuple[ShelfReport, ...] = ()
    problems: tuple[str, ...] = ()
    """Of the database itself."""
    rebuilt: bool = False
    """Whether everything that is derived from the records was made again."""

    @property
    def records(self) -> int:
        """Records in all shelves."""
        return sum(each.records for each in self.shelves)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and not any(each.problems for each in self.shelves)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfStatistics(Plain):
    """How much a shelf holds."""

    namespace: str
    shelf: str
    records: int
    by_kind: dict[str, int]
    embedder: str
    dimensions: int


def check_store(backend: StoreBackend, *, and_rebuild: bool = False) -> MemoryCheck:
    """Check the database, and all shelves of a tenant against what their records say; `and_rebuild` makes it right."""
    database = backend.store.database
    with database.reading() as statements:
        problems = tuple(statements.integrity())
    with database.snapshot() as statements:
        shelves = tuple(_checked(statements, name, row) for name, row in statements.shelves(backend.tenant))
    if not and_rebuild:
        return MemoryCheck(shelves=shelves, problems=problems)
    rebuild(database)
    return replace(check_store(backend), rebuilt=True)


def _checked(statements: Statements, name: str, row: ShelfRow) -> ShelfReport:
    """Whether what is derived from a shelf's records agrees with them."""
    there, kept = Statistics(lambda ids: words_of(statements, row.id, ids)), Statistics(lambda _ids: {})
    problems: list[str] = []
    count_new(there, statements, row)
    if (saved := statements.statistics(row.id)) is not None:
        try:
            kept.load(saved)
        except DerivedError as error:
            problems.append(str(error))
    count_new(kept, statements, row)
    total = sum(there.kinds.values())
    if (greatest := statements.greatest_id(row.id)) > row.last:
        problems.append(f"records were written up to {greatest}, only those up to {row.last} are found")
    if not problems and not _agree(there, kept):
        problems.append("the statistics differ from the records")
    if total != row.records:
        problems.append(f"{row.records} records are counted, {total} are there")
    try:
        if unfound := _unfound(statements, row):
            problems.append(f"{unfound} records are not found by their words")
        elif not there.counts_terms(statements.posting_counts(row.id)):
            problems.append("the postings differ from the words of the records")
    except DerivedError as error:
        problems.append(str(error))
    problems += statements.check_vectors(row)
    return ShelfReport(shelf=name, records=total, problems=tuple(problems))


def _agree(one: Statistics, other: Statistics) -> bool:
    return (
        (one.size, one.length) == (other.size, other.length)
        and {kind: count for kind, count in one.kinds.items() if count}
        == {kind: count for kind, count in other.kinds.items() if count}
        and np.array_equal(one.tokens, other.tokens)
        and np.array_equal(one.grams, other.grams)
        and one.same_terms(other)
    )


def _unfound(statements: Statements, row: ShelfRow) -> int:
    """How many records no posting leads to."""
    found = set(statements.indexed(row.id))
    there = {number for kind in SEARCHED for number in statements.ids(row.id, kind)}
    return len(there - found)


def statistics(backend: StoreBackend, every_tenant: bool = False) -> list[ShelfStatistics]:
    """How much the shelves of a tenant, or of all tenants, hold."""
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
    """Write a copy of the whole database into a new file, also while others write."""
    database = backend.store.database
    if not isinstance(database, SqliteDatabase):
        raise StoreError(f"{backend.place} cannot be copied into a file: use pg_dump")
    if target.exists():
        raise StoreError(f"{str(target)!r} is there already: name a new file")
    database.backup(target)


def exported(backend: StoreBackend) -> Iterator[dict[str, Any]]:
    """All records and notes of a tenant, shelf by shelf, as objects that `imported` takes."""
    with backend.store.database.reading() as statements:
        for name, row in statements.shelves(backend.tenant):
            ids = statements.in_order(row.id)
            for start in range(0, len(ids), _PAGE):
                records = statements.records(row.id, ids[start : start + _PAGE])
                for number in ids[start : start + _PAGE]:
                    if record := records.get(number):
                        yield _exported(name, record)


def _exported(shelf: str, record: Record) -> dict[str, Any]:
    return {
        "shelf": shelf,
        "kind": record.kind,
        "key": record.key,
        "content": record.text,
        "metadata": record.data,
    }


def imported(backend: StoreBackend, rows: Iterable[tuple[str, Record]], progress: Callable[[int], None]) -> int:
    """Store records, each with its shelf; gives how many there were."""
    done = 0
    waiting: dict[str, list[Record]] = {}
    for shelf, record in rows:
        batch = waiting.setdefault(shelf, [])
        batch.append(record)
        if len(batch) == _PAGE:
            backend.elsewhere(backend.tenant, shelf).put(distinct_records(batch))
            done, waiting[shelf] = done + len(batch), []
            progress(done)
    for shelf, batch in waiting.items():
        if batch:
            backend.elsewhere(backend.tenant, shelf).put(distinct_records(batch))
            done += len(batch)
            progress(done)
    return done


def forget_before(backend: StoreBackend, before: float) -> int:
    """Remove what was made before a time; what does not say when it was made stays. Gives how many records went."""
    return _forget(backend, lambda statements, row: statements.made_before(row.id, before))


def forget_session(backend: StoreBackend, session: str) -> int:
    """Remove the records of a session, its summary included; gives how many went."""
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
