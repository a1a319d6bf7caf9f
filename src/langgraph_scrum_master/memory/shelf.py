"""One shelf of one tenant: its statistics, kept up to date, and what ranking reads of its records."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice

import numpy as np

from langgraph_scrum_master.errors import EmbeddingError
from langgraph_scrum_master.memory.database import FOREVER, Database, Row, ShelfRow, Statements
from langgraph_scrum_master.memory.records import SEARCHED, Kind, Record
from langgraph_scrum_master.memory.statistics import Statistics
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.features import Array, number, vocabulary
from langgraph_scrum_master.rank.query import packed_vector, unit_vectors

MOST_POSTINGS = 250
"""Records of a term that are looked at, the newest: a term of more records tells little."""

ENOUGH_POSTINGS = 750
"""Records after which the less rare terms of a query are left out."""

MOST_ROWS = 6_144
"""Rows that are cached, about 2 kB each."""

COUNTED = 4_096
"""Records that are counted at once."""

MOST_TERMS = 2_048
"""Terms whose postings are cached."""

_EVERY = 1_000_000_000
"""As many as there are."""

_NOWHERE: Array = np.zeros(0, "int64")

PROBE = "What does the team know?"
"""A text whose vector identifies a model."""


class Shelf:
    """A shelf as ranking sees it. Everything that is cached is dropped when somebody writes to the shelf."""

    def __init__(self, database: Database, tenant: str, name: str) -> None:
        self._database = database
        self.tenant = tenant
        self.name = name
        self._lock = threading.RLock()
        self._version: object = None
        self._identity: object = None
        self._row: ShelfRow | None = None
        self.statistics = Statistics(self._words_of)
        self._rows: dict[int, Row] = {}
        self._postings: dict[tuple[int, tuple[Kind, ...] | None], Array] = {}
        self._models: dict[int, str] = {}

    @property
    def row(self) -> ShelfRow | None:
        """What the database knew of the shelf when it was last looked at; None if it was not there."""
        return self._row

    def refresh(self) -> Shelf:
        """Take in what was committed since the last time."""
        with self._lock:
            identity = self._database.identity
            if identity != self._identity:
                self._identity, self._version = identity, None
                self._row, self.statistics = None, Statistics(self._words_of)
                self._rows, self._postings = {}, {}
            version = self._database.version()
            if self._version is None or version != self._version:
                with self._database.reading() as statements:
                    self._follow(statements, statements.shelf(self.tenant, self.name))
                self._version = version
        return self

    def count(self, kind: Kind) -> int:
        """Records of a kind."""
        return self.statistics.kinds.get(kind, 0)

    def check_dimensions(self, vector: Array) -> None:
        """Raise if a query's vector is not as long as those that are kept."""
        if self._row is not None and self._row.dimensions not in (0, len(vector)):
            raise wrong_dimensions(self._row.dimensions, len(vector))

    def lexical(self, kinds: Sequence[Kind], terms: Array, weights: Array, limit: int) -> dict[int, float]:
        """The records of these kinds that have most of the terms by weight, with the share; the rarest terms count."""
        if self._row is None:
            return {}
        # Most shelves have one kind that is searched: asking for it would cost as much as for the term.
        some = None if all(kind in kinds for kind in SEARCHED if self.count(kind)) else tuple(kinds)
        order = np.argsort(-weights, kind="stable")
        # As many of the rarest terms as have enough records together.
        many = np.cumsum(np.minimum(self.statistics.term_counts(terms[order]), MOST_POSTINGS))
        order = order[: int(np.searchsorted(many, ENOUGH_POSTINGS)) + 1]
        if not len(order):
            return {}
        found = self._postings_of(terms[order].tolist(), some)
        shares = np.repeat(weights[order] / weights.sum(), [len(rows) for rows in found])
        rows, whose = np.unique(np.concatenate(found), return_inverse=True)
        held = np.bincount(whose, weights=shares, minlength=len(rows))
        best = np.lexsort((-rows, -held))[:limit]
        return dict(zip(rows[best].tolist(), held[best].tolist(), strict=True))

    def nearest(self, kind: Kind, vector: Array, limit: int) -> list[tuple[int, float]]:
        """The ids of the records whose vectors are nearest, with their cosines."""
        if self._row is None or not self.count(kind):
            return []
        with self._database.reading() as statements:
            return statements.nearest(self._row, kind, vector, limit)

    def rows(self, ids: Sequence[int], kinds: Sequence[Kind]) -> list[Row]:
        """The records with these ids, if of these kinds."""
        if self._row is None:
            return []
        # What another thread finds changed meanwhile has a cache of its own.
        known = self._rows
        with self._lock:
            missing = [each for each in ids if each not in known]
        if missing:
            with self._database.reading() as statements:
                fresh = statements.rows(self._row.id, missing)
        with self._lock:
            if missing:
                known.update((row.id, row) for row in fresh)
            found = [row for each in ids if (row := known.get(each)) and row.kind in kinds]
            for oldest in list(islice(known, max(0, len(known) - MOST_ROWS))):
                del known[oldest]
            return found

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
        """All records of a kind, in the order in which they were written."""
        if self._row is None or not self.count(kind):
            return []
        with self._database.reading() as statements:
            ids = statements.ids(self._row.id, kind)
        found = self.records(ids)
        return [found[each] for each in ids if each in found]

    def around(self, places: Sequence[tuple[str, int]], names: Sequence[int]) -> set[int]:
        """The records at these positions of their sessions, and those that are known by these names."""
        if self._row is None:
            return set()
        with self._database.reading() as statements:
            beside = statements.neighbours(self._row.id, places) if places else []
            return {*beside, *(statements.named(self._row.id, names) if names else [])}

    def newest(
        self, kinds: Sequence[Kind], limit: int, session: str = "", since: float = 0.0, until: float = FOREVER
    ) -> list[Row]:
        """The newest records of these kinds, made between two times or in the session, newest first."""
        if self._row is None:
            return []
        with self._database.reading() as statements:
            shelf = self._row.id
            found = {each for kind in kinds for each in statements.newest(shelf, kind, limit, since, until)}
            if session:
                found.update(statements.newest_of_session(shelf, session, limit))
        return sorted(self.rows(sorted(found), kinds), key=newest_first)[:limit]

    def matching(self, kind: Kind, wanted: Mapping[str, str], limit: int) -> list[Row]:
        """The newest records of a kind whose metadata have all of these values."""
        if self._row is None:
            return []
        with self._database.reading() as statements:
            ids = statements.with_facets(self._row.id, kind, facets_of(wanted), limit)
        return sorted(self.rows(self._having(ids, wanted), (kind,)), key=newest_first)

    def select(
        self, kind: Kind, agent: str, wanted: Mapping[str, str], since: float, until: float, limit: int
    ) -> list[Row]:
        """The newest records of a kind by an agent, if given, with these values, made between two times."""
        if self._row is None:
            return []
        with self._database.reading() as statements:
            ids = statements.newest(self._row.id, kind, _EVERY if wanted else limit, since, until, agent)
            if wanted:
                right = set(statements.with_facets(self._row.id, kind, facets_of(wanted), _EVERY))
                ids = [each for each in ids if each in right][:limit]
        return sorted(self.rows(self._having(ids, wanted), (kind,)), key=newest_first)

    def model_vectors(self, ids: Sequence[int], space: str, model: Embedder) -> Array:
        """The vectors of records by a model that was put in the place of a space; made when they are first needed."""
        name = f"{space} {self._model_name(model)}"
        if self._row is None:
            return np.zeros((0, 0), "float32")
        with self._database.reading() as statements:
            known = statements.model_vectors(self._row.id, name, ids)
        if missing := [each for each in ids if each not in known]:
            known |= self._made(missing, name, model)
        return np.stack([np.frombuffer(known[each], dtype="<f2") for each in ids]).astype("float32")

    def notes(self, book: str, keys: Sequence[str] | None) -> dict[str, object]:
        """The notes in a book of this shelf."""
        if self._row is None:
            return {}
        with self._database.reading() as statements:
            return statements.notes(self._row.id, book, keys)

    def _having(self, ids: Sequence[int], wanted: Mapping[str, str]) -> list[int]:
        """Those of these records whose metadata have all of these values: two values may have the same number."""
        if not wanted:
            return list(ids)
        records = self.records(ids)
        return [each for each in ids if each in records and has_values(records[each], wanted)]

    def _made(self, ids: Sequence[int], name: str, model: Embedder) -> dict[int, bytes]:
        assert self._row is not None
        with self._database.reading() as statements:
            texts = statements.texts(self._row.id, ids)
        # A record that has just been forgotten gets the vector of an empty text.
        vectors = unit_vectors([texts.get(each, "") for each in ids], model)
        made = {each: packed_vector(vector) for each, vector in zip(ids, vectors, strict=True)}
        # Made again at the next search, where somebody is writing now or nothing can be written.
        with suppress(Exception), self._database.writing(self.tenant, self.name, wait=False) as (writing, row):
            there = writing.texts(row.id, list(texts))
            same = {each: made[each] for each, text in there.items() if text == texts[each]}
            writing.save_model_vectors(row.id, name, same)
        return made

    def _model_name(self, model: Embedder) -> str:
        # Two models of one class are told apart by what they make of a text.
        if id(model) not in self._models:
            vector = np.asarray(model.embed_query(PROBE), dtype="float32")
            self._models[id(model)] = f"{type(model).__name__}-{digest(packed_vector(vector).hex())}"
        return self._models[id(model)]

    def _postings_of(self, terms: Sequence[int], kinds: tuple[Kind, ...] | None) -> list[Array]:
        assert self._row is not None
        known = self._postings
        if missing := [term for term in terms if (term, kinds) not in known]:
            with self._database.reading() as statements:
                read = statements.postings(self._row.id, missing, kinds, MOST_POSTINGS)
            with self._lock:
                if len(known) > MOST_TERMS:
                    known.clear()
                known.update(((term, kinds), found) for term, found in zip(missing, read, strict=True))
        return [known.get((term, kinds), _NOWHERE) for term in terms]

    def _follow(self, statements: Statements, row: ShelfRow | None) -> None:
        known = self._row
        if row == known:
            return
        if row is None or known is None or (row.id, row.epoch) != (known.id, known.epoch):
            statistics = Statistics(self._words_of)
            if row is not None and (saved := statements.statistics(row.id)) is not None:
                statistics.load(saved)
        else:
            statistics = self.statistics
        self._row = row
        if row is not None:
            count_new(statistics, statements, row)
        # At the end: a search in another thread goes on with what it began with.
        self.statistics = statistics
        self._rows, self._postings = {}, {}

    def _words_of(self, ids: Sequence[int]) -> dict[int, str]:
        if self._row is None:
            return {}
        with self._database.reading() as statements:
            return words_of(statements, self._row.id, ids)


def count_new(statistics: Statistics, statements: Statements, shelf: ShelfRow) -> None:
    """Count the records that were written after those that are counted."""
    new = statements.counted(shelf, statistics.watermark)
    for start in range(0, len(new), COUNTED):
        statistics.count_records(new[start : start + COUNTED])
    statistics.watermark = max(statistics.watermark, shelf.last)


def words_of(statements: Statements, shelf: int, ids: Sequence[int]) -> dict[int, str]:
    """The words of these records by their term."""
    words: dict[int, str] = {}
    # In the order of their ids, whatever the database gives first: of several words of a term, the first is taken.
    for _, text in sorted(statements.texts(shelf, ids).items()):
        words = vocabulary(text) | words
    return words


def newest_first(row: Row) -> tuple[float, int]:
    """The order of rows by time, the newest first."""
    return -row.candidate.created, -row.id


def facets_of(data: Mapping[str, object]) -> list[int]:
    """The numbers that a record's metadata are found by: its values that are texts."""
    return [number(f"{name}={value}") for name, value in data.items() if isinstance(value, str)]


def has_values(record: Record, wanted: Mapping[str, str]) -> bool:
    """Whether the record's metadata have all of these values."""
    return all(record.data.get(name) == value for name, value in wanted.items())


def wrong_dimensions(kept: int, given: int) -> EmbeddingError:
    """That vectors do not have the length of those that are kept."""
    return EmbeddingError(
        f"the memory has vectors of {kept} numbers, the embedder gives {given}: open it with the embedder that it was "
        "filled with"
    )
