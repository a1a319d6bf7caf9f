"""Chroma's side of a memory: a collection for each kind of record, opened when it is first asked for."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.memory.records import BATCH, SEARCHED, Kind
from langgraph_scrum_master.model import digest

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

KINDS: tuple[Kind, ...] = (*SEARCHED, "relationship")

LINKS, LOOKED_AT = 24, 400
"""Of Chroma's index, which is for more records than are held here: more than by default, or it would miss many."""

_opened_in: int | None = None
_connecting = threading.Lock()


class Collections:
    """The collections of one namespace in a folder, in a server, or in this process; `whose` is told in errors."""

    def __init__(
        self,
        path: Path | None,
        client: ClientAPI | None,
        *,
        whose: str,
        realm: str,
        namespace: str,
        embedder: Callable[[], str],
    ) -> None:
        self._path = path
        self._client = client
        self._whose = whose
        self._prefix = f"scrum-master-{digest(realm, namespace)}"
        self._namespace = namespace
        self._embedder = embedder
        self._opened: dict[Kind, Collection] = {}
        self._lock = threading.RLock()

    @property
    def client(self) -> ClientAPI:
        """Chroma itself."""
        refuse_after_fork()
        if self._client is not None:
            return self._client
        # One after the other: a memory and those beside it share what Chroma makes here, and it would hand that out to
        # one thread before another has finished making it.
        with _connecting:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def of(self, kind: Kind) -> Collection:
        """The collection of a kind, made if there is none."""
        refuse_after_fork()
        with self._lock:
            if kind not in self._opened:
                self._opened[kind] = self._open(kind)
            return self._opened[kind]

    def metadata(self, kind: Kind) -> Mapping[str, Any]:
        """What stands at a collection now, whoever wrote it."""
        self.of(kind)
        return self.client.get_collection(self._name(kind), embedding_function=None).metadata or {}

    def nearest(self, kind: Kind, vector: Any, limit: int) -> list[tuple[str, float]]:
        """The keys of the records of a kind whose vectors are nearest, with their cosines, as its index finds them."""
        found = self.of(kind).query(query_embeddings=vectors_of([vector]), n_results=limit, include=["distances"])
        distances = found["distances"] or [[]]
        return [(key, 1 - distance) for key, distance in zip(found["ids"][0], distances[0], strict=True)]

    def keys(self, kind: Kind) -> list[str]:
        """The keys of all records of a kind."""
        return list(self.of(kind).get(include=[])["ids"])

    def pages(self, kind: Kind, some: Mapping[str, Any]) -> Iterator[Any]:
        """All records of a kind, or those that a filter leaves, in batches."""
        for offset in count(0, BATCH):
            page = self.of(kind).get(
                include=["documents", "metadatas", "embeddings"], limit=BATCH, offset=offset, **some
            )
            if page["ids"]:
                yield page
            if len(page["ids"]) < BATCH:
                return

    def namespaces(self) -> set[str]:
        """All namespaces that have a collection in this place."""
        return {str((each.metadata or {}).get("namespace", "")) for each in self.client.list_collections()}

    def absent(self) -> bool:
        """Whether a folder's Chroma surely has nothing of this namespace, as can be told without loading it."""
        if self._path is None:
            return False
        file = self._path.resolve() / "chroma.sqlite3"
        if not file.exists():
            return True
        # Chroma itself is asked if this is not how it keeps its names.
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as chroma:
            names = {name for (name,) in chroma.execute("SELECT name FROM collections")}
            return names.isdisjoint(self._name(kind) for kind in KINDS)
        return False

    def delete(self, kind: Kind) -> None:
        """Let go of a collection and all that is in it."""
        self.client.delete_collection(self._name(kind))
        self._opened.pop(kind, None)

    def look_again(self) -> None:
        """Open each collection anew: another process may have made it anew."""
        self._opened.clear()

    def close(self) -> None:
        """Let go of the files of a folder; the next use opens them again."""
        with self._lock:
            if self._path is not None and self._client is not None:
                client: Any = self._client
                client.close()
                self._client = None
            self._opened.clear()

    def filled_with(self, other: str | None) -> StoreError:
        """That another embedder filled it."""
        return StoreError(
            f"{self._whose} was filled with {other!r}: open it with that embedder, not {self._embedder()!r}"
        )

    def _name(self, kind: Kind) -> str:
        return f"{self._prefix}-{kind}"

    def _open(self, kind: Kind) -> Collection:
        collection = self.client.get_or_create_collection(
            self._name(kind),
            metadata={"namespace": self._namespace, "embedder": self._embedder()},
            configuration={"hnsw": {"space": "cosine", "max_neighbors": LINKS, "ef_search": LOOKED_AT}},
            embedding_function=None,
        )
        found = collection.metadata or {}
        if found.get("namespace", self._namespace) != self._namespace:
            raise StoreError(f"{self._whose} would read the memory of {found['namespace']!r}")
        if found.get("embedder") != self._embedder():
            raise self.filled_with(found.get("embedder"))
        return collection

    def _connect(self) -> ClientAPI:
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        if self._path is None:
            return chromadb.EphemeralClient(settings)
        self._path.mkdir(parents=True, exist_ok=True)
        try:
            return chromadb.PersistentClient(str(self._path), settings)
        except BaseException:
            # Chroma would hand out the half-opened folder again, and hide what is wrong with it.
            from chromadb.api.shared_system_client import SharedSystemClient

            SharedSystemClient._identifier_to_system.pop(str(self._path), None)
            raise


def refuse_after_fork() -> None:
    """Raise in a process that was forked after Chroma was opened."""
    global _opened_in
    _opened_in = _opened_in or os.getpid()
    if _opened_in != os.getpid():
        raise StoreError(
            "Chroma was opened before this process was forked, and would hang here: fork first, or use spawn"
        )


def vectors_of(vectors: Sequence[Any]) -> Any:
    """The vectors as Chroma takes them."""
    import numpy as np

    array = np.asarray(vectors, dtype="float32")
    # A zero vector has no cosine with anything.
    array[~array.any(axis=1), 0] = 1.0
    return array
