"""Memory in Chroma, with a ledger beside it: in a folder, in a server, or only as long as the process lives."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4
from weakref import ref

from langgraph_scrum_master.blocking import off_loop
from langgraph_scrum_master.errors import ConfigError, ScrumMasterError, StoreError
from langgraph_scrum_master.logs import logger
from langgraph_scrum_master.memories import MemoryResult
from langgraph_scrum_master.memory.collections import KINDS, Collections, refuse_after_fork, vectors_of
from langgraph_scrum_master.memory.records import (
    BATCH,
    CANDIDATES,
    SEARCHED,
    SHELF,
    Kind,
    Ranked,
    Record,
    RecordMemory,
    embedded,
    linked,
    result_of,
)
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.embedders import EMBEDDERS, embedder_for
from langgraph_scrum_master.shapes import well_formed

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

    from langgraph_scrum_master.memory.check import MemoryCheck
    from langgraph_scrum_master.memory.ledger import Ledger

T = TypeVar("T")

CHANGED = "changed"
"""What clients of one server tell each other in a collection's metadata: another value each time one has written."""

FAILED = "failed"
"""What is taken as heard after a write has failed: nobody tells this, so the server is asked again."""

MARGIN = 300.0
"""Seconds by which the clocks of clients may differ."""

MOST_OTHERS = 64
"""Tenants whose memory in one place is kept open."""

NOTHING: Mapping[str, Any] = MappingProxyType({})

_numbered = count(1)


class ChromaMemory(RecordMemory):
    """A `MemoryStore` in Chroma, with one collection per namespace and kind.

    Without a path it lives as long as the process, and no other instance sees it. Nothing is opened before it is used.
    `spaces` puts models of yours in the place of spaces of ranking, as `{"E10": embeddings}`; E1's is the `embedder`.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        client: ClientAPI | None = None,
        embedder: str | Embedder = "static",
        namespace: str = "default",
        spaces: Mapping[str, Embedder] | None = None,
    ) -> None:
        if path is not None and client is not None:
            raise ConfigError(f"give a path or a client, not both: path is {str(path)!r}")
        if not namespace:
            raise ConfigError(f"namespace must be a non-empty text, got {namespace!r}")
        if isinstance(embedder, str) and embedder not in EMBEDDERS:
            raise ConfigError(
                f"embedder must be among {EMBEDDERS}, or an object with embed_documents, got {embedder!r}"
            )
        self._models = dict(spaces or {})
        _refuse_unknown_spaces(self._models)
        self._path = Path(path) if path is not None else None
        self._embedder_choice = embedder
        self._namespace = namespace
        # Chroma's in-process clients share one database: the number keeps instances apart.
        self._realm = f"process-{next(_numbered)}" if path is None and client is None else "shared"
        self._chroma = Collections(
            self._path,
            client,
            whose=repr(self),
            realm=self._realm,
            namespace=namespace,
            embedder=lambda: type(embedder_for(embedder)).__name__,
        )
        self._others: OrderedDict[str, ChromaMemory] = OrderedDict()
        self._first: Callable[[], ChromaMemory | None] = lambda: None
        self._heard: str | None = None
        self._looked = 0.0
        self._untold = False
        self._ledger: Ledger | None = None
        self._lock = threading.RLock()
        self._naming = threading.Lock()
        self._writing = threading.RLock()

    def __repr__(self) -> str:
        where = str(self._path) if self._path else "client" if self._realm == "shared" else "in process"
        return f"ChromaMemory({where}, namespace={self._namespace!r})"

    @property
    def begun(self) -> bool:
        """Whether there is anything to open: False for a folder, or a namespace in it, that nobody has used yet."""
        return self._ledger_path is None or self._ledger_path.exists() or not self._chroma.absent()

    async def open(self) -> None:
        """Load what the first search would load: the embedder, the ledger, and Chroma if it is needed."""
        if self._ledger is None:
            await self._off_loop(self._search, SEARCHED, "warm", 1, 1)

    def close(self) -> None:
        """Let go of the files of a folder; the next use opens them again."""
        with self._writing, self._lock:
            if self._ledger is not None:
                self._ledger.close()
            self._ledger = None
            self._chroma.close()

    async def put(self, records: Sequence[Record]) -> None:
        """Keep the records, in batches; what is kept already, word for word, is not written again."""
        by_key = {(record.kind, record.key): record for record in map(_well_formed, records)}
        distinct = list(by_key.values())
        for start in range(0, len(distinct), BATCH):
            await self._off_loop(self._upsert, distinct[start : start + BATCH])

    async def drop(self, kind: Kind, keys: Sequence[str]) -> None:
        """Let go of the records with these keys."""
        await self._off_loop(self._delete, kind, list(dict.fromkeys(well_formed(key) for key in keys)))

    async def ranked(self, kinds: Sequence[Kind], query: str, limit: int, k: int | None = None) -> list[Ranked]:
        """The records of these kinds that serve the query best, of the nearest by vectors and by words."""
        return await self._off_loop(self._search, kinds, query, limit, k)

    async def answering(
        self, kinds: Sequence[Kind], need: str, around: Sequence[tuple[str, float]], limit: int, k: int
    ) -> list[Ranked]:
        """The records of these kinds that most likely answer the need."""
        return await self._off_loop(self._search_answers, kinds, need, around, limit, k)

    async def ranked_at_once(
        self, memories: Sequence[RecordMemory], query: str, limit: int, k: int
    ) -> Mapping[RecordMemory, list[Ranked]]:
        """What each of these, all in this place, ranks best by what is rare in all of them, compared all at once."""
        found = await self._off_loop(self._search_beside, memories, SEARCHED, query, limit, k)
        return dict(zip(memories, found, strict=True))

    async def search_by_words(self, query: str, k: int = 5) -> list[MemoryResult]:
        """The same as `search_similar` for a query that cannot be embedded: what needs no vector of it answers."""
        if not query.strip():
            return []
        wanted = (SEARCHED, well_formed(query), CANDIDATES, max(0, k), False)
        (found,) = await self._off_loop(self._search_beside, [self], *wanted)
        return [result_of(*ranked) for ranked in found]

    async def compared(self, query: str, session: str, since: float, limit: int) -> list[Ranked]:
        """The newest records of the session, or made since, newest first, compared with the query."""
        return await self._off_loop(self._compare, query, session, since, limit)

    async def matching(self, query: str, wanted: Mapping[str, str], limit: int) -> list[Ranked]:
        """The memories whose data say all that is wanted, the newest of very many, compared with the query."""
        return await self._off_loop(self._matching, query, wanted, limit)

    async def kept(self, keys: Sequence[str]) -> list[Record]:
        """The memories that are kept under these keys."""
        return await self._off_loop(lambda: self._up_to_date().kept("memory", keys))

    @property
    def namespace(self) -> str:
        """Whose memory it is."""
        return self._namespace

    def for_namespace(self, namespace: str) -> ChromaMemory:
        """The memory of another tenant in the same place; always the same one by its name."""
        found = self._first()
        first = self if found is None else found
        # A lock of its own: the other one is held while Chroma is opened, and this is called on event loops.
        with first._naming:
            if namespace == first._namespace:
                return first
            if namespace not in first._others:
                first._others[namespace] = first._opened_for(namespace)
            first._others.move_to_end(namespace)
            # What lives in the process alone would be gone; the others are opened again when they are asked for.
            if len(first._others) > MOST_OTHERS and first._realm == "shared":
                first._others.popitem(last=False)
            return first._others[namespace]

    def _opened_for(self, namespace: str) -> ChromaMemory:
        other = ChromaMemory(
            self._path,
            client=self._chroma.client if self._served else None,
            embedder=self._embedder_choice,
            namespace=namespace,
            spaces=self._models,
        )
        # Weakly: who holds the first holds all of them.
        other._first = ref(self)
        return other

    def beside(self, name: str) -> ChromaMemory:
        """A memory of its own in the same place, such as that of a project's code; always the same one by its name."""
        return self.for_namespace(f"{self._namespace}{SHELF}{name}")

    async def shelves(self, known: Sequence[str] = ()) -> list[str]:
        """The names of the memories beside this one that are there, also where only Chroma or the ledger is.

        A ledger does not say its name: where Chroma has lost the collections, those that are `known` are looked for.
        """
        return await self._off_loop(self._shelves, known)

    def _shelves(self, known: Sequence[str]) -> list[str]:
        prefix = f"{self._namespace}{SHELF}"
        named = {each.removeprefix(prefix) for each in self._chroma.namespaces() if each.startswith(prefix)}
        return sorted(named | {name for name in known if self._has_ledger(f"{prefix}{name}")})

    def _has_ledger(self, namespace: str) -> bool:
        path = self._opened_for(namespace)._ledger_path
        return path is not None and path.exists()

    async def newest(self, kind: Kind) -> Record | None:
        """The newest record of a kind."""
        # Where nobody else can have written, what was counted last is known without asking.
        alone = self._path is None and not self._served
        if alone and self._ledger is not None and not self._ledger.count(kind):
            return None
        return await self._off_loop(self._newest, kind)

    async def list_all(self, kind: Kind) -> list[Record]:
        """All records of a kind."""
        return await self._off_loop(lambda: [record for record, _ in self._up_to_date().every(kind)])

    async def embedded(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector for each text, as the memory's embedder makes it of the text alone."""
        return await self._off_loop(lambda: embedded(texts, self._embedder))

    async def check(self, *, repair: bool = False) -> MemoryCheck:
        """Whether Chroma has what the ledger says, and finds it; with `repair`, it is filled again where not."""
        return await self._off_loop(self._check, repair)

    async def _off_loop(self, call: Callable[..., T], *args: Any) -> T:
        return await off_loop(self._guarded, call, *args)

    def _guarded(self, call: Callable[..., T], *args: Any) -> T:
        with self._store_errors():
            try:
                return call(*args)
            except Exception as error:
                # Another process made the collection anew, to repair it.
                if type(error).__name__ != "NotFoundError":
                    raise
                self._chroma.look_again()
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

    def _upsert(self, records: Sequence[Record]) -> None:
        with self._writing, self._in_step():
            self._write(self._up_to_date(), records)
            if self._untold:
                self._tell()

    @contextmanager
    def _in_step(self) -> Iterator[None]:
        """Have the server asked again for everything if a write fails: what it has counts, not what was meant."""
        try:
            yield
        except BaseException:
            if self._served:
                self._heard, self._looked = FAILED, 0.0
            raise

    def _write(self, book: Ledger, records: Sequence[Record]) -> None:
        from langgraph_scrum_master.rank.asked import document_vectors
        from langgraph_scrum_master.rank.embedders import StaticEmbedder

        new = [record for record in records if not book.same(record)]
        if not new:
            return
        texts = [record.text for record in new]
        embedder = self._embedder
        # Only the static model needs the counts: another may take long, and must not hold up who reads or writes.
        own = None if isinstance(embedder, StaticEmbedder) else document_vectors(texts, book, embedder)
        self._send(list(zip(new, self._entered(book, new, own), strict=True)))
        if book.embedder is None:
            book.note_embedder(type(embedder).__name__)
        for kind in SEARCHED if self._models else ():
            if numbers := [i for i, _ in book.keyed(kind, [record.key for record in new if record.kind == kind])]:
                for space, model in self._models.items():
                    book.modelled.vectors(numbers, space, model)

    def _entered(self, book: Ledger, records: Sequence[Record], vectors: Any) -> list[Any]:
        """Write the records into the ledger, with these vectors, or else with the static model's; gives the vectors."""
        from langgraph_scrum_master.rank.asked import meaning_vectors
        from langgraph_scrum_master.rank.features import features_of

        texts = [record.text for record in records]
        features = features_of(texts, [linked(record) for record in records], [record.key for record in records])

        def made() -> tuple[Any, Any]:
            meanings = meaning_vectors(texts, book, self._embedder)
            return (meanings if vectors is None else vectors), meanings

        return book.write(records, features, made)

    def _send(self, rows: Sequence[tuple[Record, Any]]) -> None:
        """Give Chroma what the ledger has as pending."""
        from langgraph_scrum_master.memory.ledger import DONE

        self._untold = self._served
        written = {"written": time.time()} if self._served else {}
        for kind in KINDS:
            own = [(record, vector) for record, vector in rows if record.kind == kind]
            for start in range(0, len(own), BATCH):
                part = own[start : start + BATCH]
                self._chroma.of(kind).upsert(
                    ids=[record.key for record, _ in part],
                    documents=[record.text for record, _ in part],
                    embeddings=vectors_of([vector for _, vector in part]),
                    metadatas=[{"data": json.dumps(record.data), **written} for record, _ in part],
                )
                self._book.mark(kind, [record.key for record, _ in part], DONE)
        if rows:
            self._tell()

    def _delete(self, kind: Kind, keys: Sequence[str]) -> None:
        from langgraph_scrum_master.memory.ledger import LEAVING

        with self._writing, self._in_step():
            book = self._up_to_date()
            if book.has(kind, keys):
                book.mark(kind, keys, LEAVING)
                self._untold = self._served
                self._chroma.of(kind).delete(ids=list(keys))
                book.remove(kind, keys)
                self._tell()

    def _search(self, kinds: Sequence[Kind], query: str, limit: int, k: int | None) -> list[Ranked]:
        (found,) = self._search_beside([self], kinds, query, limit, k)
        return found

    def _search_beside(
        self,
        memories: Sequence[ChromaMemory],
        kinds: Sequence[Kind],
        query: str,
        limit: int,
        k: int | None,
        embed: bool = True,
    ) -> list[list[Ranked]]:
        from langgraph_scrum_master.memory.search import Book, search

        books = [Book(memory._up_to_date(), memory._nearest) for memory in memories]
        embedder, models = (self._embedder, self._models) if embed else (None, {})
        return search(books, embedder, kinds, query, limit, k, models)

    def _search_answers(
        self, kinds: Sequence[Kind], need: str, around: Sequence[tuple[str, float]], limit: int, k: int
    ) -> list[Ranked]:
        from langgraph_scrum_master.memory.search import Book, search_answers

        book = Book(self._up_to_date(), self._nearest)
        return search_answers(book, self._embedder, kinds, need, around, limit, k, self._models)

    def _compare(self, query: str, session: str, since: float, limit: int) -> list[Ranked]:
        from langgraph_scrum_master.memory.search import compare

        book = self._up_to_date()
        return compare(book, self._embedder, query, book.newest(SEARCHED, limit, session, since), self._models)

    def _matching(self, query: str, wanted: Mapping[str, str], limit: int) -> list[Ranked]:
        from langgraph_scrum_master.memory.search import compare

        book = self._up_to_date()
        return compare(book, self._embedder, query, book.matching("memory", wanted, limit), self._models)

    def _newest(self, kind: Kind) -> Record | None:
        book = self._up_to_date()
        rows = book.newest((kind,), 1)
        return book.records([rows[0].id]).get(rows[0].id) if rows else None

    def _up_to_date(self) -> Ledger:
        """The ledger with what other processes, or other clients of a server, have written."""
        book = self._book
        book.refresh()
        if self._served:
            told = self._told()
            if told != self._heard or self._chroma.of("memory").count() != book.count("memory"):
                self._follow()
                self._heard = told
        return book

    @property
    def _served(self) -> bool:
        """Whether other clients may write to the same Chroma, each with a ledger of its own."""
        return self._path is None and self._realm == "shared"

    def _told(self) -> str | None:
        """What the client that wrote last has told the others."""
        return self._chroma.metadata("memory").get(CHANGED)

    def _tell(self) -> None:
        """Let other clients know that something has changed."""
        if self._served:
            others, told = self._told(), uuid4().hex
            collection = self._chroma.of("memory")
            collection.modify(metadata={**(collection.metadata or {}), CHANGED: told})
            # Whoever wrote meanwhile is followed at the next search.
            self._heard = told if others == self._heard else self._heard
            self._untold = False

    def _follow(self) -> None:
        """Take over what other clients have written, changed or deleted since this one looked."""
        with self._writing:
            since, now = self._looked - MARGIN, time.time()
            for kind in KINDS:
                self._fill_from_chroma((kind,), {"where": {"written": {"$gte": since}}})
                if self._chroma.of(kind).count() != self._book.count(kind):
                    self._fill_from_chroma((kind,))
                    there = set(self._chroma.keys(kind))
                    gone = [record.key for record, _ in self._book.every(kind) if record.key not in there]
                    self._book.remove(kind, gone)
            self._looked = now

    def _nearest(self, kind: Kind, vector: Any, limit: int) -> list[tuple[int, float]]:
        from langgraph_scrum_master.memory.vectors import MOST_NUMBERS

        book = self._book
        if book.count(kind) * len(vector) <= MOST_NUMBERS:
            return book.nearest(kind, vector, limit)
        cosines = dict(self._chroma.nearest(kind, vector, limit))
        return [(number, cosines[key]) for number, key in book.keyed(kind, list(cosines))]

    def _check(self, repair: bool) -> MemoryCheck:
        from langgraph_scrum_master.memory.check import check
        from langgraph_scrum_master.memory.ledger import PENDING

        with self._writing:
            self._looked, self._heard = 0.0, FAILED
            book = self._up_to_date()
            found = check(book, self._chroma.keys, self._chroma.nearest)
            if not repair or found.sound:
                return found
            # What only Chroma has is somebody's memory too.
            self._fill_from_chroma()
            repaired = 0
            for kind in found.damaged:
                rows = book.every(kind)
                # A crash from here on is repaired at the next start.
                book.mark(kind, [record.key for record, _ in rows], PENDING)
                # A server's collection stays: others may be writing to it.
                if not self._served:
                    self._chroma.delete(kind)
                self._send(rows)
                repaired += len(rows)
        return replace(found, repaired=repaired)

    @property
    def _book(self) -> Ledger:
        """The ledger, opened at the first use and brought in line with Chroma.

        Where they are in line already Chroma is not even loaded, for that takes longer than all else together.
        """
        refuse_after_fork()
        with self._lock:
            if self._ledger is None:
                self._ledger = self._opened_ledger()
            return self._ledger

    def _opened_ledger(self) -> Ledger:
        from langgraph_scrum_master.memory.ledger import LEAVING, PENDING, Ledger

        path = self._ledger_path
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._ledger = ledger = Ledger(path)
        try:
            if pending := ledger.unsettled(PENDING):
                self._send(pending)
            leaving = ledger.unsettled(LEAVING)
            for record, _ in leaving:
                self._delete(record.kind, [record.key])
            if settled := len(pending) + len(leaving):
                logger.warning("memory.repaired", memory=repr(self), records=settled)
            if not ledger.complete:
                for record, state in ledger.unfinished:
                    if state == LEAVING:
                        self._chroma.of(record.kind).delete(ids=[record.key])
                self._looked = time.time()
                if not self._chroma.absent():
                    self._fill_from_chroma()
                self._upsert([record for record, state in ledger.unfinished if state == PENDING])
                ledger.completed()
            self._refuse_other_embedder(ledger)
        except BaseException:
            ledger.close()
            self._ledger = None
            raise
        return ledger

    @property
    def _ledger_path(self) -> Path | None:
        return self._path / f"ledger-{digest(self._realm, self._namespace)}.sqlite3" if self._path else None

    def _refuse_other_embedder(self, ledger: Ledger) -> None:
        if not ledger.size:
            return
        noted, embedder = ledger.embedder, type(self._embedder).__name__
        if noted is None:
            # Chroma has it noted, and refuses another.
            self._chroma.of("memory")
            ledger.note_embedder(embedder)
        elif noted != embedder:
            raise self._chroma.filled_with(noted)

    def _fill_from_chroma(self, kinds: Sequence[Kind] = KINDS, some: Mapping[str, Any] = NOTHING) -> None:
        """Write into the ledger what others, or an earlier version, put into Chroma, or changed there."""
        from langgraph_scrum_master.memory.ledger import DONE

        for kind in kinds:
            # A server's word counts; beside a folder, what is about to be given to Chroma does.
            own = set() if self._served else self._book.unsettled_keys(kind)
            for page in self._chroma.pages(kind, some):
                rows = zip(page["ids"], page["documents"] or [], page["metadatas"] or [], strict=True)
                records = [_record(kind, *row) for row in rows]
                new = [i for i, record in enumerate(records) if record.key not in own and not self._book.same(record)]
                if new:
                    entered = [records[i] for i in new]
                    self._entered(self._book, entered, vectors_of([page["embeddings"][i] for i in new]))
                    self._book.mark(kind, [record.key for record in entered], DONE)

    @property
    def _embedder(self) -> Embedder:
        return embedder_for(self._embedder_choice)


def _record(kind: Kind, key: str, text: str, metadata: Any) -> Record:
    return Record(kind=kind, key=key, text=text, data=json.loads(metadata["data"]))


def _well_formed(record: Record) -> Record:
    key, text = well_formed(record.key), well_formed(record.text)
    return record if (key, text) == (record.key, record.text) else replace(record, key=key, text=text)


def _refuse_unknown_spaces(models: Mapping[str, Embedder]) -> None:
    # As in rank/spaces, which is too much to load here.
    known = [f"E{i}" for i in range(5, 14)]
    hints = {"E1": "give the model of E1 as `embedder`"} | dict.fromkeys(("E2", "E3", "E4"), "it counts nothing")
    for space, model in models.items():
        if space not in known:
            hint = hints.get(space, f"it must be among {known}")
            raise ConfigError(f"spaces has a model for {space!r}: {hint}")
        if not (hasattr(model, "embed_documents") and hasattr(model, "embed_query")):
            raise ConfigError(
                f"the model for {space} must have embed_documents and embed_query, got {type(model).__name__}"
            )
