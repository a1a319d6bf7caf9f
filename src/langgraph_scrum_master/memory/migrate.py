"""Conversion of folders with the earlier layout: one SQLite ledger per namespace and shelf, next to Chroma's files."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.memory.folder import EARLIER, FILE, is_earlier
from langgraph_scrum_master.memory.records import Record
from langgraph_scrum_master.memory.sqlite import BUSY, SqliteDatabase
from langgraph_scrum_master.memory.store import RecordStore
from langgraph_scrum_master.memory.vectors import VectorCache
from langgraph_scrum_master.memory.writer import wrong_embedder
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.embedders import StaticEmbedder

BATCH = 1_000
"""Records per step; progress is logged after each."""

PARTIAL = f"{FILE}.partial"
"""The new file until it is complete."""

LOCK = "converting.sqlite3"
"""The lock file of the process that converts the folder."""

REPLACED = f"{FILE}.replaced"
"""Lists the old files, from the completion of the new file until they are deleted."""

CHROMA = "chroma.sqlite3"

_SEPARATOR = "\x1f"
_SHELVES = (
    *("code", "commits", "values", "knowledge", "knowledge-documents", "index-documents"),
    *(f"{name}{_SEPARATOR}index-{name}" for name in ("code", "commits", "values")),
    *(f"experiences-{axis}" for axis in ("full", "strategy", "surprise", "root_cause")),
)
_DELETING = 2
"""The state of a ledger row that is being deleted."""


class _Ledger(NamedTuple):
    path: Path
    tenant: str
    shelf: str


def convert(folder: Path, embedder: Embedder) -> None:
    """Convert the folder if it has the earlier layout. The old files stay until the new file is complete."""
    while not (folder / FILE).exists() and is_earlier(folder):
        # The process that held the lock deletes the lock file. Waiting processes then fail, and check again.
        with suppress(sqlite3.OperationalError), _conversion_lock(folder):
            # Another process may have converted it in the meantime.
            if not (folder / FILE).exists():
                _convert(folder, embedder)
    if (folder / REPLACED).exists():
        _remove_old(folder)


@contextmanager
def _conversion_lock(folder: Path) -> Iterator[None]:
    """Hold the lock that only one converting process can have."""
    with closing(sqlite3.connect(folder / LOCK, isolation_level=None, timeout=BUSY)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        try:
            yield
        # An error of the conversion, not of the lock.
        except sqlite3.OperationalError as error:
            raise StoreError(f"{str(folder)!r} cannot be converted: {error}") from error
        finally:
            for name in (LOCK, f"{LOCK}-journal"):
                (folder / name).unlink(missing_ok=True)


def _convert(folder: Path, embedder: Embedder) -> None:
    ledgers = list(_ledgers(folder))
    for ledger in ledgers:
        _check_embedder(ledger, embedder)
        _check_complete(ledger)
    for leftover in folder.glob(f"{PARTIAL}*"):
        leftover.unlink()
    database = SqliteDatabase(folder / PARTIAL, "full", VectorCache(0))
    store = RecordStore(str(folder), lambda: database)
    total = 0
    for ledger in ledgers:
        for count in _copy(store, ledger, embedder):
            total += count
            logger.info("memory.converting", memory=str(folder), shelf=ledger.shelf, records=total)
    with database.reading() as statements:
        statements.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    # If this process ends now, the next one that opens the folder deletes the old files.
    (folder / REPLACED).write_text(json.dumps([ledger.path.name for ledger in ledgers]), encoding="utf-8")
    (folder / PARTIAL).replace(folder / FILE)
    for leftover in folder.glob(f"{PARTIAL}*"):
        leftover.unlink()
    _remove_old(folder)
    logger.warning("memory.converted", memory=str(folder), shelves=len(ledgers), records=total)


def _ledgers(folder: Path) -> Iterator[_Ledger]:
    """The ledgers with their namespace and shelf, found by hashing candidate names: file names are hashes."""
    known = _namespaces(folder)
    tenants = sorted({name.split(_SEPARATOR)[0] for name in known} | {"default"})
    candidates = [*known, *tenants, *(f"{tenant}{_SEPARATOR}{shelf}" for tenant in tenants for shelf in _SHELVES)]
    names = {digest("shared", name): name for name in candidates}
    for path in sorted(folder.glob(EARLIER)):
        name = names.get(path.stem.removeprefix("ledger-"))
        if name is None:
            raise StoreError(
                f"{str(path)!r} cannot be converted, because its namespace is not named anywhere in the folder: move "
                "the file away to convert the rest"
            )
        tenant, _, shelf = name.partition(_SEPARATOR)
        yield _Ledger(path, tenant, shelf.replace(_SEPARATOR, "/"))


def _namespaces(folder: Path) -> list[str]:
    file = folder / CHROMA
    if not file.exists():
        return []
    with closing(_read_only(file)) as chroma:
        query = "SELECT DISTINCT str_value FROM collection_metadata WHERE key = 'namespace' ORDER BY str_value"
        return [str(name) for (name,) in chroma.execute(query)]


def _read_only(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=BUSY)


def _check_embedder(ledger: _Ledger, embedder: Embedder) -> None:
    with closing(_read_only(ledger.path)) as database:
        stored = database.execute("SELECT value FROM tally WHERE name = 'embedder'").fetchone()
    name = type(embedder).__name__
    if stored and stored[0] != name:
        raise StoreError(wrong_embedder(stored[0], name))


def _check_complete(ledger: _Ledger) -> None:
    """Raise if the ledger lacks records that are only in Chroma's files."""
    if not (ledger.path.parent / CHROMA).exists():
        return
    with closing(_read_only(ledger.path)) as database:
        if database.execute("SELECT 1 FROM tally WHERE name = 'complete'").fetchone() is None:
            raise StoreError(
                f"{str(ledger.path)!r} is incomplete: open the folder once with the version of this package that wrote "
                "it, then again with this one"
            )


def _copy(store: RecordStore, ledger: _Ledger, embedder: Embedder) -> Iterator[int]:
    """Copy the records of a ledger; ledgers of indexers become notes of their shelf. Yields the number per step."""
    with closing(_read_only(ledger.path)) as database:
        found = database.execute(
            "SELECT kind, key, text, data, vector FROM records WHERE state != ? ORDER BY session, position, id",
            (_DELETING,),
        )
        rows = [(Record(kind=k, key=key, text=text, data=json.loads(data)), vec) for k, key, text, data, vec in found]
    shelf, book = _book(ledger.shelf)
    target = store.shelf(ledger.tenant, shelf)
    if book:
        notes = {record.key: {n: v for n, v in record.data.items() if n != "kind"} for record, _ in rows}
        store.writer.save_notes(target, book, {key: note for key, note in notes.items() if key != "all files"})
        yield 0
        return
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        # Vectors of a model that may be slow or charge per call are reused.
        vectors = embedder if isinstance(embedder, StaticEmbedder) else _StoredVectors(part, embedder)
        store.writer.put(target.refresh(), [record for record, _ in part], vectors, type(embedder).__name__)
        yield len(part)


def _book(shelf: str) -> tuple[str, str]:
    """The shelf and the book of an indexer's ledger; the book is empty for any other ledger."""
    if shelf == "knowledge-documents":
        return "knowledge", "documents"
    if shelf == "index-documents":
        return "", "index documents"
    outer, _, inner = shelf.partition("/")
    if inner.startswith("index-"):
        return outer, "index code" if outer == "code" else "index"
    return shelf, ""


class _StoredVectors:
    """An embedder that returns stored vectors."""

    def __init__(self, rows: Sequence[tuple[Record, bytes]], embedder: Embedder) -> None:
        self._vectors = {record.text: np.frombuffer(vector, "<f2").astype("float64") for record, vector in rows}
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> Any:
        """The stored vectors."""
        return [self._vectors[text].tolist() for text in texts]

    def embed_query(self, text: str) -> Any:
        """The vector of a query, from the embedder itself."""
        return self._embedder.embed_query(text)


def _remove_old(folder: Path) -> None:
    """Delete the replaced files; those of Chroma only if they hold nothing else."""
    try:
        ledgers = [folder / name for name in json.loads((folder / REPLACED).read_text(encoding="utf-8"))]
    # Another process has deleted them, and their list, in the meantime.
    except FileNotFoundError:
        return
    _remove_chroma(folder)
    for path in ledgers:
        for each in (path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))):
            each.unlink(missing_ok=True)
    for name in (LOCK, f"{LOCK}-journal", REPLACED):
        (folder / name).unlink(missing_ok=True)


def _remove_chroma(folder: Path) -> None:
    file = folder / CHROMA
    if not file.exists():
        return
    with closing(_read_only(file)) as chroma:
        names = [str(name) for (name,) in chroma.execute("SELECT name FROM collections")]
        segments = [str(number) for (number,) in chroma.execute("SELECT id FROM segments")]
    if any(not name.startswith("scrum-master-") for name in names):
        logger.warning("memory.chroma_kept", file=str(file), reason="it holds other collections")
        return
    for segment in segments:
        shutil.rmtree(folder / segment, ignore_errors=True)
    for end in ("", "-wal", "-shm", "-journal"):
        file.with_name(f"{CHROMA}{end}").unlink(missing_ok=True)
