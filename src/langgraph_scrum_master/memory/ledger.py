"""The book beside the vectors: what is kept, in SQLite, with all that ranking needs and a lexical index.

A record is written here first, as pending, then to Chroma, then marked as done. What a crash left pending is repaired
when the memory is opened again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from langgraph_scrum_master.errors import EmbeddingError
from langgraph_scrum_master.memory import lexicon, links, modelled
from langgraph_scrum_master.memory.database import Database, parts
from langgraph_scrum_master.memory.lexicon import Lexicon
from langgraph_scrum_master.memory.links import Links
from langgraph_scrum_master.memory.modelled import Modelled
from langgraph_scrum_master.memory.records import SEARCHED, Kind, Record, created_of, session_of
from langgraph_scrum_master.memory.vectors import Vectors
from langgraph_scrum_master.rank.asked import Candidate, packed_vector
from langgraph_scrum_master.rank.corpus import Tally, rarity
from langgraph_scrum_master.rank.features import Array, Features
from langgraph_scrum_master.rank.kinship import Kinship
from langgraph_scrum_master.rank.relevance import CONTEXT, in_context

DONE, PENDING, LEAVING = 0, 1, 2
"""Whether Chroma has the record, is to get it, or is to lose it."""

MOST_REMEMBERED = 16_384
"""Records that are kept at hand as ranking wants them, about 2 kB each, until somebody writes."""

VERSION = 4
"""Of what is written here; a ledger of another version is made anew from what is in Chroma."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records(
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT NOT NULL, session TEXT NOT NULL,
    position INTEGER NOT NULL, created REAL NOT NULL, own INTEGER NOT NULL, alias INTEGER NOT NULL,
    state INTEGER NOT NULL, features BLOB NOT NULL, vector BLOB NOT NULL, context BLOB NOT NULL, links BLOB NOT NULL,
    meaning BLOB NOT NULL, text TEXT NOT NULL, data TEXT NOT NULL, UNIQUE(kind, key));
CREATE INDEX IF NOT EXISTS by_session ON records(session, position);
CREATE INDEX IF NOT EXISTS by_created ON records(kind, created);
CREATE INDEX IF NOT EXISTS by_own ON records(own) WHERE own != 0;
CREATE INDEX IF NOT EXISTS by_alias ON records(alias);
CREATE INDEX IF NOT EXISTS by_state ON records(state) WHERE state != 0;
CREATE TABLE IF NOT EXISTS tally(name TEXT PRIMARY KEY, value BLOB NOT NULL);
"""
_UNFINISHED = """
CREATE TABLE IF NOT EXISTS unfinished(
    kind TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, data TEXT NOT NULL, state INTEGER NOT NULL)
"""
_TABLES = ("records", "tally", "terms", "postings", "edges", "modelled")
"""In the order in which they are made."""


class Row(NamedTuple):
    """A record as ranking wants it."""

    id: int
    kind: Kind
    key: str
    candidate: Candidate


class Ledger:
    """The book of one namespace, in a file or in memory; also the corpus that queries are weighed against."""

    def __init__(self, path: Path | None) -> None:
        self._db = Database(path)
        self._lock = self._db.lock
        self._lexicon = Lexicon(self._db)
        self._links = Links(self._db)
        self.modelled = Modelled(self._db)
        self._vectors = Vectors(self._db)
        self.tally = Tally()
        self._kinds: dict[str, int] = {}
        self._rows: dict[int, Row] = {}
        self._numbers: dict[tuple[Kind, str], int] = {}
        self._version = -1
        self._length = 0
        with self._lock:
            # So that what ranking reads of a record stands on one page.
            self._db.execute("PRAGMA page_size = 8192")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            if self._db.one("PRAGMA user_version")[0] != VERSION:
                self._make_anew()
            # Not unless it must be, for that is a write: who only reads need not wait for who writes.
            if self._db.one("SELECT 1 FROM sqlite_master WHERE name = ?", (_TABLES[-1],)) is None:
                self._db.run(_SCHEMA, _UNFINISHED, lexicon.SCHEMA, links.SCHEMA, modelled.SCHEMA)
            self._load()

    def _make_anew(self) -> None:
        """Let go of all but what a ledger of another version had not settled with Chroma."""
        self._db.execute("BEGIN IMMEDIATE")
        # Another process may have been faster.
        if self._db.one("PRAGMA user_version")[0] == VERSION:
            self._db.execute("ROLLBACK")
            return
        columns = {row[1] for row in self._db.execute("PRAGMA table_info(records)")}
        self._db.execute(_UNFINISHED)
        if columns.issuperset(("kind", "key", "text", "data", "state")):
            self._db.execute(
                "INSERT INTO unfinished SELECT kind, key, text, data, state FROM records WHERE state != ?", (DONE,)
            )
        for table in _TABLES:
            self._db.execute(f"DROP TABLE IF EXISTS {table}")
        self._db.execute(f"PRAGMA user_version = {VERSION}")
        self._db.execute("COMMIT")

    @property
    def unfinished(self) -> list[tuple[Record, int]]:
        """What a ledger of another version had not settled with Chroma, with its state."""
        found = self._db.execute("SELECT kind, key, text, data, state FROM unfinished")
        return [(_record(*row), state) for *row, state in found]

    @property
    def complete(self) -> bool:
        """Whether all that Chroma had when the ledger was made is in it."""
        return self._db.one("SELECT 1 FROM tally WHERE name = 'complete'") is not None

    def completed(self) -> None:
        """Note that it is."""
        self._db.execute("INSERT OR REPLACE INTO tally VALUES ('complete', '1')")
        self._db.execute("DELETE FROM unfinished")

    @property
    def embedder(self) -> str | None:
        """What made its vectors, if that was noted."""
        found = self._db.one("SELECT value FROM tally WHERE name = 'embedder'")
        return found[0] if found else None

    def note_embedder(self, name: str) -> None:
        """Keep what makes its vectors."""
        self._db.execute("INSERT OR REPLACE INTO tally VALUES ('embedder', ?)", (name,))

    @property
    def size(self) -> int:
        """Records in it."""
        return self.tally.size

    @property
    def mean_length(self) -> float:
        """Terms of a record, on average."""
        return self.tally.mean_length

    @property
    def centre(self) -> Array:
        """The mean of the records' vectors, less what too few of them say."""
        return self.tally.centre

    @property
    def mean_grams(self) -> float:
        """Filled places of a record, on average."""
        return self.tally.mean_grams

    def token_rarity(self, tokens: Array) -> Array:
        """How much each of these tokens of the static model counts."""
        return self.tally.token_rarity(tokens)

    def gram_rarity(self, places: Array) -> Array:
        """How much each of these places for letters in a row counts."""
        return self.tally.gram_rarity(places)

    def term_counts(self, terms: Array) -> Array:
        """In how many records each term stands."""
        return np.array(self._lexicon.counts(terms.tolist()))

    def term_rarity(self, terms: Array) -> Array:
        """How much each term counts."""
        return rarity(self.term_counts(terms), self.size)

    def kin(self, terms: Array, known: Kinship) -> Array:
        """The number that a word of each of these terms is known by there."""
        return self._lexicon.kin(terms, known)

    def refresh(self) -> None:
        """Read the counts again if another process has written."""
        with self._lock:
            if self._db.look() != self._version:
                self._load()

    def count(self, kind: Kind) -> int:
        """Records of a kind."""
        return self._kinds.get(kind, 0)

    def same(self, record: Record) -> bool:
        """Whether exactly this is kept already."""
        found = self._db.one(
            "SELECT text, data FROM records WHERE kind = ? AND key = ? AND state = ?", (record.kind, record.key, DONE)
        )
        return found is not None and found == (record.text, _plain(record.data))

    def write(
        self, records: Sequence[Record], features: Sequence[Features], vectors: Callable[[], tuple[Array, Array]]
    ) -> list[Array]:
        """Put the records in as pending; `vectors` makes theirs, and those by the static model, once all are counted.

        Gives the vectors.
        """
        with self._transaction():
            places = [self._replace(record, each) for record, each in zip(records, features, strict=True)]
            made, meanings = vectors()
            self.refuse_other_lengths(made)
            self._db.executemany(
                "INSERT INTO records(kind, key, text, data, session, position, created, own, alias, features, vector,"
                " context, meaning, state, links) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, x'')",
                [
                    (
                        record.kind,
                        record.key,
                        record.text,
                        _plain(record.data),
                        *place,
                        created_of(record),
                        each.own,
                        each.alias,
                        each.pack(),
                        packed_vector(vector),
                        packed_vector(meaning),
                        packed_vector(meaning),
                        PENDING,
                    )
                    for record, each, vector, meaning, place in zip(
                        records, features, made, meanings, places, strict=True
                    )
                ],
            )
            # As it will be read again, so that taking a record out leaves nothing of it.
            searched = [record.kind in SEARCHED for record in records]
            self.tally.add(np.asarray(made)[searched].astype("<f2"))
            self._index(records, features)
            self._put_in_context(places)
            self._save()
        return list(made)

    def mark(self, kind: Kind, keys: Sequence[str], state: int) -> None:
        """Note what Chroma has, or is to lose."""
        with self._transaction():
            self._db.among("UPDATE records SET state = ? WHERE kind = ? AND key IN ({})", keys, state, kind)

    def remove(self, kind: Kind, keys: Sequence[str]) -> None:
        """Take the records out."""
        with self._transaction():
            places = [place for key in keys if (place := self._take_out(kind, key))]
            self._put_in_context(places)
            self._links.renew((), self._lost)
            self._save()

    def unsettled(self, state: int) -> list[tuple[Record, Array]]:
        """The records that a crash left in this state, with their vectors."""
        return self._with_vectors("state = ?", state)

    def every(self, kind: Kind) -> list[tuple[Record, Array]]:
        """All records of a kind, with their vectors."""
        return self._with_vectors("kind = ? AND state != ?", kind, LEAVING)

    def has(self, kind: Kind, keys: Sequence[str]) -> set[str]:
        """Which of these keys are taken, also by a record that is to leave."""
        return {key for (key,) in self._db.among("SELECT key FROM records WHERE kind = ? AND key IN ({})", keys, kind)}

    def unsettled_keys(self, kind: Kind) -> set[str]:
        """Those of the records that a crash, or a failure of Chroma, left in between."""
        found = self._db.execute("SELECT key FROM records WHERE kind = ? AND state != ?", (kind, DONE))
        return {key for (key,) in found}

    def keyed(self, kind: Kind, keys: Sequence[str]) -> list[tuple[int, str]]:
        """The numbers of these records, with their keys."""
        with self._lock:
            known = self._numbers
            if len(known) > MOST_REMEMBERED:
                known.clear()
            if missing := [key for key in keys if (kind, key) not in known]:
                # Whoever asks for the numbers wants the rows next.
                found = self._read_rows("kind = ? AND key IN ({})", missing, kind)
                known.update(((kind, row.key), row.id) for row in found)
                self._rows.update((row.id, row) for row in found)
            return [(known[kind, key], key) for key in keys if (kind, key) in known]

    def lexical(self, kinds: Sequence[Kind], terms: Array, weights: Array, limit: int) -> dict[int, float]:
        """The records of these kinds that hold most of the terms by weight, with the share."""
        # Most memories have one kind that is searched: asking for it would cost as much as for the word.
        some = None if all(kind in kinds for kind in SEARCHED if kind in self._kinds) else kinds
        return self._lexicon.holding(terms, weights, limit, some)

    def nearest(self, kind: Kind, vector: Array, limit: int) -> list[tuple[int, float]]:
        """The numbers of the records of a kind whose vectors are nearest, with their cosines."""
        with self._lock:
            held = self._vectors.up_to_date(kind, self.count(kind), len(vector))
        return held.nearest(vector, limit) if held else []

    def neighbours(self, places: Sequence[tuple[str, int]]) -> list[int]:
        """The records at these places of their sessions."""
        found: list[int] = []
        for part in parts(places):
            marks = ", ".join(["(?, ?)"] * len(part))
            query = (
                f"WITH places(session, position) AS (VALUES {marks}) "
                "SELECT id FROM places JOIN records USING (session, position)"
            )
            found += [i for (i,) in self._db.execute(query, [value for place in part for value in place])]
        return found

    def named(self, names: Sequence[int]) -> list[int]:
        """The records that are known by these names."""
        queries = ("own != 0 AND own IN ({})", "alias IN ({})")
        return [i for where in queries for (i,) in self._db.among(f"SELECT id FROM records WHERE {where}", names)]

    def newest(self, kinds: Sequence[Kind], limit: int, session: str = "", since: float = 0.0) -> list[Row]:
        """The newest records of these kinds, made since then or in the session, newest first."""
        query = f"SELECT id FROM records WHERE {{}} AND state != {LEAVING} ORDER BY {{}} DESC LIMIT {limit}"
        by_time = query.format("kind = ? AND created >= ?", "created")
        found = [row for kind in kinds for row in self._db.execute(by_time, (kind, since))]
        if session:
            found += self._db.execute(query.format("session = ?", "position"), (session,))
        return sorted(self.rows(sorted({number for (number,) in found}), kinds), key=_newest_first)[:limit]

    def matching(self, kind: Kind, wanted: Mapping[str, str], limit: int) -> list[Row]:
        """The newest records of a kind whose data say all that is wanted."""
        where = "".join(" AND json_extract(data, ?) = ?" for _ in wanted)
        query = (
            f"SELECT id FROM records WHERE kind = ?{where} AND state != {LEAVING} ORDER BY created DESC LIMIT {limit}"
        )
        values = [value for name, said in wanted.items() for value in (f'$."{name}"', said)]
        return self.rows([number for (number,) in self._db.execute(query, [kind, *values])], (kind,))

    def kept(self, kind: Kind, keys: Sequence[str]) -> list[Record]:
        """The records that are kept under these keys."""
        return list(self.records([number for number, _ in self.keyed(kind, keys)]).values())

    def rows(self, ids: Sequence[int], kinds: Sequence[Kind]) -> list[Row]:
        """These records, if of these kinds, as ranking wants them."""
        with self._lock:
            fresh = self._read_rows("id IN ({})", [i for i in ids if i not in self._rows])
            self._rows.update((row.id, row) for row in fresh)
            found = [row for i in ids if (row := self._rows.get(i)) and row.kind in kinds]
            for oldest in list(islice(self._rows, max(0, len(self._rows) - MOST_REMEMBERED))):
                del self._rows[oldest]
            return found

    def _read_rows(self, where: str, values: Sequence[Any], *before: Any) -> list[Row]:
        query = (
            "SELECT id, kind, key, features, vector, context, session, position, created, links "
            f"FROM records WHERE {where} AND state != {LEAVING}"
        )
        found = self._db.among(query, values, *before)
        return [Row(number, kind, key, Candidate(*rest)) for number, kind, key, *rest in found]

    def records(self, ids: Sequence[int]) -> dict[int, Record]:
        """These records by their number."""
        query = f"SELECT id, kind, key, text, data FROM records WHERE id IN ({{}}) AND state != {LEAVING}"
        found = self._db.among(query, ids)
        # Read in one go: that is several times as fast as one by one.
        data = json.loads(f"[{','.join([row[-1] for row in found])}]")
        return {
            number: Record(kind=kind, key=key, text=text, data=each)
            for (number, kind, key, text, _), each in zip(found, data, strict=True)
        }

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _with_vectors(self, where: str, *values: Any) -> list[tuple[Record, Array]]:
        query = f"SELECT kind, key, text, data, vector FROM records WHERE {where} ORDER BY id"
        found = self._db.execute(query, values)
        return [(_record(*row), np.frombuffer(vector, dtype="<f2")) for *row, vector in found]

    def refuse_other_lengths(self, vectors: Array) -> None:
        """Raise if vectors are not as long as those that are kept."""
        if not self._length:
            known = self._db.one("SELECT length(vector) FROM records LIMIT 1")
            self._length = known[0] // 2 if known else 0
        if self._length not in (0, vectors.shape[1]):
            raise EmbeddingError(
                f"the memory has vectors of {self._length} numbers, the embedder gives {vectors.shape[1]}: open it "
                "with the embedder that it was filled with"
            )

    def _put_in_context(self, places: Iterable[tuple[str, int]]) -> None:
        """Add their neighbours' vectors to those of the records at these places and around them."""
        spans: dict[str, list[int]] = {}
        for session, position in places:
            if session:
                spans.setdefault(session, []).append(position)
        reach = max(off for off, _ in CONTEXT)
        for session, positions in spans.items():
            low, high = min(positions) - reach, max(positions) + reach
            found = self._db.execute(
                "SELECT id, position, meaning FROM records WHERE session = ? AND position BETWEEN ? AND ?",
                (session, low - reach, high + reach),
            )
            if found:
                vectors = np.stack([np.frombuffer(vector, dtype="<f2") for *_, vector in found]).astype("float32")
                contexts = in_context(vectors, [(session, position) for _, position, _ in found])
                self._db.executemany(
                    "UPDATE records SET context = ? WHERE id = ?",
                    [
                        (packed_vector(context), number)
                        for (number, position, _), context in zip(found, contexts, strict=True)
                        if low <= position <= high
                    ],
                )

    def _replace(self, record: Record, features: Features) -> tuple[str, int]:
        place = self._take_out(record.kind, record.key)
        if place is not None and place[0] != session_of(record):
            self._put_in_context([place])
        # Relationships are not searched: what they say must not make words less rare.
        if record.kind in SEARCHED:
            self.tally.count(features)
        self._kinds[record.kind] = self._kinds.get(record.kind, 0) + 1
        session = session_of(record)
        if place is not None and place[0] == session:
            return place
        last = self._db.one("SELECT max(position) FROM records WHERE session = ?", (session,))[0]
        self._waiting[session] = max(self._waiting.get(session, -1), -1 if last is None else last) + 1
        return session, self._waiting[session]

    def _take_out(self, kind: Kind, key: str) -> tuple[str, int] | None:
        found = self._db.one(
            "SELECT id, session, position, features, vector FROM records WHERE kind = ? AND key = ?", (kind, key)
        )
        if found is None:
            return None
        number, session, position, packed, vector = found
        features = Features.unpack(packed)
        self._kinds[kind] -= 1
        if not self._kinds[kind]:
            del self._kinds[kind]
        if kind in SEARCHED:
            self.tally.count(features, -1)
            self.tally.add(np.frombuffer(vector, dtype="<f2")[None, :], -1)
            self._lexicon.take_out(number, kind, features)
        else:
            self._lost |= self._links.take_out(number)
        self.modelled.take_out(number)
        self._db.execute("DELETE FROM records WHERE id = ?", (number,))
        return session, position

    def _index(self, records: Sequence[Record], features: Sequence[Features]) -> None:
        """Take in the words, and what relationships link."""
        numbers: dict[tuple[Kind, str], int] = {}
        for kind in {record.kind for record in records}:
            keys = [record.key for record in records if record.kind == kind]
            found = self._db.among("SELECT key, id FROM records WHERE kind = ? AND key IN ({})", keys, kind)
            numbers |= {(kind, key): number for key, number in found}
        rows = [(numbers[record.kind, record.key], record) for record in records]
        searched = [pair for pair in zip(rows, features, strict=True) if pair[0][1].kind in SEARCHED]
        self._lexicon.add((number, record.kind, record.text, each) for (number, record), each in searched)
        linked = self._links.add((number, record) for number, record in rows if record.kind not in SEARCHED)
        own = {name for _, each in searched for name in (each.own, each.alias)} - {0}
        self._links.renew({*linked, *own}, self._lost)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            self._waiting: dict[str, int] = {}
            self._lost: set[int] = set()
            self._rows, self._numbers, self._length = {}, {}, 0
            try:
                self.refresh()
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                self._load()
                raise
            self._db.execute("COMMIT")

    def _load(self) -> None:
        # Looked at first: what is written while it is read is read again the next time.
        version, tally, kinds = self._db.look(), Tally(), {}
        for name, value in self._db.execute("SELECT name, value FROM tally"):
            if name in ("complete", "embedder"):
                continue
            if name == "kinds":
                kinds = json.loads(value)
            elif name == "vectors":
                tally.vectors = np.frombuffer(value, dtype="<f8")
            elif name in ("tokens", "grams"):
                counts = np.frombuffer(value, dtype="<i4").copy()
                if len(counts) == len(getattr(tally, name)):
                    setattr(tally, name, counts)
            else:
                setattr(tally, name, int(value))
        # At the end, for others may be counting on it meanwhile.
        self.tally, self._kinds, self._version = tally, kinds, version
        self._rows, self._numbers, self._length = {}, {}, 0

    def _save(self) -> None:
        values = {
            "size": str(self.tally.size).encode(),
            "length": str(self.tally.length).encode(),
            "tokens": self.tally.tokens.tobytes(),
            "grams": self.tally.grams.tobytes(),
            "vectors": self.tally.vectors.tobytes(),
            "kinds": json.dumps(self._kinds).encode(),
        }
        self._db.executemany("INSERT OR REPLACE INTO tally VALUES (?, ?)", values.items())


def _newest_first(row: Row) -> tuple[float, int]:
    return -row.candidate.created, -row.id


def _plain(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True)


def _record(kind: Kind, key: str, text: str, data: str) -> Record:
    return Record(kind=kind, key=key, text=text, data=json.loads(data))
