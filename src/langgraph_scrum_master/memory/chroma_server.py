"""Memory in a Chroma server, which stores the documents and searches their vectors."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langgraph_scrum_master._internal.shapes import storable
from langgraph_scrum_master.errors import ConfigError, StoreError
from langgraph_scrum_master.memory.external import ForeignBackend
from langgraph_scrum_master.memory.records import SEARCHED, Kind, Record, agent_of, created_of, session_of
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.embedders import EMBEDDERS, embedder_for

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

LINKS, EF_SEARCH = 24, 400
"""HNSW parameters `max_neighbors` and `ef_search`, above Chroma's defaults for better recall."""

_PAGE = 1_000
"""Records per request."""

LONGEST_VALUE = 64
"""Characters up to which a metadata value is stored for filters."""

MOST_NAMES = 4
"""Names in a query that are searched by substring."""

_WORD = re.compile(r"[\w.\-]+")
_IN_NAME = re.compile(r"\d|\w[_\-.]\w")
"""Words that embeddings represent badly: identifiers, numbers, versions."""


class ChromaServerBackend(ForeignBackend):
    """One shelf of one tenant in a Chroma server, with a collection for each kind of record."""

    def __init__(self, client: ClientAPI, tenant: str, shelf: str = "", *, embedder: str | Embedder = "static") -> None:
        if isinstance(embedder, str) and embedder not in EMBEDDERS:
            raise ConfigError(
                f"embedder must be among {EMBEDDERS}, or an object with embed_documents, got {embedder!r}"
            )
        self.client = client
        self.tenant = tenant
        self.shelf = shelf
        self.embedder = embedder
        self._collections: dict[str, Collection] = {}
        self._lock = threading.Lock()

    @property
    def place(self) -> str:
        """The location, for error messages."""
        return "Chroma server"

    def elsewhere(self, tenant: str, shelf: str) -> ChromaServerBackend:
        """Another shelf or tenant in the same server."""
        return ChromaServerBackend(self.client, tenant, shelf, embedder=self.embedder)

    def put(self, records: Sequence[Record]) -> None:
        """Store the records, kind by kind."""
        written = time.time()
        for kind in dict.fromkeys(record.kind for record in records):
            own = [record for record in records if record.kind == kind]
            vectors = self._vectors([record.text for record in own]) if kind in SEARCHED else _dummy_vectors(len(own))
            # Strictly increasing within the batch, to preserve its order.
            metadatas: Any = [_metadata(record, written + i * 1e-6) for i, record in enumerate(own)]
            self._collection(kind).upsert(
                ids=[record.key for record in own],
                documents=[record.text for record in own],
                embeddings=vectors,
                metadatas=metadatas,
            )

    def drop(self, kinds: Sequence[Kind], keys: Sequence[str]) -> None:
        """Remove the records, kind by kind."""
        for kind in kinds:
            self._collection(kind).delete(ids=list(keys))

    def keyed(self, keys: Sequence[str]) -> list[Record]:
        """The memories with these keys."""
        return _records("memory", self._collection("memory").get(ids=list(keys))) if keys else []

    def newest(self, kind: Kind) -> Record | None:
        """The newest record of a kind."""
        return next(iter(self._newest_first(kind, {})), None)

    def every(self, kind: Kind) -> list[Record]:
        """All records of a kind."""
        return [record for page in self._pages(kind, {}) for record in _records(kind, page)]

    def nearest(self, kind: Kind, query: str, limit: int) -> list[Record]:
        """The nearest by the query's vector, and documents that contain names from the query."""
        collection = self._collection(kind)
        (vector,) = self._vectors([query])
        found: Any = collection.query(query_embeddings=[vector], n_results=limit)
        first = {name: each[0] for name in ("ids", "documents", "metadatas") if (each := found.get(name))}
        records = {record.key: record for record in _records(kind, first)}
        if len(records) < limit:
            # A small collection, whose HNSW index may have lost some after updates.
            records |= {record.key: record for record in _records(kind, collection.get(limit=limit))}
        for name in [word for word in dict.fromkeys(_WORD.findall(query)) if _IN_NAME.search(word)][:MOST_NAMES]:
            named = collection.get(where_document={"$contains": name}, limit=limit)
            records |= {record.key: record for record in _records(kind, named)}
        return list(records.values())

    def since(self, kind: Kind, session: str, since: float) -> list[Record]:
        """The records of the session, or created since, newest first."""
        wanted: dict[str, Any] = {"created": {"$gte": since}}
        return self._newest_first(kind, {"$or": [wanted, {"session": session}]} if session else wanted)

    def having(self, kind: Kind, wanted: Mapping[str, str]) -> list[Record]:
        """The records whose metadata have these values, newest first."""
        short = [
            {storable(f"data.{name}"): storable(value)} for name, value in wanted.items() if len(value) <= LONGEST_VALUE
        ]
        where: dict[str, Any] = {"$and": short} if len(short) > 1 else short[0] if short else {}
        found = self._newest_first(kind, where)
        return [record for record in found if all(record.data.get(name) == value for name, value in wanted.items())]

    def decisions_by_agent(self, agent_type: str, limit: int) -> list[Record]:
        """The decisions of an agent."""
        return self._newest_first("decision", {"agent": agent_type})

    def patterns_by_type(self, pattern_type: str) -> list[Record]:
        """The patterns of a type."""
        return self.having("pattern", {"pattern_type": pattern_type})[::-1]

    def notes(self, book: str, keys: Sequence[str] | None) -> dict[str, Any]:
        """The notes in a book."""
        collection = self._collection("note")
        if keys is not None and not keys:
            return {}
        given: dict[str, Any] = {"ids": [_note_id(book, key) for key in keys]} if keys is not None else {}
        found = collection.get(where={"book": book}, **given)
        rows = zip(found["documents"] or [], found["metadatas"] or [], strict=True)
        return {str(metadata["key"]): json.loads(document) for document, metadata in rows}

    def save_notes(self, book: str, notes: Mapping[str, Any]) -> None:
        """Write notes into a book."""
        collection = self._collection("note")
        if removed := [_note_id(book, key) for key, value in notes.items() if value is None]:
            collection.delete(ids=removed)
        saved = {key: json.dumps(value) for key, value in notes.items() if value is not None}
        for start in range(0, len(saved), _PAGE):
            part = list(saved.items())[start : start + _PAGE]
            collection.upsert(
                ids=[_note_id(book, key) for key, _ in part],
                documents=[value for _, value in part],
                embeddings=_dummy_vectors(len(part)),
                metadatas=[{"book": book, "key": key} for key, _ in part],
            )

    def _newest_first(self, kind: Kind, where: Mapping[str, Any]) -> list[Record]:
        found = [
            (record, metadata["written"])
            for page in self._pages(kind, where)
            for record, metadata in zip(_records(kind, page), page["metadatas"] or [], strict=True)
        ]
        return [record for record, _ in sorted(found, key=lambda pair: (created_of(pair[0]), pair[1]), reverse=True)]

    def _pages(self, kind: Kind, where: Mapping[str, Any]) -> list[Any]:
        pages: list[Any] = []
        filters: dict[str, Any] = {"where": dict(where)} if where else {}
        while not pages or len(pages[-1]["ids"]) == _PAGE:
            pages.append(self._collection(kind).get(limit=_PAGE, offset=_PAGE * len(pages), **filters))
        return pages

    def _vectors(self, texts: Sequence[str]) -> list[Any]:
        vectors = self.embedded(texts)
        for vector in vectors:
            # A zero vector has no cosine with anything.
            vector[0] = vector[0] if any(vector) else 1.0
        return vectors

    def _collection(self, kind: str) -> Collection:
        with self._lock:
            if kind not in self._collections:
                self._collections[kind] = self._open_collection(kind)
            return self._collections[kind]

    def _open_collection(self, kind: str) -> Collection:
        embedder = type(embedder_for(self.embedder)).__name__
        owner = {"namespace": self.tenant, "shelf": self.shelf, "kind": kind}
        collection = self.client.get_or_create_collection(
            f"scrum-master-{digest(self.tenant, self.shelf)}-{kind}",
            metadata={**owner, "embedder": embedder},
            configuration={"hnsw": {"space": "cosine", "max_neighbors": LINKS, "ef_search": EF_SEARCH}},
            embedding_function=None,
        )
        found = collection.metadata or {}
        if any(found.get(name) != value for name, value in owner.items()):
            raise StoreError(
                f"the collection {collection.name!r} belongs to {found.get('namespace')!r}, not to {owner}"
            )
        if found.get("embedder") != embedder:
            raise StoreError(
                f"the memory was filled with {found.get('embedder')!r}: open it with that embedder, not {embedder!r}"
            )
        return collection


def _dummy_vectors(count: int) -> list[Any]:
    """Vectors for documents that are not searched."""
    return [[1.0]] * count


def _note_id(book: str, key: str) -> str:
    return f"{len(book)} {book} {key}"


def _metadata(record: Record, written: float) -> dict[str, Any]:
    """The metadata of a record in the server. Short values are stored separately, for filters."""
    short = {
        storable(f"data.{name}"): storable(value)
        for name, value in record.data.items()
        if isinstance(value, str) and len(value) <= LONGEST_VALUE
    }
    where = {"session": session_of(record), "created": created_of(record), "agent": agent_of(record)}
    return {**short, **where, "written": written, "data": json.dumps(record.data)}


def _records(kind: Kind, page: Mapping[str, Any]) -> list[Record]:
    rows = zip(page.get("ids") or [], page.get("documents") or [], page.get("metadatas") or [], strict=True)
    return [
        Record(kind=kind, key=key, text=text, data=json.loads(str(metadata["data"]))) for key, text, metadata in rows
    ]
