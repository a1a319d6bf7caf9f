"""The words of a memory: how common each is, and which records have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from langgraph_scrum_master.memory.database import Database
from langgraph_scrum_master.memory.records import Kind
from langgraph_scrum_master.rank.features import Array, Features, vocabulary
from langgraph_scrum_master.rank.kinship import Kinship

MOST_POSTINGS = 250
"""Rows of a word that are looked at, the newest: a word in more of them tells little."""

ENOUGH_POSTINGS = 750
"""Rows after which the less rare words of a query are left out."""

MOST_COUNTED = 100_000
"""Words of which is kept how common they are."""

MOST_HELD = 4_096
"""Words whose rows are kept at hand, until somebody writes."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS terms(number INTEGER PRIMARY KEY, word TEXT NOT NULL, texts INTEGER NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS postings USING fts5(body, content='', detail=none);
"""


class _Kin(NamedTuple):
    """Terms whose words were looked up, in order, and what those are known by."""

    known: Kinship | None
    terms: Array
    found: Array

    def numbers(self, terms: Array) -> Array:
        """What each of these is known by; -1 if it was not looked up."""
        if not len(self.terms):
            return np.full(len(terms), -1)
        place = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        return np.where(self.terms[place] == terms, self.found[place], -1)

    def plus(self, terms: Array, found: Array) -> _Kin:
        """With these as well."""
        every = np.append(self.terms, terms)
        order = np.argsort(every)
        return _Kin(self.known, every[order], np.append(self.found, found)[order])


_NO_KIN = _Kin(None, np.zeros(0, "<u4"), np.zeros(0, "int64"))


class Lexicon:
    """The words of all records that are searched, by number."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._kin = _NO_KIN
        self._counts: dict[int, int] = {}
        self._held: dict[str, Array] = {}
        self._read_at = (-1, -1)

    def counts(self, terms: Sequence[int]) -> list[int]:
        """In how many texts each term stands."""
        with self._db.lock:
            self._refresh()
            if len(self._counts) > MOST_COUNTED:
                self._counts.clear()
            if new := [term for term in terms if term not in self._counts]:
                found = dict(self._db.among("SELECT number, texts FROM terms WHERE number IN ({})", new))
                self._counts.update((term, found.get(term, 0)) for term in new)
            return [self._counts[term] for term in terms]

    def kin(self, terms: Array, known: Kinship) -> Array:
        """The number that a word of each of these terms is known by there."""
        with self._db.lock:
            self._refresh()
            if self._kin.known is not known:
                self._kin = _NO_KIN._replace(known=known)
            numbers = self._kin.numbers(terms)
            if (numbers < 0).any():
                self._kin = self._kin.plus(*self._looked_up(np.unique(terms[numbers < 0]), known))
                numbers = self._kin.numbers(terms)
            return numbers

    def _looked_up(self, terms: Array, known: Kinship) -> tuple[Array, Array]:
        words = dict(self._db.among("SELECT number, word FROM terms WHERE number IN ({})", terms.tolist()))
        return terms, np.array(known.numbers([words.get(term, "") for term in terms.tolist()]))

    def holding(self, terms: Array, weights: Array, limit: int, kinds: Sequence[Kind] | None) -> dict[int, float]:
        """The records that hold most of the terms by weight, with the share; the rarest terms are looked up first.

        `kinds` are those that count; None if all do.
        """
        with self._db.lock:
            self._refresh()
        found: list[Array] = []
        order = np.argsort(-weights, kind="stable")
        for i in order.tolist():
            found.append(self._postings(int(terms[i]), kinds))
            if sum(map(len, found)) >= ENOUGH_POSTINGS:
                break
        if not found:
            return {}
        shares = np.repeat(weights[order[: len(found)]] / weights.sum(), [len(rows) for rows in found])
        rows, whose = np.unique(np.concatenate(found), return_inverse=True)
        held = np.bincount(whose, weights=shares, minlength=len(rows))
        best = np.lexsort((-rows, -held))[:limit]
        return dict(zip(rows[best].tolist(), held[best].tolist(), strict=True))

    def add(self, rows: Iterable[tuple[int, Kind, str, Features]]) -> None:
        """Take in the texts of these records."""
        words: dict[int, str] = {}
        counts: dict[int, int] = {}
        bodies: list[tuple[int, str]] = []
        for number, kind, text, features in rows:
            words |= vocabulary(text)
            bodies.append((number, _body(kind, features)))
            for term in features.terms.tolist():
                counts[term] = counts.get(term, 0) + 1
        self._db.executemany(
            "INSERT INTO terms VALUES (?, ?, ?) ON CONFLICT(number) DO UPDATE SET texts = texts + excluded.texts",
            [(term, words.get(term, ""), count) for term, count in counts.items()],
        )
        self._db.executemany("INSERT INTO postings(rowid, body) VALUES (?, ?)", bodies)

    def take_out(self, number: int, kind: Kind, features: Features) -> None:
        """Let go of the text of a record."""
        self._db.executemany(
            "UPDATE terms SET texts = texts - 1 WHERE number = ?", [(term,) for term in features.terms.tolist()]
        )
        self._db.execute(
            "INSERT INTO postings(postings, rowid, body) VALUES ('delete', ?, ?)", (number, _body(kind, features))
        )

    def _postings(self, term: int, kinds: Sequence[Kind] | None) -> Array:
        wanted = f"t{term}"
        if kinds is not None:
            wanted += f" AND ({' OR '.join(f'k{kind}' for kind in kinds)})"
        with self._db.lock:
            if len(self._held) > MOST_HELD:
                self._held.clear()
            if wanted not in self._held:
                self._held[wanted] = self._read(wanted)
            return self._held[wanted]

    def _refresh(self) -> None:
        """Forget where words stand, and which there are, if anybody has written since it was looked up."""
        if self._read_at != (change := self._db.change):
            self._counts, self._held, self._kin, self._read_at = {}, {}, _NO_KIN, change

    def _read(self, wanted: str) -> Array:
        query = "SELECT rowid FROM postings WHERE postings MATCH ? ORDER BY rowid DESC LIMIT ?"
        found = self._db.execute(query, (wanted, MOST_POSTINGS))
        return np.fromiter(chain.from_iterable(found), dtype="int64", count=len(found))


def _body(kind: Kind, features: Features) -> str:
    return " ".join((f"k{kind}", *(f"t{term}" for term in features.terms.tolist())))
