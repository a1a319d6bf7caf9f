"""The record store: a database with its shelves, and the backend over it."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master.errors import ConfigError, StoreError
from langgraph_scrum_master.memory.backend import Backend
from langgraph_scrum_master.memory.records import SEARCHED, DecisionFilter, Kind, Ranked, Record, embedded
from langgraph_scrum_master.model import instant
from langgraph_scrum_master.protocols import CAPABILITIES, Embedder
from langgraph_scrum_master.rank.embedders import EMBEDDERS, embedder_for
from langgraph_scrum_master.rank.match import Match
from langgraph_scrum_master.rank.recipe import DEFAULT_RECIPE, Recipe

if TYPE_CHECKING:
    from langgraph_scrum_master.memory.candidates import CandidateRows
    from langgraph_scrum_master.memory.database import Database
    from langgraph_scrum_master.memory.shelf import Shelf
    from langgraph_scrum_master.memory.writer import Writer

# NumPy and the ranking code are imported on use, so that constructing a memory is fast.

MOST_SHELVES = 64
"""Cached shelves per database."""

_EVERY, _FOREVER = 1_000_000_000, 1e18
"""No limit, and a time later than any record."""

_MATCHING = 2_000
"""Records that are ranked after a filter; the newest are taken."""


class RecordStore:
    """A database with its shelves, shared by all memories in it."""

    def __init__(
        self,
        place: str,
        connect: Callable[[], Database],
        *,
        file: Path | None = None,
        most_records: int | None = None,
    ) -> None:
        if most_records is not None and most_records < 1:
            raise ConfigError(f"most_records must be at least 1, or None for no limit, got {most_records!r}")
        self.place = place
        self.file = file
        self.most_records = most_records
        """The limit of records per tenant, over all shelves."""
        self._connect = connect
        self._database: Database | None = None
        self._shelves: OrderedDict[tuple[str, str], Shelf] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def database(self) -> Database:
        """The database, opened on first use."""
        with self._lock:
            if self._database is None:
                self._database = self._connect()
            return self._database

    @property
    def writer(self) -> Writer:
        """The writer for all shelves."""
        from langgraph_scrum_master.memory.writer import Writer

        return Writer(self.database, self.most_records)

    def shelf(self, tenant: str, name: str) -> Shelf:
        """The shelf with this name, up to date."""
        from langgraph_scrum_master.memory.shelf import Shelf

        database = self.database
        with self._lock:
            shelf = self._shelves.get((tenant, name))
            if shelf is None:
                shelf = self._shelves[tenant, name] = Shelf(database, tenant, name)
            self._shelves.move_to_end((tenant, name))
            while len(self._shelves) > MOST_SHELVES:
                self._shelves.popitem(last=False)[1].drop_candidates()
        return shelf.refresh()

    def close(self) -> None:
        """Close the database; the next use opens it again."""
        with self._lock:
            for shelf in self._shelves.values():
                shelf.drop_candidates()
            self._shelves.clear()
            database = self._database
        if database is not None:
            database.close()


class StoreBackend(Backend):
    """One shelf of one tenant in a record store."""

    capabilities = CAPABILITIES

    def __init__(
        self,
        store: RecordStore,
        tenant: str,
        shelf: str = "",
        *,
        embedder: str | Embedder = "static",
        recipe: Recipe = DEFAULT_RECIPE,
    ) -> None:
        if isinstance(embedder, str) and embedder not in EMBEDDERS:
            raise ConfigError(
                f"embedder must be among {EMBEDDERS}, or an object with embed_documents, got {embedder!r}"
            )
        self.store = store
        self.tenant = tenant
        self.shelf = shelf
        self._embedder_choice = embedder
        self._recipe = recipe

    @property
    def place(self) -> str:
        """The location of the database."""
        return self.store.place

    @property
    def embedder(self) -> Embedder:
        """The embedder."""
        return embedder_for(self._embedder_choice)

    def elsewhere(self, tenant: str, shelf: str) -> StoreBackend:
        """Another shelf or tenant in the same database."""
        return StoreBackend(self.store, tenant, shelf, embedder=self._embedder_choice, recipe=self._recipe)

    def open(self) -> None:
        """Load the embedder, the statistics and the vectors."""
        self.ranked(SEARCHED, "warm", 1, 1)

    def close(self) -> None:
        """Close the database."""
        self.store.close()

    def cured(self, error: Exception, attempt: int) -> bool:
        """Rebuild derived data if the error says that it is damaged."""
        from langgraph_scrum_master.memory.database import DerivedError
        from langgraph_scrum_master.memory.writer import rebuild

        # Another thread has closed the connection for a fork; a retry opens it again.
        if isinstance(error, sqlite3.ProgrammingError) and "closed database" in str(error):
            return True
        if not isinstance(error, DerivedError) or attempt:
            return False
        rebuild(self.store.database)
        self.store.close()
        logger.warning("memory.rebuilt", memory=self.place, reason=str(error))
        return True

    def put(self, records: Sequence[Record]) -> None:
        """Store the records in one transaction; unchanged records are not written again."""
        shelf = self.current()
        written = self.store.writer.put(shelf, records, self.embedder)
        if self._recipe.models and written:
            searched = [number for number, kind in written if kind in SEARCHED]
            for space, model in self._recipe.models.items():
                shelf.refresh().model_vectors(searched, space, model)

    def drop(self, kinds: Sequence[Kind], keys: Sequence[str]) -> None:
        """Delete the records in one transaction."""
        self.remove(kinds, keys)

    def remove(self, kinds: Sequence[Kind], keys: Sequence[str]) -> int:
        """Delete the records and return their number."""
        shelf = self.current()
        return 0 if shelf.row is None else self.store.writer.remove(shelf, kinds, keys)

    def ranked(self, kinds: Sequence[Kind], query: str, limit: int, k: int | None) -> list[Ranked]:
        """The records that match the query best, of the nearest by vectors and by words."""
        from langgraph_scrum_master.memory.search import search

        (found,) = search([self.current()], self.embedder, kinds, query, limit, k, self._recipe)
        return found

    def ranked_by_words(self, kinds: Sequence[Kind], query: str, limit: int, k: int) -> list[Ranked]:
        """As `ranked`, without a query vector."""
        from langgraph_scrum_master.memory.search import search

        (found,) = search([self.current()], None, kinds, query, limit, k, replace(self._recipe, models={}))
        return found

    def ranked_shelves(
        self, shelves: Sequence[str], kinds: Sequence[Kind], query: str, limit: int, k: int
    ) -> list[list[Ranked]]:
        """The best records of each shelf, searched as one corpus."""
        from langgraph_scrum_master.memory.search import search

        current = [self.elsewhere(self.tenant, shelf).current() for shelf in shelves]
        return search(current, self.embedder, kinds, query, limit, k, self._recipe)

    def answering(
        self, kinds: Sequence[Kind], need: str, around: Sequence[tuple[str, float]], limit: int, k: int
    ) -> list[Ranked]:
        """The records that most likely answer the need."""
        from langgraph_scrum_master.memory.search import search_answers

        return search_answers(self.current(), self.embedder, kinds, need, around, limit, k, self._recipe)

    def recent(self, query: str, session: str, since: float, limit: int) -> list[Ranked]:
        """The newest records of the session, or created since, newest first, compared with the query."""
        return self._compare(query, lambda shelf: shelf.newest(SEARCHED, limit, session, since))

    def matching(self, query: str, wanted: Mapping[str, str], limit: int) -> list[Ranked]:
        """The newest memories whose metadata have these values, compared with the query."""
        return self._compare(query, lambda shelf: shelf.matching("memory", wanted, limit))

    def ranked_decisions(self, query: str, filters: DecisionFilter) -> list[Ranked]:
        """The decisions that pass the filter, best first."""
        return _best_first(self._compare(query, lambda shelf: _decisions(shelf, filters, _MATCHING)))

    def ranked_patterns(self, query: str, pattern_type: str) -> list[Ranked]:
        """The patterns of a type, best first."""
        wanted = {"pattern_type": pattern_type}
        return _best_first(self._compare(query, lambda shelf: shelf.matching("pattern", wanted, _MATCHING)))

    def decisions_by_agent(self, agent_type: str, limit: int) -> list[Record]:
        """The newest decisions of an agent."""
        return self._records(lambda shelf: _decisions(shelf, DecisionFilter(agent_type=agent_type), limit))

    def patterns_by_type(self, pattern_type: str) -> list[Record]:
        """The patterns of a type."""
        wanted = {"pattern_type": pattern_type}
        return self._records(
            lambda shelf: shelf.select("pattern", "", wanted, 0.0, _FOREVER, _EVERY).take(slice(None, None, -1))
        )

    def keyed(self, keys: Sequence[str]) -> list[Record]:
        """The memories with these keys."""
        return self.current().keyed("memory", keys)

    def newest(self, kind: Kind) -> Record | None:
        """The newest record of a kind."""
        return next(iter(self._records(lambda shelf: shelf.newest((kind,), 1))), None)

    def every(self, kind: Kind) -> list[Record]:
        """All records of a kind."""
        return self.current().every(kind)

    def notes(self, book: str, keys: Sequence[str] | None) -> dict[str, Any]:
        """The notes in a book."""
        return self.current().notes(book, keys)

    def save_notes(self, book: str, notes: Mapping[str, Any]) -> None:
        """Write notes into a book."""
        self.store.writer.save_notes(self.current(), book, notes)

    def embedded(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector for each text."""
        return embedded(texts, self.embedder)

    def nearest_to(self, vector: Sequence[float], k: int) -> list[Ranked]:
        """The memories nearest to the vector, by cosine, from the index."""
        import numpy as np

        shelf, sought = self.current(), np.asarray(vector, np.float32)
        shelf.check_dimensions(sought)
        cosines = dict(shelf.nearest("memory", sought / max(1e-9, float(np.linalg.norm(sought))), k))
        records = shelf.records(list(cosines))
        found = [(records[row], cosine) for row, cosine in cosines.items() if row in records]
        return [Ranked(record, Match(min(1.0, max(0.0, cosine)))) for record, cosine in found]

    def shelves(self) -> list[str]:
        """The names of the tenant's shelves, without the memory itself."""
        with self.store.database.reading() as statements:
            return [name for name, _ in statements.shelves(self.tenant) if name]

    def current(self) -> Shelf:
        """The shelf, up to date. Raises if it was filled with another embedder."""
        shelf = self.store.shelf(self.tenant, self.shelf)
        name = type(self.embedder).__name__
        if shelf.row is not None and shelf.row.embedder not in ("", name):
            from langgraph_scrum_master.memory.writer import wrong_embedder

            raise StoreError(f"{self.place}: {wrong_embedder(shelf.row.embedder, name)}")
        return shelf

    def _compare(self, query: str, rows: Callable[[Shelf], CandidateRows]) -> list[Ranked]:
        from langgraph_scrum_master.memory.search import compare

        shelf = self.current()
        return compare(shelf, self.embedder, query, rows(shelf), self._recipe)

    def _records(self, rows: Callable[[Shelf], CandidateRows]) -> list[Record]:
        shelf = self.current()
        ids = rows(shelf).ids.tolist()
        found = shelf.records(ids)
        return [found[each] for each in ids if each in found]


def _best_first(found: list[Ranked]) -> list[Ranked]:
    return sorted(found, key=lambda each: (-each.match.score, each.record.key))


def _decisions(shelf: Shelf, filters: DecisionFilter, limit: int) -> CandidateRows:
    """The newest decisions that pass the filter."""
    names = ("artifact_type", "decision_type")
    wanted = {name: value for name in names if (value := getattr(filters, name)) is not None}
    since = max(0.0, instant(filters.time_range_start)) if filters.time_range_start is not None else 0.0
    until = instant(filters.time_range_end) if filters.time_range_end is not None else _FOREVER
    return shelf.select("decision", filters.agent_type or "", wanted, since, until, limit)
