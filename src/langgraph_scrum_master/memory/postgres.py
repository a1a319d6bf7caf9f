"""The record store in PostgreSQL with pgvector, for several machines."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from struct import pack
from typing import TYPE_CHECKING, Any
from weakref import finalize

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.shapes import storable
from langgraph_scrum_master.errors import ConfigError, StoreError, how_to_get
from langgraph_scrum_master.memory.database import NAMED, Database, Entry, ShelfRow, Statements, StoredRow
from langgraph_scrum_master.memory.database_memory import DatabaseMemory
from langgraph_scrum_master.memory.record_memory import check_namespace
from langgraph_scrum_master.memory.records import SEARCHED, Kind
from langgraph_scrum_master.memory.store import RecordStore, StoreBackend
from langgraph_scrum_master.protocols import Clock, Embedder
from langgraph_scrum_master.rank.recipe import Recipe, Spaces
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, RankTuning

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.adapt import Dumper

    from langgraph_scrum_master.rank.features import Array

POSTGRES_SCHEMA = "scrum_master"
"""The PostgreSQL schema that holds all tables."""

VERSION = 1
"""The version of the tables. A database of a newer version is rejected."""

UNINDEXED = 2_000
"""Vectors of a kind in a shelf up to which a search scans all; above, an HNSW index is built."""

HNSW_EF_SEARCH = 200
"""The setting `hnsw.ef_search`."""

MOST_IDLE = 8
"""Idle connections that stay open."""

_LOCK = 7_305_841
"""The advisory lock for creating tables and indexes."""

_TABLES = f"""
CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA IF NOT EXISTS {POSTGRES_SCHEMA};
CREATE TABLE {POSTGRES_SCHEMA}.about(version integer NOT NULL);
CREATE TABLE {POSTGRES_SCHEMA}.shelves(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text NOT NULL, name text NOT NULL,
    embedder text NOT NULL DEFAULT '', dimensions integer NOT NULL DEFAULT 0, epoch bigint NOT NULL DEFAULT 0,
    last bigint NOT NULL DEFAULT 0, pending integer NOT NULL DEFAULT 0, records bigint NOT NULL DEFAULT 0,
    UNIQUE(tenant, name));
CREATE TABLE {POSTGRES_SCHEMA}.records(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shelf bigint NOT NULL, kind text NOT NULL, key text NOT NULL,
    session text NOT NULL, position bigint NOT NULL, created double precision NOT NULL, agent text NOT NULL,
    own bigint NOT NULL, alias bigint NOT NULL, features bytea NOT NULL, vector bytea NOT NULL, meaning bytea NOT NULL,
    context bytea NOT NULL, links bytea NOT NULL DEFAULT '', text text NOT NULL, data text NOT NULL,
    UNIQUE(shelf, kind, key)) WITH (toast_tuple_target = 8160);
CREATE INDEX records_by_session ON {POSTGRES_SCHEMA}.records(shelf, session, position) WHERE session != '';
CREATE INDEX records_by_time ON {POSTGRES_SCHEMA}.records(shelf, kind, created);
CREATE INDEX records_by_agent ON {POSTGRES_SCHEMA}.records(shelf, kind, agent, created) WHERE agent != '';
CREATE INDEX records_by_name ON {POSTGRES_SCHEMA}.records(shelf, own) WHERE own != 0;
CREATE INDEX records_by_alias ON {POSTGRES_SCHEMA}.records(shelf, alias);
CREATE TABLE {POSTGRES_SCHEMA}.postings(
    word bigint NOT NULL, record bigint NOT NULL, kind text NOT NULL, PRIMARY KEY(word, record) INCLUDE (kind));
CREATE TABLE {POSTGRES_SCHEMA}.vectors(
    record bigint PRIMARY KEY, shelf bigint NOT NULL, kind text NOT NULL, embedding halfvec NOT NULL);
CREATE INDEX vectors_by_shelf ON {POSTGRES_SCHEMA}.vectors(shelf, kind);
CREATE TABLE {POSTGRES_SCHEMA}.statistics(shelf bigint PRIMARY KEY, content bytea NOT NULL);
CREATE TABLE {POSTGRES_SCHEMA}.edges(
    shelf bigint NOT NULL, one bigint NOT NULL, other bigint NOT NULL, record bigint NOT NULL);
CREATE INDEX edges_by_name ON {POSTGRES_SCHEMA}.edges(shelf, one, record);
CREATE INDEX edges_by_record ON {POSTGRES_SCHEMA}.edges(shelf, record);
CREATE TABLE {POSTGRES_SCHEMA}.model_vectors(
    shelf bigint NOT NULL, model text NOT NULL, record bigint NOT NULL, vector bytea NOT NULL,
    PRIMARY KEY(shelf, model, record));
CREATE TABLE {POSTGRES_SCHEMA}.notes(
    shelf bigint NOT NULL, book text NOT NULL, key text NOT NULL, value text NOT NULL, PRIMARY KEY(shelf, book, key));
INSERT INTO {POSTGRES_SCHEMA}.about VALUES ({VERSION});
"""


_COLUMNS = {
    "id": "int8",
    "shelf": "int8",
    "kind": "text",
    "key": "text",
    "session": "text",
    "position": "int8",
    "created": "float8",
    "agent": "text",
    "own": "int8",
    "alias": "int8",
    "features": "bytea",
    "vector": "bytea",
    "meaning": "bytea",
    "context": "bytea",
    "text": "text",
    "data": "text",
}
"""The columns of a new record, with their types."""

_COPY_RECORDS = f"COPY records({', '.join(_COLUMNS)}) FROM STDIN (FORMAT BINARY)".encode()


class PostgresMemory(DatabaseMemory):
    """A `MemoryStore` in PostgreSQL with pgvector, in a schema of its own, for any number of processes and machines.

    `conninfo` is a `postgresql://` URL, or any connection string of `psycopg.connect`. The tables are created on first
    use. The other options are those of `ChromaMemory`.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        embedder: str | Embedder = "static",
        namespace: str = "default",
        spaces: Spaces | None = None,
        tuning: RankTuning = DEFAULT_TUNING,
        clock: Clock | None = None,
        most_records: int | None = None,
    ) -> None:
        check_namespace(namespace)
        store = RecordStore(_location(conninfo), lambda: PostgresDatabase(conninfo), most_records=most_records)
        super().__init__(StoreBackend(store, namespace, embedder=embedder, recipe=Recipe.of(spaces, tuning, clock)))


class PostgresStatements(Statements):
    """The SQL statements on one connection, which no other thread uses."""

    def __init__(self, connection: Connection[Any], database: PostgresDatabase) -> None:
        self._connection = connection
        self._database = database

    def execute(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a statement."""
        cursor = self._connection.execute(_with_percent_s(query), [_value(value) for value in values], binary=True)
        return cursor.fetchall() if cursor.description else []

    def executemany(self, query: str, values: Iterable[Sequence[Any]]) -> None:
        """Execute the statement for each row of values."""
        rows = [[storable(value) for value in row] for row in values]
        if rows:
            with self._connection.cursor() as cursor:
                cursor.executemany(_with_percent_s(query), rows)

    def among(
        self, query: str, values: Sequence[Any], before: Sequence[Any] = (), after: Sequence[Any] = ()
    ) -> list[Any]:
        """The rows of a statement in which `{}` becomes `= ANY` of these values."""
        if not values:
            return []
        return self.execute(query.format("= ANY(?)"), (*before, list(values), *after))

    def insert(self, shelf: int, entries: Sequence[Entry]) -> list[int]:
        """Insert the records, their postings and vectors."""
        query = "SELECT nextval(pg_get_serial_sequence('records', 'id')) FROM generate_series(1, ?)"
        ids = sorted(number for (number,) in self.execute(query, (len(entries),)))
        numbered = list(zip(ids, entries, strict=True))
        with self._connection.cursor() as cursor, cursor.copy(_COPY_RECORDS) as copy:
            copy.set_types([*_COLUMNS.values()])
            for i, entry in numbered:
                copy.write_row([i, shelf, *map(storable, entry[:14])])
        self._add_postings(
            (i, entry.kind, _words(shelf, entry.terms, entry.facets, entry.kind))
            for i, entry in numbered
            if entry.kind in SEARCHED
        )
        self._add_vectors(shelf, [(i, entry.kind, entry.vector) for i, entry in numbered if entry.vector])
        return ids

    def delete(
        self, shelf: int, removed: Sequence[StoredRow], bodies: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> None:
        """Delete the records, their postings and vectors."""
        ids = [row.id for row in removed]
        self.among("DELETE FROM records WHERE id {} AND shelf = ?", ids, after=(shelf,))
        words = [
            (word, row.id)
            for row, (terms, facets) in zip(removed, bodies, strict=True)
            for word in _words(shelf, terms, facets, row.kind)
        ]
        self.execute(
            "DELETE FROM postings USING unnest(?::bigint[], ?::bigint[]) AS gone(word, record) "
            "WHERE postings.word = gone.word AND postings.record = gone.record",
            ([word for word, _ in words], [record for _, record in words]),
        )
        self.among("DELETE FROM vectors WHERE record {} AND shelf = ?", ids, after=(shelf,))
        self.among("DELETE FROM model_vectors WHERE shelf = ? AND record {}", ids, before=(shelf,))

    def postings(self, shelf: int, terms: Sequence[int], kinds: Sequence[Kind] | None, limit: int) -> list[Array]:
        """The postings of each term, newest first."""
        import numpy as np

        some = "" if kinds is None else "AND kind = ANY(?)"
        found = self.execute(
            "SELECT i, record FROM unnest(?::bigint[]) WITH ORDINALITY AS wanted(word, i), LATERAL ("
            f"SELECT record FROM postings WHERE word = wanted.word {some} ORDER BY record DESC LIMIT ?) AS newest",
            (_words(shelf, terms), *([list(kinds)] if kinds is not None else []), limit),
        )
        by_term: dict[int, list[int]] = {}
        for i, record in found:
            by_term.setdefault(i, []).append(record)
        return [np.array(by_term.get(i, []), dtype="int64") for i in range(1, len(terms) + 1)]

    def with_facets(self, shelf: int, kind: Kind, facets: Sequence[int], limit: int) -> list[int]:
        """The ids of the newest records of a kind that have all of these facets."""
        if not facets:
            return self.ids(shelf, kind)[::-1][:limit]
        words = sorted(set(_words(shelf, (), facets)))
        query = (
            "SELECT record FROM postings WHERE word = ANY(?) AND kind = ? GROUP BY record HAVING count(*) = ? "
            "ORDER BY record DESC LIMIT ?"
        )
        return [record for (record,) in self.execute(query, (words, kind, len(words), limit))]

    def nearest(self, shelf: ShelfRow, kind: Kind, vector: Array, limit: int) -> list[tuple[int, float]]:
        """The ids of the records whose vectors are nearest, with their cosines."""
        size = len(vector)
        # Shelf and kind are literals, so that the planner can use the partial index.
        found = self.execute(
            f"SELECT record, 1 - distance FROM (SELECT record, embedding::halfvec({size}) <=> ?::halfvec({size}) "
            f"AS distance FROM vectors WHERE shelf = {shelf.id} AND kind = '{kind}' ORDER BY 2 LIMIT ?) AS found",
            (_HalfVector.of(vector), limit),
        )
        # A zero vector has no cosine with anything.
        return [(record, cosine if cosine == cosine else 0.0) for record, cosine in found]

    def index(self, shelf: int, rows: Sequence[StoredRow], facets: Sequence[Sequence[int]]) -> None:
        """Write the postings and vectors of records that have none."""
        from langgraph_scrum_master.rank.features import Features

        self._add_postings(
            (each.id, each.kind, _words(shelf, Features.unpack(each.features).terms.tolist(), own, each.kind))
            for each, own in zip(rows, facets, strict=True)
        )
        self._add_vectors(shelf, [(each.id, each.kind, each.vector) for each in rows if each.vector])

    def indexed(self, shelf: int) -> list[int]:
        """The ids of all records that have postings."""
        query = "SELECT record FROM postings WHERE word = ANY(?)"
        return [record for (record,) in self.execute(query, ([_kind_word(shelf, kind) for kind in SEARCHED],))]

    def posting_counts(self, shelf: int) -> dict[int, int]:
        """The number of postings per term."""
        first = shelf << 34
        query = "SELECT word, count(*) FROM postings WHERE word >= ? AND word < ? GROUP BY word"
        return {word - first: count for word, count in self.execute(query, (first, first | 1 << 32))}

    def clear_derived(self) -> None:
        """Delete the postings, vectors and statistics of all shelves."""
        self.execute("TRUNCATE postings, vectors, statistics")

    def check_vectors(self, shelf: ShelfRow) -> list[str]:
        """The differences between the vectors and the records."""
        query = (
            "SELECT count(*) FROM records FULL JOIN vectors ON vectors.record = records.id "
            "WHERE (records.shelf = ? OR vectors.shelf = ?) AND (records.id IS NULL OR vectors.record IS NULL) "
            "AND records.kind IS DISTINCT FROM 'relationship'"
        )
        (wrong,) = self.one(query, (shelf.id, shelf.id))
        return [f"{wrong} vectors differ from those of their records"] if wrong else []

    def pack(self, shelf: ShelfRow) -> None:
        """Build an HNSW index in the background for kinds with many vectors."""
        many = "SELECT 1 FROM records WHERE shelf = ? AND kind = ? LIMIT 1 OFFSET ?"
        for kind in SEARCHED:
            if self.one(many, (shelf.id, kind, UNINDEXED)):
                self._database.build_index(shelf.id, kind, shelf.dimensions)

    def around(self, shelf: int, positions: Sequence[tuple[str, int]], names: Sequence[int]) -> set[int]:
        """The ids of the records at these positions of their sessions, and of those with these names."""
        parts = []
        values: list[Any] = []
        if positions:
            # Arrays, so that the statement stays the same and its plan can be reused.
            parts.append(
                "SELECT records.id FROM unnest(?::text[], ?::bigint[]) AS wanted(session, position) JOIN records "
                "ON records.shelf = ? AND records.session != '' AND records.session = wanted.session "
                "AND records.position = wanted.position"
            )
            values += [[session for session, _ in positions], [position for _, position in positions], shelf]
        if names:
            parts += [f"SELECT id FROM records WHERE shelf = ? AND {where.format('= ANY(?)')}" for where in NAMED]
            values += [shelf, list(names)] * len(NAMED)
        if not parts:
            return set()
        query = " UNION ALL ".join(parts)
        return {number for (number,) in self.execute(query, values)}

    def _add_postings(self, rows: Iterable[tuple[int, Kind, Sequence[int]]]) -> None:
        import numpy as np

        by_kind: dict[Kind, list[tuple[int, int]]] = {}
        for record, kind, words in rows:
            by_kind.setdefault(kind, []).extend((word, record) for word in words)
        for kind, postings in by_kind.items():
            # In the order of the index, which makes inserting faster.
            words, records = np.array(sorted(postings), dtype=">i8").T
            self._copy(b"postings(word, record, kind)", words, records, np.array(kind.encode()))

    def _add_vectors(self, shelf: int, rows: Sequence[tuple[int, Kind, bytes]]) -> None:
        import numpy as np

        for kind in {kind for _, kind, _ in rows}:
            own = [(record, vector) for record, of_kind, vector in rows if of_kind == kind]
            vectors = [_HalfVector.of(np.frombuffer(vector, "<f2")) for _, vector in own]
            records = np.array([record for record, _ in own], dtype=">i8")
            self._copy(
                b"vectors(record, shelf, kind, embedding)",
                records,
                np.array(shelf, dtype=">i8"),
                np.array(kind.encode()),
                np.array(vectors, dtype=f"V{len(vectors[0])}"),
            )

    def _copy(self, columns: bytes, *values: Array) -> None:
        """Insert rows, with an array per column in PostgreSQL's binary format; an array of one value is repeated."""
        with self._connection.cursor() as cursor, cursor.copy(b"COPY %b FROM STDIN (FORMAT BINARY)" % columns) as copy:
            copy.write(_binary_rows(values))


def _binary_rows(values: Sequence[Array]) -> bytes:
    """The rows for a binary `COPY`: per row the number of columns, and per column its size and value."""
    import numpy as np

    columns = [part for i, each in enumerate(values) for part in ((f"size{i}", ">i4"), (f"value{i}", each.dtype))]
    rows = np.empty(max(each.size for each in values), dtype=[("columns", ">i2"), *columns])
    rows["columns"] = len(values)
    for i, each in enumerate(values):
        rows[f"size{i}"], rows[f"value{i}"] = each.dtype.itemsize, each
    return b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff"


class _HalfVector(bytes):
    """A vector in the binary format of pgvector's type `halfvec`."""

    @classmethod
    def of(cls, vector: Array) -> _HalfVector:
        return cls(pack(">HH", len(vector), 0) + vector.astype(">f2").tobytes())


class _Integers(bytes):
    """Numbers in the binary format of the type `bigint[]`."""

    @classmethod
    def of(cls, numbers: Sequence[int]) -> _Integers:
        import numpy as np

        items = np.empty(len(numbers), dtype=[("size", ">i4"), ("number", ">i8")])
        items["size"], items["number"] = 8, numbers
        return cls(pack(">5i", 1, 0, _BIGINT, len(numbers), 1) + items.tobytes())


_BIGINT, _BIGINTS = 20, 1016
"""The type ids of `bigint` and `bigint[]`, which are the same in every database."""


class PostgresDatabase(Database):
    """A connection pool for one database."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._idle: list[Connection[Any]] = []
        self._inherited: list[Connection[Any]] = []
        """Connections of the parent process, after a fork."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        # Closes the connections when the memory is garbage collected.
        finalize(self, _close_all, self._idle).atexit = False
        self._prepared = False
        self._indexes: set[tuple[int, str]] = set()
        self._building: set[tuple[int, str]] = set()

    @property
    def name(self) -> str:
        """The location, without the password."""
        return _location(self._conninfo)

    @contextmanager
    def reading(self) -> Iterator[PostgresStatements]:
        """Statements that read committed data."""
        with self._connection() as connection:
            yield PostgresStatements(connection, self)

    @contextmanager
    def writing(self, tenant: str, name: str, *, wait: bool = True) -> Iterator[tuple[PostgresStatements, ShelfRow]]:
        """A write transaction that locks the shelf."""
        with self._connection() as connection, connection.transaction():
            statements = PostgresStatements(connection, self)
            statements.execute(
                "INSERT INTO shelves(tenant, name) VALUES (?, ?) ON CONFLICT (tenant, name) DO NOTHING", (tenant, name)
            )
            # The row lock makes the ids of a shelf's records commit in ascending order.
            lock = "FOR UPDATE" if wait else "FOR UPDATE NOWAIT"
            statements.execute(f"SELECT 1 FROM shelves WHERE tenant = ? AND name = ? {lock}", (tenant, name))
            shelf = statements.shelf(tenant, name)
            if shelf is None:
                raise StoreError(f"{self.name} did not store the shelf {name!r} of {tenant!r}")
            yield statements, shelf

    @contextmanager
    def snapshot(self) -> Iterator[PostgresStatements]:
        """Statements on a snapshot (repeatable read)."""
        with self._connection() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield PostgresStatements(connection, self)

    @contextmanager
    def transaction(self) -> Iterator[PostgresStatements]:
        """A write transaction that excludes all other writers."""
        with self._connection() as connection, connection.transaction():
            connection.execute("LOCK TABLE shelves IN EXCLUSIVE MODE")
            yield PostgresStatements(connection, self)

    def version(self) -> object:
        """Always a new value: each search asks the server whether the shelf has changed."""
        return object()

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            _close_all(self._idle)

    def has_index(self, statements: PostgresStatements, shelf: int, kind: str) -> bool:
        """Whether a valid HNSW index exists for a kind of a shelf."""
        if (shelf, kind) not in self._indexes:
            found = statements.one(
                "SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relname = ? AND indisvalid",
                (_index(shelf, kind),),
            )
            if not found:
                return False
            self._indexes.add((shelf, kind))
        return True

    def build_index(self, shelf: int, kind: str, dimensions: int) -> None:
        """Start building an HNSW index in the background, unless one is being built. Until then searches scan."""
        with self._lock:
            if (shelf, kind) in self._building:
                return
            self._building.add((shelf, kind))
        work = threading.Thread(
            target=self._build_index, args=(shelf, kind, dimensions), name="scrum-master-index", daemon=True
        )
        work.start()

    def _build_index(self, shelf: int, kind: str, dimensions: int) -> None:
        name = _index(shelf, kind)
        try:
            with self._connection() as connection:
                locked = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (_LOCK, shelf % 2**31)).fetchone()
                if not locked or not locked[0]:
                    return
                try:
                    statements = PostgresStatements(connection, self)
                    if not self.has_index(statements, shelf, kind):
                        # An interrupted build leaves an invalid index.
                        connection.execute(f"DROP INDEX IF EXISTS {POSTGRES_SCHEMA}.{name}".encode())
                        connection.execute(
                            f"CREATE INDEX CONCURRENTLY {name} ON {POSTGRES_SCHEMA}.vectors "
                            f"USING hnsw ((embedding::halfvec({dimensions})) halfvec_cosine_ops) "
                            f"WHERE shelf = {shelf} AND kind = '{kind}'".encode()
                        )
                finally:
                    connection.execute("SELECT pg_advisory_unlock(%s, %s)", (_LOCK, shelf % 2**31))
        # Searches work without the index.
        except Exception as error:
            logger.warning("memory.index_failed", index=name, error=f"{type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._building.discard((shelf, kind))

    @contextmanager
    def _connection(self) -> Iterator[Connection[Any]]:
        connection = self._acquire()
        try:
            yield connection
        finally:
            with self._lock:
                usable = not connection.closed and not connection.broken and self._process == os.getpid()
                pooled = usable and len(self._idle) < MOST_IDLE
                if pooled:
                    self._idle.append(connection)
            if not pooled:
                with suppress(Exception):
                    connection.close()

    def _acquire(self) -> Connection[Any]:
        with self._lock:
            # A forked process must not use its parent's connections.
            if self._process != os.getpid():
                self._inherited.extend(self._idle)
                self._idle.clear()
                self._process = os.getpid()
            connection = self._idle.pop() if self._idle else None
        if connection is not None and not connection.closed and not connection.broken:
            return connection
        connection = _connect(self._conninfo)
        try:
            with self._lock:
                if not self._prepared:
                    _prepare(connection, self.name)
                    self._prepared = True
        except BaseException:
            connection.close()
            raise
        # Compiling a statement takes longer than any search.
        settings = f"SET search_path TO {POSTGRES_SCHEMA}, public; SET hnsw.ef_search = {HNSW_EF_SEARCH}; SET jit = off"
        connection.execute(settings.encode())
        return connection


def _close_all(connections: list[Connection[Any]]) -> None:
    while connections:
        with suppress(Exception):
            connections.pop().close()


def _connect(conninfo: str) -> Connection[Any]:
    try:
        import psycopg
    except ModuleNotFoundError as error:
        raise ConfigError(f"PostgresMemory needs the extra 'postgres': {how_to_get('postgres')}") from error
    connection = psycopg.connect(conninfo, autocommit=True)
    for kind, dumper in _dumpers().items():
        connection.adapters.register_dumper(kind, dumper)
    return connection


@cache
def _dumpers() -> dict[type, type[Dumper]]:
    """For values that are in PostgreSQL's binary format already, which is several times as fast as text."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    class Packed(Dumper):
        format = Format.BINARY

        def dump(self, obj: bytes) -> bytes:
            return obj

    # The id of halfvec differs between databases; the server takes it from the statement.
    return {_HalfVector: Packed, _Integers: type("PackedIntegers", (Packed,), {"oid": _BIGINTS})}


def _prepare(connection: Connection[Any], location: str) -> None:
    """Create the tables if they do not exist; safe to run in several processes at once."""
    connection.execute("SELECT pg_advisory_lock(%s, 0)", (_LOCK,))
    try:
        table = connection.execute("SELECT to_regclass(%s)", (f"{POSTGRES_SCHEMA}.about",)).fetchone()
        if table is None or table[0] is None:
            with connection.transaction():
                connection.execute(_TABLES.encode())
        found = connection.execute(f"SELECT version FROM {POSTGRES_SCHEMA}.about".encode()).fetchone()
        if found is None or found[0] > VERSION:
            raise StoreError(
                f"the memory {location!r} was written by a newer version of this package (tables {found and found[0]}, "
                f"this one knows {VERSION}): upgrade langgraph-scrum-master to open it"
            )
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s, 0)", (_LOCK,))


def _location(conninfo: str) -> str:
    """The database name and host of a connection string, without credentials."""
    try:
        from psycopg.conninfo import conninfo_to_dict

        parts = conninfo_to_dict(conninfo)
    # An invalid connection string raises when it is used.
    except Exception:
        return "PostgreSQL"
    return f"PostgreSQL {parts.get('dbname') or ''} at {parts.get('host') or 'localhost'}".replace("  ", " ")


def _value(value: Any) -> Any:
    return _Integers.of(value) if isinstance(value, list) and value and isinstance(value[0], int) else storable(value)


def _index(shelf: int, kind: str) -> str:
    return f"vectors_{shelf}_{kind}"


def _words(shelf: int, terms: Sequence[int], facets: Sequence[int] = (), kind: Kind | None = None) -> list[int]:
    """Terms, facets and the kind of a record, as numbers that are unique to the shelf."""
    words = [shelf << 34 | term for term in terms] + [shelf << 34 | 1 << 32 | facet for facet in facets]
    return words if kind is None else [*dict.fromkeys(words), _kind_word(shelf, kind)]


def _kind_word(shelf: int, kind: Kind) -> int:
    return shelf << 34 | 2 << 32 | SEARCHED.index(kind) if kind in SEARCHED else shelf << 34 | 3 << 32


@lru_cache(maxsize=256)
def _with_percent_s(query: str) -> Any:
    return query.replace("?", "%s")
