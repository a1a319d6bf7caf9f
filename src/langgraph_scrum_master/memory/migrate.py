"""Conversion of a folder of the earlier layout: a SQLite ledger for each namespace and shelf, beside Chroma's files."""

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
from langgraph_scrum_master.memory.writer import other_embedder
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.embedders import StaticEmbedder

BATCH = 1_000
"""Records that are converted in one step, after which progress is logged."""

PARTIAL = f"{FILE}.partial"
"""The new file until it is complete."""

LOCK = "converting.sqlite3"
"""Locked while a process converts the folder."""

REPLACED = f"{FILE}.replaced"
"""The names of the old files, from when the new one is complete until they are removed."""

CHROMA = "chroma.sqlite3"

_SEPARATOR = "\x1f"
_SHELVES = (
    *("code", "commits", "values", "knowledge", "knowledge-documents", "index-documents"),
    *(f"{name}{_SEPARATOR}index-{name}" for name in ("code", "commits", "values")),
    *(f"experiences-{axis}" for axis in ("full", "strategy", "surprise", "root_cause")),
)
_LEAVING = 2


class _Ledger(NamedTuple):
    path: Path
    tenant: str
    shelf: str


def convert(folder: Path, embedder: Embedder) -> None:
    """Convert the folder if it has the earlier layout. The old files are kept until the new one is complete."""
    while not (folder / FILE).exists() and is_earlier(folder):
        # Whoever had the lock before removes its file; who waited for it finds that out, and looks again.
        with suppress(sqlite3.OperationalError), _locked(folder):
            # Another process may have been faster.
            if not (folder / FILE).exists():
                _convert(folder, embedder)
    if (folder / REPLACED).exists():
        _remove_old(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """As the only process that converts the folder."""
    with closing(sqlite3.connect(folder / LOCK, isolation_level=None, timeout=BUSY)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        try:
            yield
        # What fails inside is no lock that was lost.
        except sqlite3.OperationalError as error:
            raise StoreError(f"{str(folder)!r} cannot be converted: {error}") from error
        finally:
            for name in (LOCK, f"{LOCK}-journal"):
                (folder / name).unlink(missing_ok=True)


def _convert(folder: Path, embedder: Embedder) -> None:
    ledgers = list(_ledgers(folder))
    for ledger in ledgers:
        _refuse_other_embedder(ledger, embedder)
        _refuse_incomplete(ledger)
    for left in folder.glob(f"{PARTIAL}*"):
        left.unlink()
    database = SqliteDatabase(folder / PARTIAL, "full", VectorCache(0))
    store = RecordStore(str(folder), lambda: database)
    total = 0
    for ledger in ledgers:
        for copied in _copied(store, ledger, embedder):
            total += copied
            logger.info("memory.converting", memory=str(folder), shelf=ledger.shelf, records=total)
    with database.reading() as statements:
        statements.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    # Should this process end now, the old files are removed when the folder is opened next.
    (folder / REPLACED).write_text(json.dumps([ledger.path.name for ledger in ledgers]), encoding="utf-8")
    (folder / PARTIAL).replace(folder / FILE)
    for left in folder.glob(f"{PARTIAL}*"):
        left.unlink()
    _remove_old(folder)
    logger.warning("memory.converted", memory=str(folder), shelves=len(ledgers), records=total)


def _ledgers(folder: Path) -> Iterator[_Ledger]:
    """The ledgers with the names they belong to, which Chroma's file tells, or which are tried."""
    named = _namespaces(folder)
    tenants = sorted({name.split(_SEPARATOR)[0] for name in named} | {"default"})
    tried = [*named, *tenants, *(f"{tenant}{_SEPARATOR}{shelf}" for tenant in tenants for shelf in _SHELVES)]
    names = {digest("shared", name): name for name in tried}
    for path in sorted(folder.glob(EARLIER)):
        name = names.get(path.stem.removeprefix("ledger-"))
        if name is None:
            raise StoreError(
                f"{str(path)!r} belongs to a namespace that nothing in the folder names: its memory cannot be "
                "converted. Move the file away to convert the rest"
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


def _refuse_other_embedder(ledger: _Ledger, embedder: Embedder) -> None:
    with closing(_read_only(ledger.path)) as database:
        noted = database.execute("SELECT value FROM tally WHERE name = 'embedder'").fetchone()
    name = type(embedder).__name__
    if noted and noted[0] != name:
        raise StoreError(other_embedder(noted[0], name))


def _refuse_incomplete(ledger: _Ledger) -> None:
    """Raise if the ledger was still being filled from Chroma, where the rest of its records is."""
    if not (ledger.path.parent / CHROMA).exists():
        return
    with closing(_read_only(ledger.path)) as database:
        if database.execute("SELECT 1 FROM tally WHERE name = 'complete'").fetchone() is None:
            raise StoreError(
                f"{str(ledger.path)!r} was still being made from Chroma's files: open the folder once with the version "
                "of this package that wrote it, then again with this one"
            )


def _copied(store: RecordStore, ledger: _Ledger, embedder: Embedder) -> Iterator[int]:
    """Copy the records of a ledger; what indexers had noted beside a shelf become its notes. Gives how many at once."""
    with closing(_read_only(ledger.path)) as database:
        found = database.execute(
            "SELECT kind, key, text, data, vector FROM records WHERE state != ? ORDER BY session, position, id",
            (_LEAVING,),
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
        # Vectors of a model that may be slow, or paid for, are taken over.
        made = embedder if isinstance(embedder, StaticEmbedder) else _Known(part, embedder)
        store.writer.put(target.refresh(), [record for record, _ in part], made, type(embedder).__name__)
        yield len(part)


def _book(shelf: str) -> tuple[str, str]:
    """The shelf that an indexer's notes belong to, and the name of their book now; no book for any other shelf."""
    if shelf == "knowledge-documents":
        return "knowledge", "documents"
    if shelf == "index-documents":
        return "", "index documents"
    outer, _, inner = shelf.partition("/")
    if inner.startswith("index-"):
        return outer, "index code" if outer == "code" else "index"
    return shelf, ""


class _Known:
    """An embedder that knows the vectors of some texts."""

    def __init__(self, rows: Sequence[tuple[Record, bytes]], embedder: Embedder) -> None:
        self._vectors = {record.text: np.frombuffer(vector, "<f2").astype("float64") for record, vector in rows}
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> Any:
        """The vectors that are known."""
        return [self._vectors[text].tolist() for text in texts]

    def embed_query(self, text: str) -> Any:
        """The vector of a query, by the embedder itself."""
        return self._embedder.embed_query(text)


def _remove_old(folder: Path) -> None:
    """Remove the files that were replaced; those of Chroma only if it holds nothing else."""
    try:
        ledgers = [folder / name for name in json.loads((folder / REPLACED).read_text(encoding="utf-8"))]
    # Another process has removed them, and their list, in the meantime.
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
        logger.warning("memory.chroma_kept", file=str(file), reason="it holds collections of others")
        return
    for segment in segments:
        shutil.rmtree(folder / segment, ignore_errors=True)
    for end in ("", "-wal", "-shm", "-journal"):
        file.with_name(f"{CHROMA}{end}").unlink(missing_ok=True)
