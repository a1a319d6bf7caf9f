"""`ChromaMemory`: the default memory, in a folder, in this process, or in a Chroma server."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.memory.backend import Backend
from langgraph_scrum_master.memory.database_memory import DatabaseMemory
from langgraph_scrum_master.memory.folder import FILE, is_earlier, is_memory
from langgraph_scrum_master.memory.record_memory import check_namespace
from langgraph_scrum_master.memory.store import RecordStore, StoreBackend
from langgraph_scrum_master.protocols import Clock, Embedder
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.rank.recipe import Recipe, Spaces
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, RankTuning

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

    from langgraph_scrum_master.memory.database import Database

_Durability = Literal["full", "normal"]
"""full: a write is on disk when it returns. normal: a power failure may lose the last writes, a crash does not."""

_serial = count(1)


class ChromaMemory(DatabaseMemory):
    """A `MemoryStore` in a folder, in this process, or in a Chroma server.

    - `ChromaMemory("folder")` stores everything in one SQLite file. Several processes may use the folder at once.
    - `ChromaMemory()` lives in this process; each instance is separate.
    - `ChromaMemory(client=chromadb.HttpClient(...))` stores everything in a Chroma server.

    Nothing is opened before first use. `spaces` replaces similarity spaces by your models, as `{"E10": embeddings}`,
    and adds your own spaces, as `{"X1": space}`; the model of E1 is the `embedder`. `tuning` holds the parameters of
    ranking. `clock` gives the time of queries that have none, for the temporal spaces. `durability="normal"` writes
    faster, but a power failure may lose the last writes. `most_records` limits the records per namespace.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        client: ClientAPI | None = None,
        embedder: str | Embedder = "static",
        namespace: str = "default",
        spaces: Spaces | None = None,
        tuning: RankTuning = DEFAULT_TUNING,
        clock: Clock | None = None,
        durability: _Durability = "full",
        most_records: int | None = None,
    ) -> None:
        check_namespace(namespace)
        if path is not None and client is not None:
            raise ConfigError(f"pass a path or a client, not both, got path {str(path)!r}")
        if durability not in get_args(_Durability):
            raise ConfigError(f"durability must be among {get_args(_Durability)}, got {durability!r}")
        backend: Backend
        if client is None:
            backend = StoreBackend(
                _store(Path(path) if path is not None else None, durability, most_records, embedder),
                namespace,
                embedder=embedder,
                recipe=Recipe.of(spaces, tuning, clock),
            )
        else:
            from langgraph_scrum_master.memory.chroma_server import ChromaServerBackend

            if spaces or clock or tuning is not DEFAULT_TUNING or most_records is not None:
                raise ConfigError(
                    "spaces, tuning, clock and most_records do not work with a Chroma server: pass a path"
                )
            backend = ChromaServerBackend(client, namespace, embedder=embedder)
        super().__init__(backend)

    @property
    def begun(self) -> bool:
        """Whether the memory has records; does not open it or load anything."""
        backend = self._backend
        if not isinstance(backend, StoreBackend) or backend.store.file is None:
            return True
        file = backend.store.file
        if not file.exists():
            return is_memory(file.parent)
        return _has_records(file, backend.tenant, "AND name = ?", backend.shelf)

    @property
    def begun_anywhere(self) -> bool:
        """Whether the memory or a shelf beside it has records, as `begun`."""
        backend = self._backend
        if not isinstance(backend, StoreBackend) or backend.store.file is None or not backend.store.file.exists():
            return self.begun
        return _has_records(backend.store.file, backend.tenant)


def _has_records(file: Path, tenant: str, where: str = "", *values: str) -> bool:
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
        query = f"SELECT 1 FROM shelves WHERE tenant = ? AND records > 0 {where}"
        return database.execute(query, (tenant, *values)).fetchone() is not None
    # Opening the memory reports what is wrong with the file.
    return True


def _store(
    path: Path | None, durability: _Durability, most_records: int | None, embedder: str | Embedder
) -> RecordStore:
    def connect() -> Database:
        from langgraph_scrum_master.memory.sqlite import SqliteDatabase

        if path is None:
            return SqliteDatabase(None, durability)
        if is_earlier(path):
            from langgraph_scrum_master.memory.migrate import convert

            convert(path, embedder_for(embedder))
        return SqliteDatabase(path / FILE, durability)

    if path is None:
        return RecordStore(f"in process {next(_serial)}", connect, most_records=most_records)
    return RecordStore(str(path), connect, file=path / FILE, most_records=most_records)
