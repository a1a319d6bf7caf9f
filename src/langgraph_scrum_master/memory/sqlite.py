"""The record store in SQLite: one file in a folder, or an in-memory database."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal, TypeAlias
from weakref import WeakSet, finalize

import numpy as np

from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.memory.blocks import VectorBlocks
from langgraph_scrum_master.memory.database import (
    Database,
    DerivedError,
    Entry,
    ShelfRow,
    Statements,
    StoredRow,
    batches_of_values,
)
from langgraph_scrum_master.memory.records import SEARCHED, Kind
from langgraph_scrum_master.memory.vectors import VECTORS, VectorCache
from langgraph_scrum_master.rank.features import Array, Features

_VERSION = 1
"""The version of the schema. A file of a newer version is rejected."""

BUSY = 60.0
"""Busy timeout: seconds to wait for another writer."""

FORK_PATIENCE = 5.0
"""Seconds that a fork waits for running statements and transactions of other threads."""

_PAGE = 1_024
"""Page size in bytes: smaller pages make writes smaller, larger ones make searches faster."""

_Durability: TypeAlias = Literal["full", "normal"]
"""full: a write is on disk when it returns. normal: a power failure may lose the last writes, a crash does not."""

_POSTINGS = "CREATE VIRTUAL TABLE postings USING fts5(body, content='', detail=none, columnsize=0, tokenize='ascii')"
_POSTINGS_PARTS = (
    "CREATE TABLE IF NOT EXISTS postings_data(id INTEGER PRIMARY KEY, block BLOB)",
    "CREATE TABLE IF NOT EXISTS postings_idx(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS postings_config(k PRIMARY KEY, v) WITHOUT ROWID",
    "DELETE FROM postings_data",
    "DELETE FROM postings_idx",
    "INSERT INTO postings_data(id, block) VALUES (1, x''), (10, x'00000000000000')",
    "INSERT OR REPLACE INTO postings_config(k, v) VALUES ('version', 4)",
)
"""The shadow tables of an empty FTS5 index: no averages, and a structure without segments."""
_SCHEMA = (
    """CREATE TABLE shelves(
    id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, embedder TEXT NOT NULL DEFAULT '',
    dimensions INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0, last INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0, records INTEGER NOT NULL DEFAULT 0, UNIQUE(tenant, name))""",
    """CREATE TABLE records(
    id INTEGER PRIMARY KEY AUTOINCREMENT, shelf INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
    session TEXT NOT NULL, position INTEGER NOT NULL, created REAL NOT NULL, agent TEXT NOT NULL,
    own INTEGER NOT NULL, alias INTEGER NOT NULL, features BLOB NOT NULL, vector BLOB NOT NULL, meaning BLOB NOT NULL,
    context BLOB NOT NULL, links BLOB NOT NULL DEFAULT x'', text TEXT NOT NULL, data TEXT NOT NULL,
    UNIQUE(shelf, kind, key))""",
    "CREATE INDEX records_by_session ON records(shelf, session, position) WHERE session != ''",
    "CREATE INDEX records_by_time ON records(shelf, kind, created)",
    "CREATE INDEX records_by_agent ON records(shelf, kind, agent, created) WHERE agent != ''",
    "CREATE INDEX records_by_name ON records(shelf, own) WHERE own != 0",
    "CREATE INDEX records_by_alias ON records(shelf, alias)",
    _POSTINGS,
    "CREATE TABLE statistics(shelf INTEGER PRIMARY KEY, content BLOB NOT NULL)",
    """CREATE TABLE blocks(
    shelf INTEGER NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL, last INTEGER NOT NULL,
    version INTEGER NOT NULL, checksum INTEGER NOT NULL, ids BLOB NOT NULL, rows BLOB NOT NULL, scales BLOB NOT NULL,
    PRIMARY KEY(shelf, kind, number))""",
    """CREATE TABLE edges(
    shelf INTEGER NOT NULL, one INTEGER NOT NULL, other INTEGER NOT NULL, record INTEGER NOT NULL)""",
    "CREATE INDEX edges_by_name ON edges(shelf, one, record)",
    "CREATE INDEX edges_by_record ON edges(shelf, record)",
    """CREATE TABLE model_vectors(
    shelf INTEGER NOT NULL, model TEXT NOT NULL, record INTEGER NOT NULL, vector BLOB NOT NULL,
    PRIMARY KEY(shelf, model, record)) WITHOUT ROWID""",
    """CREATE TABLE notes(
    shelf INTEGER NOT NULL, book TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY(shelf, book, key)) WITHOUT ROWID""",
)

_EVERY = 1_000_000_000
"""No limit."""

_serial = count(1)


class SqliteStatements(Statements):
    """The SQL statements on one connection, serialised by a lock."""

    def __init__(self, connection: sqlite3.Connection, lock: threading.RLock, vectors: VectorBlocks) -> None:
        self.connection = connection
        self.lock = lock
        self._vectors = vectors

    @property
    def vectors_of(self) -> VectorBlocks:
        """The nearest-neighbour search."""
        return self._vectors

    def execute(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a statement."""
        with self.lock:
            return self.connection.execute(query, values).fetchall()

    def begin(self, wait: bool) -> None:
        """Begin a write transaction."""
        if wait:
            self.execute("BEGIN IMMEDIATE")
            return
        self.execute("PRAGMA busy_timeout = 0")
        try:
            self.execute("BEGIN IMMEDIATE")
        finally:
            self.execute(f"PRAGMA busy_timeout = {round(BUSY * 1000)}")

    def executemany(self, query: str, values: Iterable[Sequence[Any]]) -> None:
        """Execute the statement for each row of values."""
        with self.lock:
            self.connection.executemany(query, values)

    def among(
        self, query: str, values: Sequence[Any], before: Sequence[Any] = (), after: Sequence[Any] = ()
    ) -> list[Any]:
        """The rows of a statement in which `{}` becomes an `IN` condition for these values."""
        found: list[Any] = []
        with self.lock:
            for part in batches_of_values(values):
                marks = f"IN ({', '.join('?' * len(part))})"
                found += self.connection.execute(query.format(marks), (*before, *part, *after)).fetchall()
        return found

    def insert(self, shelf: int, entries: Sequence[Entry]) -> list[int]:
        """Insert the records and their postings."""
        query = (
            "INSERT INTO records(shelf, kind, key, session, position, created, agent, own, alias, features, vector, "
            "meaning, context, text, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        with self.lock:
            ids = [self.connection.execute(query, (shelf, *entry[:14])).lastrowid or 0 for entry in entries]
            bodies = [
                (number, _body(shelf, entry.kind, entry.terms, entry.facets))
                for number, entry in zip(ids, entries, strict=True)
                if entry.kind in SEARCHED
            ]
            with _full_text_errors():
                self.connection.executemany("INSERT INTO postings(rowid, body) VALUES (?, ?)", bodies)
        return ids

    def delete(
        self, shelf: int, removed: Sequence[StoredRow], bodies: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> None:
        """Delete the records, their postings and vectors."""
        ids = [row.id for row in removed]
        postings = [
            (row.id, _body(shelf, row.kind, terms, facets))
            for row, (terms, facets) in zip(removed, bodies, strict=True)
            if row.kind in SEARCHED
        ]
        with _full_text_errors():
            self.executemany("INSERT INTO postings(postings, rowid, body) VALUES ('delete', ?, ?)", postings)
        self.among("DELETE FROM records WHERE id {} AND +shelf = ?", ids, after=(shelf,))
        self.among("DELETE FROM model_vectors WHERE shelf = ? AND record {}", ids, before=(shelf,))
        for kind in {row.kind for row in removed}:
            self._vectors.remove(self, shelf, kind, sorted(row.id for row in removed if row.kind == kind))

    def postings(self, shelf: int, terms: Sequence[int], kinds: Sequence[Kind] | None, limit: int) -> list[Array]:
        """The postings of each term, newest first."""
        only = "" if kinds is None else f" AND ({' OR '.join(f'{shelf}k{kind}' for kind in kinds)})"
        return [self._matching(f"{shelf}t{term}{only}", limit) for term in terms]

    def with_facets(self, shelf: int, kind: Kind, facets: Sequence[int], limit: int) -> list[int]:
        """The ids of the newest records of a kind that have all of these facets."""
        wanted = " AND ".join((f"{shelf}k{kind}", *(f"{shelf}f{facet}" for facet in facets)))
        return [int(number) for number in self._matching(wanted, limit)]

    def nearest(self, shelf: ShelfRow, kind: Kind, vector: Array, limit: int) -> list[tuple[int, float]]:
        """The ids of the records whose vectors are nearest, with their cosines."""
        found = self._vectors.nearest(self, shelf, kind, vector, limit)
        return list(zip(found.ids.tolist(), found.cosines.tolist(), strict=True))

    def index(self, shelf: int, rows: Sequence[StoredRow], facets: Sequence[Sequence[int]]) -> None:
        """Write the postings of records that have none."""
        bodies = [
            (each.id, _body(shelf, each.kind, Features.unpack(each.features).terms.tolist(), own))
            for each, own in zip(rows, facets, strict=True)
        ]
        self.executemany("INSERT INTO postings(rowid, body) VALUES (?, ?)", bodies)

    def indexed(self, shelf: int) -> list[int]:
        """The ids of all records that have postings."""
        return sorted({int(number) for kind in SEARCHED for number in self._matching(f"{shelf}k{kind}", _EVERY)})

    def clear_derived(self) -> None:
        """Delete the postings, vector blocks and statistics of all shelves."""
        # FTS5 cannot drop an index whose shadow tables are damaged, so reset them first.
        for statement in _POSTINGS_PARTS:
            self.execute(statement)
        self.execute("DROP TABLE postings")
        self.execute(_POSTINGS)
        self.execute("DELETE FROM blocks")
        self.execute("DELETE FROM statistics")

    def integrity(self) -> list[str]:
        """The problems that SQLite finds in the file and in the full-text index."""
        found = [line for (line,) in self.execute("PRAGMA integrity_check") if line != "ok"]
        try:
            self.execute("INSERT INTO postings(postings) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as error:
            # The check needs the write lock. Another writer or a read-only file is not damage.
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY):
                found.append(f"the full-text index is damaged: {error}")
        return found

    def posting_counts(self, shelf: int) -> dict[int, int]:
        """The number of postings per term."""
        with _full_text_errors():
            self.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, postings, row)")
            found = self.execute(
                "SELECT term, doc FROM temp.vocabulary WHERE term >= ? AND term < ?", (f"{shelf}t", f"{shelf}u")
            )
        return {int(term.removeprefix(f"{shelf}t")): count for term, count in found}

    def check_vectors(self, shelf: ShelfRow) -> list[str]:
        """The differences between the vector blocks and the records."""
        return self._vectors.check(self, shelf)

    def pack(self, shelf: ShelfRow) -> None:
        """Write new vectors into blocks, if there are enough for a full one."""
        self._vectors.save(self, shelf)

    def _matching(self, wanted: str, limit: int) -> Array:
        with _full_text_errors():
            found = self.execute(
                "SELECT rowid FROM postings WHERE postings MATCH ? ORDER BY rowid DESC LIMIT ?", (wanted, limit)
            )
        return np.fromiter(chain.from_iterable(found), dtype="int64", count=len(found))


@contextmanager
def _full_text_errors() -> Iterator[None]:
    """Turn errors of a damaged full-text index into `DerivedError`."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
            raise
        raise DerivedError(f"the full-text index is damaged: {error}") from error


def _body(shelf: int, kind: Kind, terms: Sequence[int], facets: Sequence[int]) -> str:
    # Each token starts with the shelf, so that a lookup never reads postings of another shelf.
    return " ".join(
        (f"{shelf}k{kind}", *(f"{shelf}t{term}" for term in terms), *(f"{shelf}f{facet}" for facet in facets))
    )


class SqliteDatabase(Database):
    """One file, or an in-memory database, with one connection for reading and one for writing."""

    def __init__(self, path: Path | None, durability: _Durability = "full", cache: VectorCache = VECTORS) -> None:
        self._path = path
        self._durability = durability
        self._cache = cache
        self._key = f"{path.resolve() if path else 'memory'} {next(_serial)}"
        self._opening = threading.RLock()
        self._open: _Connections | None = None
        self._was_open = False
        """Whether it is in use, so that a missing file is an error."""
        if path is not None:
            _databases.add(self)
        self._commits = count(1)
        self._committed = 0

    @property
    def name(self) -> str:
        """The file, for error messages."""
        return str(self._path) if self._path else "in process"

    @contextmanager
    def reading(self) -> Iterator[SqliteStatements]:
        """Statements that read committed data."""
        yield self._connections().reader

    @contextmanager
    def writing(self, tenant: str, name: str, *, wait: bool = True) -> Iterator[tuple[SqliteStatements, ShelfRow]]:
        """A write transaction and the shelf, which is created if it does not exist."""
        with self.transaction(wait=wait) as statements:
            yield statements, statements.shelf(tenant, name) or self._new_shelf(statements, tenant, name)

    @contextmanager
    def transaction(self, *, wait: bool = True) -> Iterator[SqliteStatements]:
        """A write transaction; SQLite allows one at a time."""
        statements = self._connections().writer
        with statements.lock:
            statements.begin(wait)
            try:
                yield statements
                statements.execute("COMMIT")
            except BaseException:
                # SQLite may have rolled back already, for example after a full disk.
                with suppress(sqlite3.Error):
                    statements.execute("ROLLBACK")
                raise
            self._committed = next(self._commits)

    @property
    def identity(self) -> object:
        """Changes when the file is replaced by another one."""
        self._connections()
        return self._key

    def version(self) -> object:
        """Changes after each commit."""
        if self._path is None:
            return self._committed
        return self._connections().reader.one("PRAGMA data_version")[0]

    @contextmanager
    def snapshot(self) -> Iterator[SqliteStatements]:
        """Statements on a snapshot, on a connection of their own."""
        reader = self._connections().reader
        if self._path is None:
            with reader.lock:
                yield reader
            return
        connection = _connect(str(self._path))
        try:
            connection.execute("BEGIN")
            yield SqliteStatements(connection, threading.RLock(), reader.vectors_of)
        finally:
            connection.close()

    def close(self) -> None:
        """Close the connections. An in-memory database keeps its content."""
        with self._opening:
            if self._path is not None and self._open is not None:
                self._open.close()
                self._open = None
            self._was_open = False
            self._cache.drop(self._key)

    def before_fork(self) -> None:
        """Close the connections and block new ones until `after_fork`: SQLite connections do not survive a fork.

        A child that inherits open connections would hold no locks, and its parent could delete the write-ahead log.
        """
        self._opening.acquire()
        if self._open is not None and self._open.process == os.getpid() and self._open.close_if_idle(FORK_PATIENCE):
            self._open = None

    def after_fork(self) -> None:
        """Allow new connections, in the parent and in the child."""
        self._opening.release()

    def backup(self, target: Path) -> None:
        """Copy the database into a new file; other processes may keep writing."""
        with self.reading() as statements:
            statements.execute("VACUUM INTO ?", (str(target),))

    def _new_shelf(self, statements: Statements, tenant: str, name: str) -> ShelfRow:
        statements.execute("INSERT INTO shelves(tenant, name) VALUES (?, ?)", (tenant, name))
        shelf = statements.shelf(tenant, name)
        if shelf is None:
            raise StoreError(f"{self.name} did not store the shelf {name!r} of {tenant!r}")
        return shelf

    def _connections(self) -> _Connections:
        connections = self._open
        if connections is not None and connections.usable(self._path):
            return connections
        with self._opening:
            if self._open is not None and not self._open.usable(self._path):
                self._drop_stale(self._open)
            if self._open is None:
                self._check_exists()
                self._open = _open_connections(
                    self._path, self._durability, VectorBlocks(self._key, self._cache, threading.RLock())
                )
                self._was_open = True
            return self._open

    def _drop_stale(self, stale: _Connections) -> None:
        """Drop connections to a file that was replaced, or of the parent process."""
        self._check_exists()
        # After a fork the connections belong to the parent: do not close them.
        if stale.process == os.getpid():
            stale.close()
        self._open = None
        self._key = f"{self._key.rsplit(' ', 1)[0]} {next(_serial)}"

    def _check_exists(self) -> None:
        """Raise if the file was deleted while in use: a new, empty file would hide the loss."""
        if self._was_open and self._path is not None and not self._path.exists():
            raise StoreError(
                f"the memory {self.name!r} was removed while it was in use: put the folder back, or close the memory"
            )


_databases: WeakSet[SqliteDatabase] = WeakSet()
_forking: list[SqliteDatabase] = []


def _before_fork() -> None:
    for database in list(_databases):
        database.before_fork()
        _forking.append(database)


def _after_fork() -> None:
    while _forking:
        _forking.pop().after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


class _Connections:
    """The connections of one process to one file."""

    def __init__(self, reader: SqliteStatements, writer: SqliteStatements, file: tuple[int, int] | None) -> None:
        self.reader = reader
        self.writer = writer
        self.process = os.getpid()
        self._file = file
        # Closes them when the memory is garbage collected, but not at exit, when other threads may still read.
        for each in {id(one): one for one in (reader, writer)}.values():
            finalize(self, each.connection.close).atexit = False

    def usable(self, path: Path | None) -> bool:
        """Whether this process opened them, and the path still leads to the same file."""
        if self.process != os.getpid():
            return False
        return path is None or _file_id(path) == self._file

    def close(self) -> None:
        for each in (self.reader, self.writer):
            with each.lock:
                each.connection.close()

    def close_if_idle(self, seconds: float) -> bool:
        """Close both, unless a statement or transaction runs longer than this."""
        acquired = [each.lock for each in (self.reader, self.writer) if each.lock.acquire(timeout=seconds)]
        idle = len(acquired) == 2 and not self.writer.connection.in_transaction
        if idle:
            self.reader.connection.close()
            self.writer.connection.close()
        for lock in acquired:
            lock.release()
        return idle


def _file_id(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _open_connections(path: Path | None, durability: _Durability, vectors: VectorBlocks) -> _Connections:
    if path is None:
        lock = threading.RLock()
        connection = _connect(":memory:")
        _prepare(connection, ":memory:")
        statements = SqliteStatements(connection, lock, vectors)
        return _Connections(statements, statements, None)
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = _connect(str(path))
    try:
        _prepare(writer, str(path))
        writer.execute(f"PRAGMA synchronous = {durability.upper()}")
        reader = _connect(str(path))
    except BaseException:
        writer.close()
        raise
    return _Connections(
        SqliteStatements(reader, threading.RLock(), vectors),
        SqliteStatements(writer, threading.RLock(), vectors),
        _file_id(path),
    )


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=BUSY)
    # Overwrite deleted content, instead of only marking it as free.
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    """Create the tables if they do not exist; safe to run in several processes at once."""
    # Checked before any change: a file of a newer version stays untouched.
    version = _version(connection, path)
    connection.execute(f"PRAGMA page_size = {_PAGE}")
    _execute_when_unlocked(connection, "PRAGMA journal_mode = WAL")
    if version == _VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection, path) != _VERSION:
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, path: str) -> int:
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if found > _VERSION:
        raise StoreError(
            f"the memory {path!r} was written by a newer version of this package (schema {found}, this one knows "
            f"{_VERSION}): upgrade langgraph-scrum-master to open it"
        )
    return found


def _execute_when_unlocked(connection: sqlite3.Connection, statement: str) -> None:
    """Retry the statement while the file is locked: the busy timeout of SQLite does not cover it."""
    deadline = time.monotonic() + BUSY
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
