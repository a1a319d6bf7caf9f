"""One shelf of one tenant: cached corpus statistics, and the reads of ranking."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from langgraph_scrum_master.errors import EmbeddingError
from langgraph_scrum_master.memory.candidates import NO_ROWS, CandidateCache, CandidateRows
from langgraph_scrum_master.memory.database import FOREVER, Database, ShelfRow, Statements
from langgraph_scrum_master.memory.records import SEARCHED, Kind, Record
from langgraph_scrum_master.memory.statistics import Statistics
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.features import Array, number, vocabulary
from langgraph_scrum_master.rank.query import packed_vector, unit_vectors

MOST_POSTINGS = 250
"""Postings read per term, newest first: a term with more postings says little."""

ENOUGH_POSTINGS = 750
"""Postings after which query terms with a lower idf are skipped."""

COUNT_BATCH = 4_096
"""Records per step when statistics are updated."""

MOST_TERMS = 2_048
"""Terms with cached postings."""

_EVERY = 1_000_000_000
"""No limit."""

_NO_POSTINGS: Array = np.zeros(0, "int64")

PROBE = "What does the team know?"
"""A text whose vector identifies a model."""


class Shelf:
    """A shelf with caches for ranking, which are dropped after a write to the shelf."""

    def __init__(self, database: Database, tenant: str, name: str) -> None:
        self._database = database
        self.tenant = tenant
        self.name = name
        self._lock = threading.RLock()
        self._version: object = None
        self._identity: object = None
        self._row: ShelfRow | None = None
        self.statistics = Statistics(self._words_of)
        self._candidates = CandidateCache()
        self._postings: dict[tuple[int, tuple[Kind, ...] | None], Array] = {}
        self._models: dict[int, str] = {}

    @property
    def row(self) -> ShelfRow | None:
        """The row of the shelf at the last refresh; None if the shelf does not exist."""
        return self._row

    def refresh(self) -> Shelf:
        """Catch up with what was committed since the last refresh."""
        with self._lock:
            identity = self._database.identity
            if identity != self._identity:
                self._identity, self._version = identity, None
                self._row, self.statistics = None, Statistics(self._words_of)
                self._candidates, self._postings = CandidateCache(), {}
            version = self._database.version()
            if self._version is None or version != self._version:
                with self._database.reading() as statements:
                    self._update(statements, statements.shelf(self.tenant, self.name))
                self._version = version
        return self

    def count(self, kind: Kind) -> int:
        """The number of records of a kind."""
        return self.statistics.kinds.get(kind, 0)

    def check_dimensions(self, vector: Array) -> None:
        """Raise if a query's vector has another length than the stored ones."""
        if self._row is not None and self._row.dimensions not in (0, len(vector)):
            raise wrong_dimensions(self._row.dimensions, len(vector))

    def lexical(self, kinds: Sequence[Kind], terms: Array, weights: Array, limit: int) -> dict[int, float]:
        """The ids of the records with the highest share of the terms by weight, and the share.

        Only the terms with the highest idf are looked up.
        """
        if self._row is None:
            return {}
        # A filter by kind costs as much as a term, and most shelves have only one kind.
        only = None if all(kind in kinds for kind in SEARCHED if self.count(kind)) else tuple(kinds)
        order = np.argsort(-weights, kind="stable")
        # As many of the terms with the highest idf as have enough postings together.
        total = np.cumsum(np.minimum(self.statistics.term_counts(terms[order]), MOST_POSTINGS))
        order = order[: int(np.searchsorted(total, ENOUGH_POSTINGS)) + 1]
        if not len(order):
            return {}
        postings = self._postings_of(terms[order].tolist(), only)
        shares = np.repeat(weights[order] / weights.sum(), [len(each) for each in postings])
        ids, inverse = np.unique(np.concatenate(postings), return_inverse=True)
        share = np.bincount(inverse, weights=shares, minlength=len(ids))
        best = np.lexsort((-ids, -share))[:limit]
        return dict(zip(ids[best].tolist(), share[best].tolist(), strict=True))

    def nearest(self, kind: Kind, vector: Array, limit: int) -> list[tuple[int, float]]:
        """The ids of the records whose vectors are nearest, with their cosines."""
        if self._row is None or not self.count(kind):
            return []
        with self._database.reading() as statements:
            return statements.nearest(self._row, kind, vector, limit)

    def rows(self, ids: Sequence[int], kinds: Sequence[Kind]) -> CandidateRows:
        """The records with these ids, if of these kinds."""
        return self._candidates.rows(ids, kinds, self._read_rows) if self._row is not None else NO_ROWS

    def drop_candidates(self) -> None:
        """Free the memory of cached records."""
        self._candidates.clear()

    def records(self, ids: Sequence[int]) -> dict[int, Record]:
        """The records with these ids, as they were stored."""
        if self._row is None or not ids:
            return {}
        with self._database.reading() as statements:
            return statements.records(self._row.id, ids)

    def keyed(self, kind: Kind, keys: Sequence[str]) -> list[Record]:
        """The records with these keys."""
        if self._row is None or not keys:
            return []
        with self._database.reading() as statements:
            ids = statements.keyed(self._row.id, kind, keys)
        return list(self.records(list(ids.values())).values())

    def every(self, kind: Kind) -> list[Record]:
        """All records of a kind, in insertion order."""
        if self._row is None or not self.count(kind):
            return []
        with self._database.reading() as statements:
            ids = statements.ids(self._row.id, kind)
        found = self.records(ids)
        return [found[each] for each in ids if each in found]

    def around(self, positions: Sequence[tuple[str, int]], names: Sequence[int]) -> set[int]:
        """The ids of the records at these positions of their sessions, and of those with these names."""
        if self._row is None:
            return set()
        with self._database.reading() as statements:
            return statements.around(self._row.id, positions, names)

    def newest(
        self, kinds: Sequence[Kind], limit: int, session: str = "", since: float = 0.0, until: float = FOREVER
    ) -> CandidateRows:
        """The newest records of these kinds, created between two times or in the session, newest first."""
        if self._row is None:
            return NO_ROWS
        with self._database.reading() as statements:
            shelf = self._row.id
            found = {each for kind in kinds for each in statements.newest(shelf, kind, limit, since, until)}
            if session:
                found.update(statements.newest_of_session(shelf, session, limit))
        return self.rows(sorted(found), kinds).newest_first().take(slice(limit))

    def matching(self, kind: Kind, wanted: Mapping[str, str], limit: int) -> CandidateRows:
        """The newest records of a kind whose metadata have all of these values."""
        if self._row is None:
            return NO_ROWS
        with self._database.reading() as statements:
            ids = statements.with_facets(self._row.id, kind, facets_of(wanted), limit)
        return self.rows(self._with_values(ids, wanted), (kind,)).newest_first()

    def select(
        self, kind: Kind, agent: str, wanted: Mapping[str, str], since: float, until: float, limit: int
    ) -> CandidateRows:
        """The newest records of a kind with these values, created between two times, optionally by an agent."""
        if self._row is None:
            return NO_ROWS
        with self._database.reading() as statements:
            ids = statements.newest(self._row.id, kind, _EVERY if wanted else limit, since, until, agent)
            if wanted:
                matching = set(statements.with_facets(self._row.id, kind, facets_of(wanted), _EVERY))
                ids = [each for each in ids if each in matching][:limit]
        return self.rows(self._with_values(ids, wanted), (kind,)).newest_first()

    def model_vectors(self, ids: Sequence[int], space: str, model: Embedder) -> Array:
        """The vectors of records from a model that replaces a space, computed on first use."""
        name = f"{space} {self._model_name(model)}"
        if self._row is None:
            return np.zeros((0, 0), "float32")
        with self._database.reading() as statements:
            vectors = statements.model_vectors(self._row.id, name, ids)
        if missing := [each for each in ids if each not in vectors]:
            vectors |= self._embed(missing, name, model)
        return np.stack([np.frombuffer(vectors[each], dtype="<f2") for each in ids]).astype("float32")

    def notes(self, book: str, keys: Sequence[str] | None) -> dict[str, object]:
        """The notes in a book of this shelf."""
        if self._row is None:
            return {}
        with self._database.reading() as statements:
            return statements.notes(self._row.id, book, keys)

    def _read_rows(self, ids: Sequence[int]) -> list[tuple[Any, ...]]:
        assert self._row is not None
        with self._database.reading() as statements:
            return statements.rows(self._row.id, ids)

    def _with_values(self, ids: Sequence[int], wanted: Mapping[str, str]) -> list[int]:
        """The records whose metadata have all of these values. Facets are hashes, so two values may collide."""
        if not wanted:
            return list(ids)
        records = self.records(ids)
        return [each for each in ids if each in records and has_values(records[each], wanted)]

    def _embed(self, ids: Sequence[int], name: str, model: Embedder) -> dict[int, bytes]:
        assert self._row is not None
        with self._database.reading() as statements:
            texts = statements.texts(self._row.id, ids)
        # A record that has just been deleted gets the vector of an empty text.
        vectors = unit_vectors([texts.get(each, "") for each in ids], model)
        packed = {each: packed_vector(vector) for each, vector in zip(ids, vectors, strict=True)}
        # If another process is writing, or the file is read-only, the next search computes them again.
        with suppress(Exception), self._database.writing(self.tenant, self.name, wait=False) as (writing, row):
            current = writing.texts(row.id, list(texts))
            unchanged = {each: packed[each] for each, text in current.items() if text == texts[each]}
            writing.save_model_vectors(row.id, name, unchanged)
        return packed

    def _model_name(self, model: Embedder) -> str:
        # The vector of a fixed text distinguishes two models of one class.
        if id(model) not in self._models:
            vector = np.asarray(model.embed_query(PROBE), dtype="float32")
            self._models[id(model)] = f"{type(model).__name__}-{digest(packed_vector(vector).hex())}"
        return self._models[id(model)]

    def _postings_of(self, terms: Sequence[int], kinds: tuple[Kind, ...] | None) -> list[Array]:
        assert self._row is not None
        cached = self._postings
        if missing := [term for term in terms if (term, kinds) not in cached]:
            with self._database.reading() as statements:
                read = statements.postings(self._row.id, missing, kinds, MOST_POSTINGS)
            with self._lock:
                if len(cached) > MOST_TERMS:
                    cached.clear()
                cached.update(((term, kinds), found) for term, found in zip(missing, read, strict=True))
        return [cached.get((term, kinds), _NO_POSTINGS) for term in terms]

    def _update(self, statements: Statements, row: ShelfRow | None) -> None:
        before = self._row
        if row == before:
            return
        if row is None or before is None or (row.id, row.epoch) != (before.id, before.epoch):
            statistics = Statistics(self._words_of)
            if row is not None and (saved := statements.statistics(row.id)) is not None:
                statistics.load(saved)
        else:
            statistics = self.statistics
        self._row = row
        if row is not None:
            count_new(statistics, statements, row)
        # Assigned last: a search in another thread continues with the former statistics.
        self.statistics = statistics
        self._candidates, self._postings = CandidateCache(), {}

    def _words_of(self, ids: Sequence[int]) -> dict[int, str]:
        if self._row is None:
            return {}
        with self._database.reading() as statements:
            return words_of(statements, self._row.id, ids)


def count_new(statistics: Statistics, statements: Statements, shelf: ShelfRow) -> None:
    """Count the records that are newer than the statistics."""
    new = statements.feature_rows(shelf, statistics.watermark)
    for start in range(0, len(new), COUNT_BATCH):
        statistics.count_records(new[start : start + COUNT_BATCH])
    statistics.watermark = max(statistics.watermark, shelf.last)


def words_of(statements: Statements, shelf: int, ids: Sequence[int]) -> dict[int, str]:
    """The words of these records, by term."""
    words: dict[int, str] = {}
    # In the order of ids, because the first of several words for a term wins.
    for _, text in sorted(statements.texts(shelf, ids).items()):
        words = vocabulary(text) | words
    return words


def facets_of(data: Mapping[str, object]) -> list[int]:
    """The facets of a record: hashes of its text metadata."""
    return [number(f"{name}={value}") for name, value in data.items() if isinstance(value, str)]


def has_values(record: Record, wanted: Mapping[str, str]) -> bool:
    """Whether the record's metadata have all of these values."""
    return all(record.data.get(name) == value for name, value in wanted.items())


def wrong_dimensions(stored: int, given: int) -> EmbeddingError:
    """The error for vectors of another length than the stored ones."""
    return EmbeddingError(
        f"the memory has vectors of {stored} dimensions, the embedder returns {given}: open it with the embedder that "
        "it was filled with"
    )
