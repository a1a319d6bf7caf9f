"""Memory in Chroma: in a folder, in a server, or only as long as the process lives."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from langgraph_scrum_master.blocking import off_loop
from langgraph_scrum_master.errors import ConfigError, ScrumMasterError, StoreError
from langgraph_scrum_master.memory.records import SEARCHED, Kind, Near, Record, RecordMemory
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.embedders import EMBEDDERS, embedder_for
from langgraph_scrum_master.shapes import well_formed

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

T = TypeVar("T")

BATCH = 5_000
"""Chroma takes a few more rows than that in one call."""

_numbered = count(1)
_opened_in: int | None = None


class ChromaMemory(RecordMemory):
    """A `MemoryStore` in Chroma, with one collection per namespace and kind.

    Without a path it lives as long as the process, and no other instance sees it. Nothing is opened before it is used.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        client: ClientAPI | None = None,
        embedder: str | Embedder = "static",
        namespace: str = "default",
    ) -> None:
        if path is not None and client is not None:
            raise ConfigError(f"give a path or a client, not both: path is {str(path)!r}")
        if not namespace:
            raise ConfigError(f"namespace must be a non-empty text, got {namespace!r}")
        if isinstance(embedder, str) and embedder not in EMBEDDERS:
            raise ConfigError(
                f"embedder must be among {EMBEDDERS}, or an object with embed_documents, got {embedder!r}"
            )
        self._path = Path(path) if path is not None else None
        self._client = client
        self._embedder_choice = embedder
        self._namespace = namespace
        # Chroma's in-process clients share one database: the number keeps instances apart.
        self._realm = f"process-{next(_numbered)}" if path is None and client is None else "shared"
        self._collections: dict[Kind, Collection] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        where = str(self._path) if self._path else "client" if self._realm == "shared" else "in process"
        return f"ChromaMemory({where}, namespace={self._namespace!r})"

    async def open(self) -> None:
        """Load what the first use would load: Chroma, the embedder, the collections."""
        if not self._collections:
            await self._off_loop(lambda: [self._query(kind, "warm", 1) for kind in SEARCHED])

    async def put(self, records: Sequence[Record]) -> None:
        """Keep the records, in batches."""
        by_kind: dict[Kind, dict[str, Record]] = {}
        for record in records:
            by_kind.setdefault(record.kind, {})[record.key] = record
        for kind, rows in by_kind.items():
            distinct = list(rows.values())
            for start in range(0, len(distinct), BATCH):
                await self._off_loop(self._upsert, kind, distinct[start : start + BATCH])

    async def nearest(self, kind: Kind, query: str, limit: int) -> list[Near]:
        """The records of a kind whose vectors are nearest the query's."""
        return await self._off_loop(self._query, kind, query, limit)

    async def list_all(self, kind: Kind) -> list[Record]:
        """All records of a kind."""
        return await self._off_loop(self._get, kind)

    async def _off_loop(self, call: Callable[..., T], *args: Any) -> T:
        return await off_loop(self._guarded, call, *args)

    def _guarded(self, call: Callable[..., T], *args: Any) -> T:
        with self._store_errors():
            return call(*args)

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            yield
        except ScrumMasterError:
            raise
        # Chroma fails in many types, some of them from its Rust core: all mean that the memory cannot be used now.
        except Exception as error:
            raise StoreError(f"{self!r} cannot be used: {type(error).__name__}: {error}") from error

    def _upsert(self, kind: Kind, records: Sequence[Record]) -> None:
        self._collection(kind).upsert(
            ids=[well_formed(record.key) for record in records],
            documents=[well_formed(record.text) for record in records],
            embeddings=_array(self._embedder.embed_documents([well_formed(record.text) for record in records])),
            metadatas=[{"data": json.dumps(record.data)} for record in records],
        )

    def _query(self, kind: Kind, query: str, limit: int) -> list[Near]:
        collection = self._collection(kind)
        if not collection.count():
            return []
        found = collection.query(
            query_embeddings=_array([self._embedder.embed_query(query)]),
            n_results=limit,
            include=["documents", "metadatas", "distances"],
        )
        rows = zip(found["ids"][0], _first(found["documents"]), _first(found["metadatas"]), strict=True)
        cosines = (1 - distance for distance in _first(found["distances"]))
        return [(_record(kind, *row), cosine) for row, cosine in zip(rows, cosines, strict=True)]

    def _get(self, kind: Kind) -> list[Record]:
        found = self._collection(kind).get(include=["documents", "metadatas"])
        return [
            _record(kind, *row)
            for row in zip(found["ids"], found["documents"] or [], found["metadatas"] or [], strict=True)
        ]

    @property
    def _embedder(self) -> Embedder:
        return embedder_for(self._embedder_choice)

    def _collection(self, kind: Kind) -> Collection:
        _refuse_after_fork()
        with self._lock:
            if kind not in self._collections:
                self._collections[kind] = self._open(kind)
            return self._collections[kind]

    def _open(self, kind: Kind) -> Collection:
        embedder = type(self._embedder).__name__
        collection = self._connected().get_or_create_collection(
            f"scrum-master-{digest(self._realm, self._namespace)}-{kind}",
            metadata={"namespace": self._namespace, "embedder": embedder},
            configuration={"hnsw": {"space": "cosine", "ef_search": 400}},
            embedding_function=None,
        )
        filled_with = (collection.metadata or {}).get("embedder")
        if filled_with != embedder:
            raise StoreError(f"{self!r} was filled with {filled_with!r}: open it with that embedder, not {embedder!r}")
        return collection

    def _connected(self) -> ClientAPI:
        _refuse_after_fork()
        if self._client is None:
            import chromadb
            from chromadb.config import Settings

            settings = Settings(anonymized_telemetry=False)
            if self._path is None:
                self._client = chromadb.EphemeralClient(settings)
            else:
                self._path.mkdir(parents=True, exist_ok=True)
                self._client = self._open_folder(chromadb.PersistentClient, settings)
        return self._client

    def _open_folder(self, connect: Callable[..., ClientAPI], settings: Any) -> ClientAPI:
        try:
            return connect(str(self._path), settings)
        except BaseException:
            # Chroma would hand out the half-opened folder again, and hide what is wrong with it.
            from chromadb.api.shared_system_client import SharedSystemClient

            SharedSystemClient._identifier_to_system.pop(str(self._path), None)
            raise


def _refuse_after_fork() -> None:
    global _opened_in
    _opened_in = _opened_in or os.getpid()
    if _opened_in != os.getpid():
        raise StoreError(
            "Chroma was opened before this process was forked, and would hang here: fork first, or use spawn"
        )


def _record(kind: Kind, key: str, text: str, metadata: Any) -> Record:
    return Record(kind=kind, key=key, text=text, data=json.loads(metadata["data"]))


def _first(columns: Any) -> list[Any]:
    return list(columns[0]) if columns else []


def _array(vectors: list[list[float]]) -> Any:
    import numpy as np

    array = np.asarray(vectors, dtype="float32")
    # A zero vector has no cosine with anything.
    array[~array.any(axis=1), 0] = 1.0
    return array
