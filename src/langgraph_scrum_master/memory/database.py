"""The SQL of the record store that SQLite and PostgreSQL share.

The parts that differ, mainly full-text and vector search, are in `memory.sqlite` and `memory.postgres`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from langgraph_scrum_master.memory.records import Kind, Record
from langgraph_scrum_master.rank.features import Array

FOREVER = 1e18
"""A time later than any record, in seconds since the epoch."""

_SCAN_LIMIT = 10_000
"""Id ranges up to this size are scanned; larger ones go through the index of the shelf."""

MOST_LINKS = 50
"""Links per name; only the newest are used."""


class ShelfRow(NamedTuple):
    """A row of the table `shelves`."""

    id: int
    embedder: str
    """The class name of the embedder; empty while the shelf has no vectors."""
    dimensions: int
    epoch: int
    """Grows whenever a record is deleted or replaced."""
    last: int
    """The id of the newest record."""
    pending: int
    """Records written since the statistics were last saved."""
    records: int
    """Number of records."""


class Entry(NamedTuple):
    """A record to be inserted."""

    kind: Kind
    key: str
    session: str
    position: int
    created: float
    agent: str
    """Its author; empty if unknown."""
    own: int
    """The name by which other texts cite it, as CRC-32; 0 if its heading has no name."""
    alias: int
    """Its key, as CRC-32."""
    features: bytes
    vector: bytes
    meaning: bytes
    """Its vector in the static model; empty if `vector` is the same."""
    context: bytes
    """`meaning` with the vectors of session neighbours added; empty without neighbours."""
    text: str
    data: str
    terms: tuple[int, ...] = ()
    """The terms of its postings."""
    facets: tuple[int, ...] = ()
    """Its metadata values, as CRC-32."""


class StoredRow(NamedTuple):
    """A stored record, for replacing or deleting it."""

    id: int
    kind: Kind
    key: str
    session: str
    position: int
    own: int
    alias: int
    features: bytes
    vector: bytes
    text: str
    data: str


class FeatureRow(NamedTuple):
    """A stored record, for corpus statistics."""

    id: int
    kind: Kind
    features: bytes
    vector: bytes


class DerivedError(Exception):
    """Derived data is damaged. It can be rebuilt from the records."""


class Statements(ABC):
    """The SQL statements on one connection. Each is limited to one shelf."""

    @abstractmethod
    def execute(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a statement. `?` is the placeholder."""

    @abstractmethod
    def executemany(self, query: str, values: Iterable[Sequence[Any]]) -> None:
        """Execute the statement for each row of values."""

    @abstractmethod
    def among(
        self, query: str, values: Sequence[Any], before: Sequence[Any] = (), after: Sequence[Any] = ()
    ) -> list[Any]:
        """The rows of a statement in which `{}` becomes an `IN` condition for these values, of any number."""

    @abstractmethod
    def insert(self, shelf: int, entries: Sequence[Entry]) -> list[int]:
        """Insert new records and return their ids."""

    @abstractmethod
    def delete(
        self, shelf: int, removed: Sequence[StoredRow], bodies: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> None:
        """Delete the records; `bodies` holds the terms and facets of each."""

    @abstractmethod
    def postings(self, shelf: int, terms: Sequence[int], kinds: Sequence[Kind] | None, limit: int) -> list[Array]:
        """The postings of each term: the ids of the newest records, optionally of these kinds."""

    @abstractmethod
    def with_facets(self, shelf: int, kind: Kind, facets: Sequence[int], limit: int) -> list[int]:
        """The ids of the newest records of a kind that have all of these facets."""

    @abstractmethod
    def nearest(self, shelf: ShelfRow, kind: Kind, vector: Array, limit: int) -> list[tuple[int, float]]:
        """The ids of the records whose vectors are nearest, with their cosines."""

    @abstractmethod
    def index(self, shelf: int, rows: Sequence[StoredRow], facets: Sequence[Sequence[int]]) -> None:
        """Write the postings of records that have none."""

    @abstractmethod
    def indexed(self, shelf: int) -> list[int]:
        """The ids of all records that have postings."""

    @abstractmethod
    def posting_counts(self, shelf: int) -> dict[int, int]:
        """The number of postings per term."""

    def greatest_id(self, shelf: int) -> int:
        """The id of the newest record; 0 if there is none."""
        found = self.one("SELECT max(id) FROM records WHERE shelf = ?", (shelf,))
        return int(found[0] or 0)

    @abstractmethod
    def clear_derived(self) -> None:
        """Delete all derived data of all shelves: postings, statistics, vector blocks."""

    def integrity(self) -> list[str]:
        """The problems that the database itself reports."""
        return []

    def check_vectors(self, shelf: ShelfRow) -> list[str]:
        """The differences between the vector index and the records."""
        return []

    @abstractmethod
    def pack(self, shelf: ShelfRow) -> None:
        """Update the vector index with the new records, if there are enough."""

    def one(self, query: str, values: Sequence[Any] = ()) -> Any:
        """The first row of a statement, or None."""
        rows = self.execute(query, values)
        return rows[0] if rows else None

    def shelf(self, tenant: str, name: str) -> ShelfRow | None:
        """The shelf with this name, or None."""
        found = self.one(f"SELECT tenant, name, {_SHELF} FROM shelves WHERE tenant = ? AND name = ?", (tenant, name))
        # Compared again, because a collation may treat two names as equal.
        return ShelfRow(*found[2:]) if found and (found[0], found[1]) == (tenant, name) else None

    def shelves(self, tenant: str) -> list[tuple[str, ShelfRow]]:
        """All shelves of a tenant by name."""
        found = self.execute(f"SELECT name, {_SHELF} FROM shelves WHERE tenant = ? ORDER BY name", (tenant,))
        return [(name, ShelfRow(*row)) for name, *row in found]

    def tenants(self) -> list[str]:
        """All tenants that have a shelf."""
        return [tenant for (tenant,) in self.execute("SELECT DISTINCT tenant FROM shelves ORDER BY tenant")]

    def touch(self, shelf: ShelfRow) -> None:
        """Update the row of a shelf."""
        self.execute(
            "UPDATE shelves SET embedder = ?, dimensions = ?, epoch = ?, last = ?, pending = ?, "
            "records = ? WHERE id = ?",
            (*shelf[1:], shelf.id),
        )

    def statistics(self, shelf: int) -> bytes | None:
        """The saved statistics."""
        found = self.one("SELECT content FROM statistics WHERE shelf = ?", (shelf,))
        return bytes(found[0]) if found else None

    def save_statistics(self, shelf: int, content: bytes) -> None:
        """Replace the saved statistics."""
        self.execute(
            "INSERT INTO statistics(shelf, content) VALUES (?, ?) "
            "ON CONFLICT(shelf) DO UPDATE SET content = excluded.content",
            (shelf, content),
        )

    def feature_rows(self, shelf: ShelfRow, after: int) -> list[FeatureRow]:
        """The records of all kinds whose ids are greater than `after`, in order."""
        columns = "SELECT id, kind, features, vector FROM records WHERE"
        if shelf.last - after <= _SCAN_LIMIT:
            values = (after, shelf.last, shelf.id)
            found = self.execute(f"{columns} id > ? AND id <= ? AND +shelf = ? ORDER BY id", values)
        else:
            new = self._after(shelf, after, "SELECT id FROM records WHERE shelf = ?", (shelf.id,))
            found = sorted(self.among(f"{columns} id {{}} AND +shelf = ?", new, after=(shelf.id,)))
        return [FeatureRow(number, kind, bytes(features), bytes(vector)) for number, kind, features, vector in found]

    def vectors(self, shelf: ShelfRow, kind: Kind, after: int) -> list[tuple[int, bytes]]:
        """The ids and vectors of the records of a kind whose ids are greater than `after`, in order."""
        if shelf.last - after <= _SCAN_LIMIT:
            query = "SELECT id, vector FROM records WHERE id > ? AND id <= ? AND +shelf = ? AND kind = ? ORDER BY id"
            return self.execute(query, (after, shelf.last, shelf.id, kind))
        new = self._after(shelf, after, "SELECT id FROM records WHERE shelf = ? AND kind = ?", (shelf.id, kind))
        return sorted(self.among("SELECT id, vector FROM records WHERE id {} AND +shelf = ?", new, after=(shelf.id,)))

    def _after(self, shelf: ShelfRow, after: int, query: str, values: Sequence[Any]) -> list[int]:
        # Other shelves may have written many more records: use the index of this shelf.
        return sorted(number for (number,) in self.execute(query, values) if after < number <= shelf.last)

    def stored_rows(self, shelf: int, kind: Kind, keys: Sequence[str]) -> dict[str, StoredRow]:
        """The records with these keys."""
        found = self.among(f"{_STORED_ROW} WHERE shelf = ? AND kind = ? AND key {{}}", keys, before=(shelf, kind))
        return {row[2]: _stored_row(row) for row in found}

    def stored_rows_by_id(self, shelf: int, ids: Sequence[int]) -> list[StoredRow]:
        """The records with these ids."""
        return [
            _stored_row(row) for row in self.among(f"{_STORED_ROW} WHERE id {{}} AND +shelf = ?", ids, after=(shelf,))
        ]

    def rows(self, shelf: int, ids: Sequence[int]) -> list[tuple[Any, ...]]:
        """The records with these ids, for ranking: the id, the kind, and the fields of a `Candidate`."""
        return self.among(
            "SELECT id, kind, features, vector, "
            "CASE WHEN length(context) > 0 THEN context WHEN length(meaning) > 0 THEN meaning ELSE vector END, "
            "session, position, created, links FROM records WHERE id {} AND +shelf = ?",
            ids,
            after=(shelf,),
        )

    def records(self, shelf: int, ids: Sequence[int]) -> dict[int, Record]:
        """The records with these ids, as they were stored."""
        found = self.among(
            "SELECT id, kind, key, text, data FROM records WHERE id {} AND +shelf = ?", ids, after=(shelf,)
        )
        # Parsing one array is several times as fast as parsing each value.
        data = json.loads(f"[{','.join([row[-1] for row in found])}]")
        return {
            number: Record(kind=kind, key=key, text=text, data=each)
            for (number, kind, key, text, _), each in zip(found, data, strict=True)
        }

    def texts(self, shelf: int, ids: Sequence[int]) -> dict[int, str]:
        """The texts of these records."""
        return dict(self.among("SELECT id, text FROM records WHERE id {} AND +shelf = ?", ids, after=(shelf,)))

    def ids(self, shelf: int, kind: Kind) -> list[int]:
        """The ids of all records of a kind, in insertion order."""
        found = self.execute("SELECT id FROM records WHERE shelf = ? AND kind = ?", (shelf, kind))
        return sorted(number for (number,) in found)

    def in_order(self, shelf: int) -> list[int]:
        """The ids of all records: sessions in the order of their turns, other records in insertion order."""
        found = self.execute("SELECT id FROM records WHERE shelf = ? ORDER BY session, position, id", (shelf,))
        return [number for (number,) in found]

    def kinds(self, shelf: int) -> dict[str, int]:
        """The number of records per kind."""
        return dict(self.execute("SELECT kind, count(*) FROM records WHERE shelf = ? GROUP BY kind", (shelf,)))

    def created_before(self, shelf: int, before: float) -> list[int]:
        """The ids of the records created before a time; records without a time are left out."""
        found = self.execute("SELECT id FROM records WHERE shelf = ? AND created > 0 AND created < ?", (shelf, before))
        return [number for (number,) in found]

    def of_session(self, shelf: int, session: str) -> list[int]:
        """The ids of the records of a session."""
        query = "SELECT id FROM records WHERE shelf = ? AND session != '' AND session = ?"
        return [number for (number,) in self.execute(query, (shelf, session))]

    def keyed(self, shelf: int, kind: Kind, keys: Sequence[str]) -> dict[str, int]:
        """The ids of the records with these keys."""
        query = "SELECT key, id FROM records WHERE shelf = ? AND kind = ? AND key {}"
        return dict(self.among(query, keys, before=(shelf, kind)))

    def last_positions(self, shelf: int, sessions: Sequence[str]) -> dict[str, int]:
        """The position of the last record of each session that has any."""
        query = (
            "SELECT session, max(position) FROM records WHERE shelf = ? AND session != '' AND session {} "
            "GROUP BY session"
        )
        return dict(self.among(query, sessions, before=(shelf,)))

    def meanings(self, shelf: int, session: str, first: int, last: int) -> list[tuple[int, int, bytes]]:
        """The ids, positions and static-model vectors of a session's records between two positions."""
        found = self.execute(
            "SELECT id, position, meaning, vector FROM records "
            "WHERE shelf = ? AND session != '' AND session = ? AND position BETWEEN ? AND ? ORDER BY position",
            (shelf, session, first, last),
        )
        return [(number, position, bytes(meaning) or bytes(vector)) for number, position, meaning, vector in found]

    def set_contexts(self, shelf: int, contexts: Iterable[tuple[int, bytes]]) -> None:
        """Replace the context vectors of records."""
        rows = [(context, number, shelf) for number, context in contexts]
        self.executemany("UPDATE records SET context = ? WHERE id = ? AND +shelf = ?", rows)

    def _neighbours(self, shelf: int, positions: Sequence[tuple[str, int]]) -> list[int]:
        found: list[int] = []
        for part in batches_of_values(positions):
            marks = ", ".join(["(?, ?)"] * len(part))
            query = (
                f"WITH wanted(session, position) AS (VALUES {marks}) SELECT records.id FROM wanted JOIN records "
                "ON records.shelf = ? AND records.session != '' AND records.session = wanted.session "
                "AND records.position = wanted.position"
            )
            found += [number for (number,) in self.execute(query, [*(value for pair in part for value in pair), shelf])]
        return found

    def around(self, shelf: int, positions: Sequence[tuple[str, int]], names: Sequence[int]) -> set[int]:
        """The ids of the records at these positions of their sessions, and of those with these names."""
        named = {
            number
            for where in NAMED
            for (number,) in self.among(f"SELECT id FROM records WHERE shelf = ? AND {where}", names, before=(shelf,))
        }
        return named.union(self._neighbours(shelf, positions))

    def newest(
        self, shelf: int, kind: Kind, limit: int, since: float = 0.0, until: float = FOREVER, agent: str = ""
    ) -> list[int]:
        """The ids of the newest records of a kind created between two times, optionally by an agent."""
        query = (
            "SELECT id FROM records WHERE shelf = ? AND kind = ? AND {} created BETWEEN ? AND ? "
            "ORDER BY created DESC, id DESC LIMIT ?"
        )
        by = "agent != '' AND agent = ? AND" if agent else ""
        values = (shelf, kind, *([agent] if agent else []), since, until, limit)
        return [number for (number,) in self.execute(query.format(by), values)]

    def newest_of_session(self, shelf: int, session: str, limit: int) -> list[int]:
        """The ids of the last records of a session."""
        query = (
            "SELECT id FROM records WHERE shelf = ? AND session != '' AND session = ? ORDER BY position DESC LIMIT ?"
        )
        return [number for (number,) in self.execute(query, (shelf, session, limit))]

    def add_edges(self, shelf: int, edges: Iterable[tuple[int, int, int]]) -> None:
        """Insert links between two names, each with the id of its relationship."""
        rows = [(shelf, *edge) for edge in edges]
        self.executemany("INSERT INTO edges(shelf, one, other, record) VALUES (?, ?, ?, ?)", rows)

    def remove_edges(self, shelf: int, records: Sequence[int]) -> set[int]:
        """Delete the links of these relationships and return their names."""
        query = "FROM edges WHERE shelf = ? AND record {}"
        names = {one for (one,) in self.among(f"SELECT one {query}", records, before=(shelf,))}
        self.among(f"DELETE {query}", records, before=(shelf,))
        return names

    def links_of(self, shelf: int, names: Sequence[int]) -> dict[int, list[int]]:
        """The names that each of these names is linked with, newest first."""
        found = self.among("SELECT one, other, record FROM edges WHERE shelf = ? AND one {}", names, before=(shelf,))
        links: dict[int, list[int]] = {}
        for one, other, _ in sorted(found, key=lambda edge: -edge[2]):
            links.setdefault(one, []).append(other)
        return {one: others[:MOST_LINKS] for one, others in links.items()}

    def record_names(self, shelf: int, names: Sequence[int]) -> list[tuple[int, int, int]]:
        """The id, name and alias of the records with these names."""
        found = {
            tuple(row)
            for where in NAMED
            for row in self.among(
                f"SELECT id, own, alias FROM records WHERE shelf = ? AND {where}", names, before=(shelf,)
            )
        }
        return sorted(found)

    def set_links(self, shelf: int, links: Iterable[tuple[int, bytes]]) -> None:
        """Replace the stored links of records."""
        rows = [(packed, number, shelf) for number, packed in links]
        self.executemany("UPDATE records SET links = ? WHERE id = ? AND +shelf = ?", rows)

    def model_vectors(self, shelf: int, model: str, ids: Sequence[int]) -> dict[int, bytes]:
        """The vectors of these records from a custom model."""
        query = "SELECT record, vector FROM model_vectors WHERE shelf = ? AND model = ? AND record {}"
        return {record: bytes(vector) for record, vector in self.among(query, ids, before=(shelf, model))}

    def save_model_vectors(self, shelf: int, model: str, vectors: Mapping[int, bytes]) -> None:
        """Store the vectors of records from a custom model."""
        rows = [(shelf, model, record, vector) for record, vector in vectors.items()]
        self.executemany(
            "INSERT INTO model_vectors(shelf, model, record, vector) VALUES (?, ?, ?, ?) "
            "ON CONFLICT(shelf, model, record) DO UPDATE SET vector = excluded.vector",
            rows,
        )

    def notes(self, shelf: int, book: str, keys: Sequence[str] | None) -> dict[str, Any]:
        """The notes in a book; those with these keys, if given."""
        query = "SELECT key, value FROM notes WHERE shelf = ? AND book = ?"
        if keys is None:
            found = self.execute(query, (shelf, book))
        else:
            found = self.among(f"{query} AND key {{}}", keys, before=(shelf, book))
        return {key: json.loads(value) for key, value in found}

    def save_notes(self, shelf: int, book: str, notes: Mapping[str, Any]) -> None:
        """Write notes into a book; those that are None are removed."""
        removed = [key for key, value in notes.items() if value is None]
        self.among("DELETE FROM notes WHERE shelf = ? AND book = ? AND key {}", removed, before=(shelf, book))
        rows = [(shelf, book, key, json.dumps(value)) for key, value in notes.items() if value is not None]
        self.executemany(
            "INSERT INTO notes(shelf, book, key, value) VALUES (?, ?, ?, ?) "
            "ON CONFLICT(shelf, book, key) DO UPDATE SET value = excluded.value",
            rows,
        )


class Database(ABC):
    """A database of records: its connections and transactions."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The location, for error messages."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Statements]:
        """Statements that read committed data."""

    @abstractmethod
    def writing(
        self, tenant: str, name: str, *, wait: bool = True
    ) -> AbstractContextManager[tuple[Statements, ShelfRow]]:
        """A write transaction on a shelf, which is created if it does not exist. No other writer can change the shelf.

        It is committed when the block ends and rolled back if the block raises. With `wait=False` it raises if another
        writer is active.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Statements]:
        """Statements on a snapshot: later commits are not visible."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Statements]:
        """A write transaction that excludes all other writers, on any shelf."""

    @property
    def identity(self) -> object:
        """Changes when the database is another one, such as a file that replaced the former file."""
        return None

    @abstractmethod
    def version(self) -> object:
        """Changes when another connection may have committed."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections; the next use opens them again."""


MOST_VALUES = 400
"""Values per statement."""


def batches_of_values(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The values in batches that fit into one statement."""
    for start in range(0, len(values), MOST_VALUES):
        yield values[start : start + MOST_VALUES]


NAMED = ("own != 0 AND own {}", "alias {}")
"""The conditions by which a record has a name."""

_SHELF = "id, embedder, dimensions, epoch, last, pending, records"
_STORED_ROW = "SELECT id, kind, key, session, position, own, alias, features, vector, text, data FROM records"


def _stored_row(row: Sequence[Any]) -> StoredRow:
    stored = StoredRow._make(row)
    return stored._replace(features=bytes(stored.features), vector=bytes(stored.vector))
