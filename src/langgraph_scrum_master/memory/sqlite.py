"""The record store in SQLite: one file in a folder, or a database in memory."""

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
    Kept,
    ShelfRow,
    Statements,
    batches_of_values,
)
from langgraph_scrum_master.memory.records import SEARCHED, Kind
from langgraph_scrum_master.memory.vectors import VECTORS, VectorCache
from langgraph_scrum_master.rank.features import Array, Features

_VERSION = 1
"""Of the schema. A file of a newer version is refused."""

BUSY = 60.0
"""Seconds for which another process may write before a write here fails."""

FORK_PATIENCE = 5.0
"""Seconds for which a fork waits for another thread's statement or transaction to end."""

_PAGE = 1_024
"""Bytes of a page: smaller ones make a write smaller, larger ones a search faster."""

_Durability: TypeAlias = Literal["full", "normal"]
"""Whether a write is on the disk when it is acknowledged, or only safe from a crash of the process."""

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
"""What FTS5 makes for an empty full-text index: its tables, with no averages and a structure of no segments."""
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
"""As many as there are."""

_numbered = count(1)


class SqliteStatements(Statements):
    """The statements on one connection, which threads use one after the other."""

    def __init__(self, connection: sqlite3.Connection, lock: threading.RLock, vectors: VectorBlocks) -> None:
        self.connection = connection
        self.lock = lock
        self._vectors = vectors

    @property
    def vectors_of(self) -> VectorBlocks:
        """What finds the nearest vectors."""
        return self._vectors

    def execute(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows that a statement gives."""
        with self.lock:
            return self.connection.execute(query, values).fetchall()

    def begin(self, wait: bool) -> None:
        """Begin a transaction that writes."""
        if wait:
            self.execute("BEGIN IMMEDIATE")
            return
        self.execute("PRAGMA busy_timeout = 0")
        try:
            self.execute("BEGIN IMMEDIATE")
        finally:
            self.execute(f"PRAGMA busy_timeout = {round(BUSY * 1000)}")

    def executemany(self, query: str, values: Iterable[Sequence[Any]]) -> None:
        """The statement for each of these."""
        with self.lock:
            self.connection.executemany(query, values)

    def among(
        self, query: str, values: Sequence[Any], before: Sequence[Any] = (), after: Sequence[Any] = ()
    ) -> list[Any]:
        """The rows of a statement in which `{}` stands for being one of these values."""
        found: list[Any] = []
        with self.lock:
            for part in batches_of_values(values):
                marks = f"IN ({', '.join('?' * len(part))})"
                found += self.connection.execute(query.format(marks), (*before, *part, *after)).fetchall()
        return found

    def insert(self, shelf: int, entries: Sequence[Entry]) -> list[int]:
        """Write the records and their postings."""
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
            with _of_postings():
                self.connection.executemany("INSERT INTO postings(rowid, body) VALUES (?, ?)", bodies)
        return ids

    def delete(self, shelf: int, gone: Sequence[Kept], bodies: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        """Remove the records, their postings and vectors."""
        ids = [kept.id for kept in gone]
        said = [
            (kept.id, _body(shelf, kept.kind, terms, facets))
            for kept, (terms, facets) in zip(gone, bodies, strict=True)
            if kept.kind in SEARCHED
        ]
        with _of_postings():
            self.executemany("INSERT INTO postings(postings, rowid, body) VALUES ('delete', ?, ?)", said)
        self.among("DELETE FROM records WHERE id {} AND +shelf = ?", ids, after=(shelf,))
        self.among("DELETE FROM model_vectors WHERE shelf = ? AND record {}", ids, before=(shelf,))
        for kind in {kept.kind for kept in gone}:
            self._vectors.remove(self, shelf, kind, sorted(kept.id for kept in gone if kept.kind == kind))

    def postings(self, shelf: int, terms: Sequence[int], kinds: Sequence[Kind] | None, limit: int) -> list[Array]:
        """The ids of the newest records that have each term."""
        some = "" if kinds is None else f" AND ({' OR '.join(f'{shelf}k{kind}' for kind in kinds)})"
        return [self._matching(f"{shelf}t{term}{some}", limit) for term in terms]

    def with_facets(self, shelf: int, kind: Kind, facets: Sequence[int], limit: int) -> list[int]:
        """The ids of the newest records of a kind that have all of these facets."""
        wanted = " AND ".join((f"{shelf}k{kind}", *(f"{shelf}f{facet}" for facet in facets)))
        return [int(number) for number in self._matching(wanted, limit)]

    def nearest(self, shelf: ShelfRow, kind: Kind, vector: Array, limit: int) -> list[tuple[int, float]]:
        """The ids of the records whose vectors are nearest, with their cosines."""
        found = self._vectors.nearest(self, shelf, kind, vector, limit)
        return list(zip(found.ids.tolist(), found.cosines.tolist(), strict=True))

    def index(self, shelf: int, kept: Sequence[Kept], facets: Sequence[Sequence[int]]) -> None:
        """Make the postings of records that have none."""
        bodies = [
            (each.id, _body(shelf, each.kind, Features.unpack(each.features).terms.tolist(), own))
            for each, own in zip(kept, facets, strict=True)
        ]
        self.executemany("INSERT INTO postings(rowid, body) VALUES (?, ?)", bodies)

    def indexed(self, shelf: int) -> list[int]:
        """The ids of all records that have postings."""
        return sorted({int(number) for kind in SEARCHED for number in self._matching(f"{shelf}k{kind}", _EVERY)})

    def clear_derived(self) -> None:
        """Remove the postings, the blocks and the statistics of all shelves."""
        # One whose tables are damaged cannot even be dropped.
        for statement in _POSTINGS_PARTS:
            self.execute(statement)
        self.execute("DROP TABLE postings")
        self.execute(_POSTINGS)
        self.execute("DELETE FROM blocks")
        self.execute("DELETE FROM statistics")

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file, and with its full-text index."""
        found = [line for (line,) in self.execute("PRAGMA integrity_check") if line != "ok"]
        try:
            self.execute("INSERT INTO postings(postings) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as error:
            # It takes the write lock, which another process may have, and which a read-only file does not give.
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY):
                found.append(f"the full-text index: {error}")
        return found

    def posting_counts(self, shelf: int) -> dict[int, int]:
        """How many records the full-text index has for each term."""
        with _of_postings():
            self.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, postings, row)")
            found = self.execute(
                "SELECT term, doc FROM temp.vocabulary WHERE term >= ? AND term < ?", (f"{shelf}t", f"{shelf}u")
            )
        return {int(term.removeprefix(f"{shelf}t")): count for term, count in found}

    def check_vectors(self, shelf: ShelfRow) -> list[str]:
        """How the blocks differ from the records."""
        return self._vectors.check(self, shelf)

    def pack(self, shelf: ShelfRow) -> None:
        """Pack vectors into blocks, where there are enough that are in none."""
        self._vectors.save(self, shelf)

    def _matching(self, wanted: str, limit: int) -> Array:
        with _of_postings():
            found = self.execute(
                "SELECT rowid FROM postings WHERE postings MATCH ? ORDER BY rowid DESC LIMIT ?", (wanted, limit)
            )
        return np.fromiter(chain.from_iterable(found), dtype="int64", count=len(found))


@contextmanager
def _of_postings() -> Iterator[None]:
    """Around statements on the full-text index: tells damage to it from what else may be wrong."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
            raise
        raise DerivedError(f"the full-text index: {error}") from error


def _body(shelf: int, kind: Kind, terms: Sequence[int], facets: Sequence[int]) -> str:
    # The shelf is a part of each word: what one shelf has is looked up without looking at another.
    return " ".join(
        (f"{shelf}k{kind}", *(f"{shelf}t{term}" for term in terms), *(f"{shelf}f{facet}" for facet in facets))
    )


class SqliteDatabase(Database):
    """One file, or a database in memory: a connection to read with, and one to write with."""

    def __init__(self, path: Path | None, durability: _Durability = "full", cache: VectorCache = VECTORS) -> None:
        self._path = path
        self._durability = durability
        self._cache = cache
        self._key = f"{path.resolve() if path else 'memory'} {next(_numbered)}"
        self._opening = threading.RLock()
        self._open: _Connections | None = None
        self._was_open = False
        """Whether it was opened and not closed since: then a file that is not there any more is an error."""
        if path is not None:
            _databases.add(self)
        self._commits = count(1)
        self._committed = 0

    @property
    def name(self) -> str:
        """Its file, or that it has none."""
        return str(self._path) if self._path else "in process"

    @contextmanager
    def reading(self) -> Iterator[SqliteStatements]:
        """The statements, for reading what is committed."""
        yield self._connections().reader

    @contextmanager
    def writing(self, tenant: str, name: str, *, wait: bool = True) -> Iterator[tuple[SqliteStatements, ShelfRow]]:
        """The statements in a transaction in which nobody else writes, and the shelf, which is made if need be."""
        with self.transaction(wait=wait) as statements:
            yield statements, statements.shelf(tenant, name) or self._new_shelf(statements, tenant, name)

    @contextmanager
    def transaction(self, *, wait: bool = True) -> Iterator[SqliteStatements]:
        """The statements in a transaction in which nobody else writes."""
        statements = self._connections().writer
        with statements.lock:
            statements.begin(wait)
            try:
                yield statements
                statements.execute("COMMIT")
            except BaseException:
                # What could not be committed, on a full disk say, may be rolled back already.
                with suppress(sqlite3.Error):
                    statements.execute("ROLLBACK")
                raise
            self._committed = next(self._commits)

    @property
    def identity(self) -> object:
        """The file, by when it was opened."""
        self._connections()
        return self._key

    def version(self) -> object:
        """Another value whenever somebody has committed."""
        if self._path is None:
            return self._committed
        return self._connections().reader.one("PRAGMA data_version")[0]

    @contextmanager
    def snapshot(self) -> Iterator[SqliteStatements]:
        """The statements on what is committed now, whatever others write meanwhile."""
        reader = self._connections().reader
        if self._path is None:
            with reader.lock:
                yield reader
            return
        connection = _connected(str(self._path))
        try:
            connection.execute("BEGIN")
            yield SqliteStatements(connection, threading.RLock(), reader.vectors_of)
        finally:
            connection.close()

    def close(self) -> None:
        """Close the connections; what a database in memory holds is kept."""
        with self._opening:
            if self._path is not None and self._open is not None:
                self._open.close()
                self._open = None
            self._was_open = False
            self._cache.drop(self._key)

    def before_fork(self) -> None:
        """Close the connections, and let nobody open new ones until `after_fork`: SQLite's do not survive a fork.

        With connections of its parent open, a child would lock nothing, and its parent would remove its log.
        """
        self._opening.acquire()
        if self._open is not None and self._open.process == os.getpid() and self._open.close_if_idle(FORK_PATIENCE):
            self._open = None

    def after_fork(self) -> None:
        """Connections may be opened again, in the parent and in the child."""
        self._opening.release()

    def backup(self, target: Path) -> None:
        """Write a copy of everything into a new file, also while others write."""
        with self.reading() as statements:
            statements.execute("VACUUM INTO ?", (str(target),))

    def _new_shelf(self, statements: Statements, tenant: str, name: str) -> ShelfRow:
        statements.execute("INSERT INTO shelves(tenant, name) VALUES (?, ?)", (tenant, name))
        made = statements.shelf(tenant, name)
        if made is None:
            raise StoreError(f"{self.name} does not keep the shelf {name!r} of {tenant!r}")
        return made

    def _connections(self) -> _Connections:
        opened = self._open
        if opened is not None and opened.usable(self._path):
            return opened
        with self._opening:
            if self._open is not None and not self._open.usable(self._path):
                self._replace_lost(self._open)
            if self._open is None:
                self._check_still_there()
                self._open = _opened(
                    self._path, self._durability, VectorBlocks(self._key, self._cache, threading.RLock())
                )
                self._was_open = True
            return self._open

    def _replace_lost(self, lost: _Connections) -> None:
        """Open the file that is there now."""
        self._check_still_there()
        # Not closed in a forked process: the connections are its parent's.
        if lost.process == os.getpid():
            lost.close()
        self._open = None
        self._key = f"{self._key.rsplit(' ', 1)[0]} {next(_numbered)}"

    def _check_still_there(self) -> None:
        """Raise if the file was removed: what was in it is gone, and a new one would hide that."""
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
        # Whoever drops a memory need not close it; at the end of the process others may still be reading.
        for each in {id(one): one for one in (reader, writer)}.values():
            finalize(self, each.connection.close).atexit = False

    def usable(self, path: Path | None) -> bool:
        """Whether this is the process that opened them, and the file is still the one that is there."""
        if self.process != os.getpid():
            return False
        return path is None or _file_of(path) == self._file

    def close(self) -> None:
        for each in (self.reader, self.writer):
            with each.lock:
                each.connection.close()

    def close_if_idle(self, seconds: float) -> bool:
        """Close both, unless a statement or a transaction goes on for longer."""
        taken = [each.lock for each in (self.reader, self.writer) if each.lock.acquire(timeout=seconds)]
        idle = len(taken) == 2 and not self.writer.connection.in_transaction
        if idle:
            self.reader.connection.close()
            self.writer.connection.close()
        for lock in taken:
            lock.release()
        return idle


def _file_of(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _opened(path: Path | None, durability: _Durability, vectors: VectorBlocks) -> _Connections:
    if path is None:
        lock = threading.RLock()
        connection = _connected(":memory:")
        _prepare(connection, ":memory:")
        alone = SqliteStatements(connection, lock, vectors)
        return _Connections(alone, alone, None)
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = _connected(str(path))
    try:
        _prepare(writer, str(path))
        writer.execute(f"PRAGMA synchronous = {durability.upper()}")
        reader = _connected(str(path))
    except BaseException:
        writer.close()
        raise
    return _Connections(
        SqliteStatements(reader, threading.RLock(), vectors),
        SqliteStatements(writer, threading.RLock(), vectors),
        _file_of(path),
    )


def _connected(place: str) -> sqlite3.Connection:
    connection = sqlite3.connect(place, check_same_thread=False, isolation_level=None, timeout=BUSY)
    # What is forgotten is overwritten, not only marked as free.
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def _prepare(connection: sqlite3.Connection, place: str) -> None:
    """Make the tables if they are not there; several processes may do so at once."""
    # Before anything is changed: a file of a newer version is left as it is.
    version = _version(connection, place)
    connection.execute(f"PRAGMA page_size = {_PAGE}")
    _patiently(connection, "PRAGMA journal_mode = WAL")
    if version == _VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection, place) != _VERSION:
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, place: str) -> int:
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if found > _VERSION:
        raise StoreError(
            f"the memory {place!r} was written by a newer version of this package (schema {found}, this one knows "
            f"{_VERSION}): upgrade langgraph-scrum-master to open it"
        )
    return found


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """The statement, again while another process holds the file: SQLite itself does not wait for this one."""
    until = time.monotonic() + BUSY
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
