"""The statements that the record store makes, in SQL that SQLite and PostgreSQL have in common.

What they do not have in common, full text and vectors above all, is in `memory.sqlite` and `memory.postgres`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from langgraph_scrum_master.memory.records import Kind, Record
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidate

FOREVER = 1e18
"""Seconds since the epoch that no record reaches."""

_NEAR = 10_000
"""Ids so few of which are looked through for those of one shelf."""

MOST_LINKS = 50
"""Links of a name that count, the newest."""


class ShelfRow(NamedTuple):
    """What a database knows of a shelf."""

    id: int
    embedder: str
    """What makes the vectors of its records; empty as long as it has none."""
    dimensions: int
    epoch: int
    """Changes whenever a record is removed or replaced."""
    last: int
    """The id of the newest record."""
    pending: int
    """Records that were written since its statistics were saved."""
    records: int
    """Records in it."""


class Entry(NamedTuple):
    """A record as it is written."""

    kind: Kind
    key: str
    session: str
    position: int
    created: float
    agent: str
    """Who made it; empty if that is not known."""
    own: int
    """What other texts call it, as a number; 0 if its heading has no name."""
    alias: int
    """Its key as a number."""
    features: bytes
    vector: bytes
    meaning: bytes
    """Its vector by the static model; empty where `vector` is that."""
    context: bytes
    """`meaning` with its neighbours' added; empty where it has none."""
    text: str
    data: str
    terms: tuple[int, ...] = ()
    """The terms it is found by."""
    facets: tuple[int, ...] = ()
    """Its metadata, as numbers."""


class Row(NamedTuple):
    """A record as ranking needs it."""

    id: int
    kind: Kind
    key: str
    candidate: Candidate


class Kept(NamedTuple):
    """A record as a write finds it."""

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


class Counted(NamedTuple):
    """A record as statistics and vector indexes need it."""

    id: int
    kind: Kind
    features: bytes
    vector: bytes


class DerivedError(Exception):
    """What is derived from the records is damaged, and can be made again from them."""


class Statements(ABC):
    """The statements, on one connection. Each names the shelf: no statement sees two."""

    @abstractmethod
    def execute(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows that a statement gives. `?` stands for a value."""

    @abstractmethod
    def executemany(self, query: str, values: Iterable[Sequence[Any]]) -> None:
        """The statement for each of these."""

    @abstractmethod
    def among(
        self, query: str, values: Sequence[Any], before: Sequence[Any] = (), after: Sequence[Any] = ()
    ) -> list[Any]:
        """The rows of a statement in which `{}` stands for being one of these values, however many they are."""

    @abstractmethod
    def insert(self, shelf: int, entries: Sequence[Entry]) -> list[int]:
        """Write the records, which are all new; gives their ids."""

    @abstractmethod
    def delete(self, shelf: int, gone: Sequence[Kept], bodies: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        """Remove the records; `bodies` has their terms and facets."""

    @abstractmethod
    def postings(self, shelf: int, terms: Sequence[int], kinds: Sequence[Kind] | None, limit: int) -> list[Array]:
        """The ids of the newest records that have each of these terms; of these kinds, if given."""

    @abstractmethod
    def with_facets(self, shelf: int, kind: Kind, facets: Sequence[int], limit: int) -> list[int]:
        """The ids of the newest records of a kind that have all of these facets."""

    @abstractmethod
    def nearest(self, shelf: ShelfRow, kind: Kind, vector: Array, limit: int) -> list[tuple[int, float]]:
        """The ids of the records whose vectors are nearest, with their cosines."""

    @abstractmethod
    def index(self, shelf: int, kept: Sequence[Kept], facets: Sequence[Sequence[int]]) -> None:
        """Make the postings of records that have none."""

    @abstractmethod
    def indexed(self, shelf: int) -> list[int]:
        """The ids of all records that have postings."""

    @abstractmethod
    def posting_counts(self, shelf: int) -> dict[int, int]:
        """How many records have a posting for each term."""

    def greatest_id(self, shelf: int) -> int:
        """The id of the record that was written last; 0 if there is none."""
        found = self.one("SELECT max(id) FROM records WHERE shelf = ?", (shelf,))
        return int(found[0] or 0)

    @abstractmethod
    def clear_derived(self) -> None:
        """Remove the postings, the statistics and whatever else is derived from records, of all shelves."""

    def integrity(self) -> list[str]:
        """What is wrong with the database itself."""
        return []

    def check_vectors(self, shelf: ShelfRow) -> list[str]:
        """How what is derived from vectors differs from them."""
        return []

    @abstractmethod
    def pack(self, shelf: ShelfRow) -> None:
        """Pack what the database derives from records, if it derives anything."""

    def one(self, query: str, values: Sequence[Any] = ()) -> Any:
        """The first row that a statement gives, or None."""
        rows = self.execute(query, values)
        return rows[0] if rows else None

    def shelf(self, tenant: str, name: str) -> ShelfRow | None:
        """The shelf of that name."""
        found = self.one(f"SELECT tenant, name, {_SHELF} FROM shelves WHERE tenant = ? AND name = ?", (tenant, name))
        # Compared once more: a collation may take two names for one.
        return ShelfRow(*found[2:]) if found and (found[0], found[1]) == (tenant, name) else None

    def shelves(self, tenant: str) -> list[tuple[str, ShelfRow]]:
        """All shelves of a tenant by name."""
        found = self.execute(f"SELECT name, {_SHELF} FROM shelves WHERE tenant = ? ORDER BY name", (tenant,))
        return [(name, ShelfRow(*row)) for name, *row in found]

    def tenants(self) -> list[str]:
        """All tenants that have a shelf."""
        return [tenant for (tenant,) in self.execute("SELECT DISTINCT tenant FROM shelves ORDER BY tenant")]

    def touch(self, shelf: ShelfRow) -> None:
        """Write what is known of a shelf."""
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

    def counted(self, shelf: ShelfRow, after: int) -> list[Counted]:
        """The records of all kinds whose ids are greater than `after`, in order."""
        columns = "SELECT id, kind, features, vector FROM records WHERE"
        if shelf.last - after <= _NEAR:
            values = (after, shelf.last, shelf.id)
            found = self.execute(f"{columns} id > ? AND id <= ? AND +shelf = ? ORDER BY id", values)
        else:
            new = self._after(shelf, after, "SELECT id FROM records WHERE shelf = ?", (shelf.id,))
            found = sorted(self.among(f"{columns} id {{}} AND +shelf = ?", new, after=(shelf.id,)))
        return [Counted(number, kind, bytes(features), bytes(vector)) for number, kind, features, vector in found]

    def vectors(self, shelf: ShelfRow, kind: Kind, after: int) -> list[tuple[int, bytes]]:
        """The ids and vectors of the records of a kind whose ids are greater than `after`, in order."""
        if shelf.last - after <= _NEAR:
            query = "SELECT id, vector FROM records WHERE id > ? AND id <= ? AND +shelf = ? AND kind = ? ORDER BY id"
            return self.execute(query, (after, shelf.last, shelf.id, kind))
        new = self._after(shelf, after, "SELECT id FROM records WHERE shelf = ? AND kind = ?", (shelf.id, kind))
        return sorted(self.among("SELECT id, vector FROM records WHERE id {} AND +shelf = ?", new, after=(shelf.id,)))

    def _after(self, shelf: ShelfRow, after: int, query: str, values: Sequence[Any]) -> list[int]:
        # Others may have written far more meanwhile than this shelf has: its own index finds its records.
        return sorted(number for (number,) in self.execute(query, values) if after < number <= shelf.last)

    def kept(self, shelf: int, kind: Kind, keys: Sequence[str]) -> dict[str, Kept]:
        """The records with these keys."""
        found = self.among(f"{_KEPT} WHERE shelf = ? AND kind = ? AND key {{}}", keys, before=(shelf, kind))
        return {row[2]: _kept(row) for row in found}

    def kept_by_id(self, shelf: int, ids: Sequence[int]) -> list[Kept]:
        """The records with these ids."""
        return [_kept(row) for row in self.among(f"{_KEPT} WHERE id {{}} AND +shelf = ?", ids, after=(shelf,))]

    def rows(self, shelf: int, ids: Sequence[int]) -> list[Row]:
        """The records with these ids, for ranking."""
        found = self.among(
            "SELECT id, kind, key, features, vector, meaning, context, session, position, created, links "
            "FROM records WHERE id {} AND +shelf = ?",
            ids,
            after=(shelf,),
        )
        return [_row(*each) for each in found]

    def records(self, shelf: int, ids: Sequence[int]) -> dict[int, Record]:
        """The records with these ids, as they were stored."""
        found = self.among(
            "SELECT id, kind, key, text, data FROM records WHERE id {} AND +shelf = ?", ids, after=(shelf,)
        )
        # Read in one go: that is several times as fast as one by one.
        data = json.loads(f"[{','.join([row[-1] for row in found])}]")
        return {
            number: Record(kind=kind, key=key, text=text, data=each)
            for (number, kind, key, text, _), each in zip(found, data, strict=True)
        }

    def texts(self, shelf: int, ids: Sequence[int]) -> dict[int, str]:
        """The texts of these records."""
        return dict(self.among("SELECT id, text FROM records WHERE id {} AND +shelf = ?", ids, after=(shelf,)))

    def ids(self, shelf: int, kind: Kind) -> list[int]:
        """The ids of all records of a kind, in the order in which they were written."""
        found = self.execute("SELECT id FROM records WHERE shelf = ? AND kind = ?", (shelf, kind))
        return sorted(number for (number,) in found)

    def in_order(self, shelf: int) -> list[int]:
        """The ids of all records: the turns of each session in their order, the others as they were written."""
        found = self.execute("SELECT id FROM records WHERE shelf = ? ORDER BY session, position, id", (shelf,))
        return [number for (number,) in found]

    def kinds(self, shelf: int) -> dict[str, int]:
        """How many records of each kind there are."""
        return dict(self.execute("SELECT kind, count(*) FROM records WHERE shelf = ? GROUP BY kind", (shelf,)))

    def made_before(self, shelf: int, before: float) -> list[int]:
        """The ids of the records that say they were made before a time."""
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
        """The ids, positions and vectors by the static model of a session's records, from one position to another."""
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

    def neighbours(self, shelf: int, places: Sequence[tuple[str, int]]) -> list[int]:
        """The records at these positions of their sessions."""
        found: list[int] = []
        for part in batches_of_values(places):
            marks = ", ".join(["(?, ?)"] * len(part))
            query = (
                f"WITH places(session, position) AS (VALUES {marks}) SELECT records.id FROM places JOIN records "
                "ON records.shelf = ? AND records.session != '' AND records.session = places.session "
                "AND records.position = places.position"
            )
            found += [
                number for (number,) in self.execute(query, [*(value for place in part for value in place), shelf])
            ]
        return found

    def named(self, shelf: int, names: Sequence[int]) -> list[int]:
        """The records that are known by these names."""
        queries = ("own != 0 AND own {}", "alias {}")
        return [
            number
            for where in queries
            for (number,) in self.among(f"SELECT id FROM records WHERE shelf = ? AND {where}", names, before=(shelf,))
        ]

    def newest(
        self, shelf: int, kind: Kind, limit: int, since: float = 0.0, until: float = FOREVER, agent: str = ""
    ) -> list[int]:
        """The ids of the newest records of a kind that were made between two times; by an agent, if given."""
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
        """Write that one name is linked with another, by a record."""
        rows = [(shelf, *edge) for edge in edges]
        self.executemany("INSERT INTO edges(shelf, one, other, record) VALUES (?, ?, ?, ?)", rows)

    def remove_edges(self, shelf: int, records: Sequence[int]) -> set[int]:
        """Remove what these records link; gives the names."""
        query = "FROM edges WHERE shelf = ? AND record {}"
        names = {one for (one,) in self.among(f"SELECT one {query}", records, before=(shelf,))}
        self.among(f"DELETE {query}", records, before=(shelf,))
        return names

    def linked(self, shelf: int, names: Sequence[int]) -> dict[int, list[int]]:
        """What each of these names is linked with, the newest first."""
        found = self.among("SELECT one, other, record FROM edges WHERE shelf = ? AND one {}", names, before=(shelf,))
        links: dict[int, list[int]] = {}
        for one, other, _ in sorted(found, key=lambda edge: -edge[2]):
            links.setdefault(one, []).append(other)
        return {one: others[:MOST_LINKS] for one, others in links.items()}

    def known_by(self, shelf: int, names: Sequence[int]) -> list[tuple[int, int, int]]:
        """The records that are known by these names: their ids and both of their names."""
        queries = ("own != 0 AND own {}", "alias {}")
        found = {
            tuple(row)
            for where in queries
            for row in self.among(
                f"SELECT id, own, alias FROM records WHERE shelf = ? AND {where}", names, before=(shelf,)
            )
        }
        return sorted(found)

    def set_links(self, shelf: int, links: Iterable[tuple[int, bytes]]) -> None:
        """Replace what records are linked with."""
        rows = [(packed, number, shelf) for number, packed in links]
        self.executemany("UPDATE records SET links = ? WHERE id = ? AND +shelf = ?", rows)

    def model_vectors(self, shelf: int, model: str, ids: Sequence[int]) -> dict[int, bytes]:
        """The vectors of these records by a model of the user's."""
        query = "SELECT record, vector FROM model_vectors WHERE shelf = ? AND model = ? AND record {}"
        return {record: bytes(vector) for record, vector in self.among(query, ids, before=(shelf, model))}

    def save_model_vectors(self, shelf: int, model: str, vectors: Mapping[int, bytes]) -> None:
        """Write the vectors of records by a model of the user's."""
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
        gone = [key for key, value in notes.items() if value is None]
        self.among("DELETE FROM notes WHERE shelf = ? AND book = ? AND key {}", gone, before=(shelf, book))
        rows = [(shelf, book, key, json.dumps(value)) for key, value in notes.items() if value is not None]
        self.executemany(
            "INSERT INTO notes(shelf, book, key, value) VALUES (?, ?, ?, ?) "
            "ON CONFLICT(shelf, book, key) DO UPDATE SET value = excluded.value",
            rows,
        )


class Database(ABC):
    """A database of records: connections, and the statements that are made on them."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What errors call it."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Statements]:
        """The statements, for reading what is committed."""

    @abstractmethod
    def writing(
        self, tenant: str, name: str, *, wait: bool = True
    ) -> AbstractContextManager[tuple[Statements, ShelfRow]]:
        """The statements in a transaction that nobody else writes to this shelf in, which is made if it is not there.

        Committed when the block ends, rolled back if it raises. One that must not `wait` raises where somebody writes.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Statements]:
        """The statements on what is committed now, whatever others write meanwhile."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Statements]:
        """The statements in a transaction in which nobody else writes to any shelf."""

    @property
    def identity(self) -> object:
        """Another value whenever this is another database: a file that was put in the place of the former one."""
        return None

    @abstractmethod
    def version(self) -> object:
        """Another value whenever somebody may have committed something."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections; the next use opens them again."""


MOST_VALUES = 400
"""Values of a statement that are given at once."""


def batches_of_values(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The values in as many parts as a statement can take."""
    for start in range(0, len(values), MOST_VALUES):
        yield values[start : start + MOST_VALUES]


_SHELF = "id, embedder, dimensions, epoch, last, pending, records"
_KEPT = "SELECT id, kind, key, session, position, own, alias, features, vector, text, data FROM records"


def _kept(row: Sequence[Any]) -> Kept:
    kept = Kept._make(row)
    return kept._replace(features=bytes(kept.features), vector=bytes(kept.vector))


def _row(
    number: int,
    kind: Kind,
    key: str,
    features: bytes,
    vector: bytes,
    meaning: bytes,
    context: bytes,
    session: str,
    position: int,
    created: float,
    links: bytes,
) -> Row:
    in_context = context or meaning or vector
    return Row(number, kind, key, Candidate(features, vector, in_context, session, position, created, links))
