"""The vectors of a memory at hand: where they are few, comparing all of them is faster than any index, and exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from langgraph_scrum_master.memory.database import Database
from langgraph_scrum_master.memory.records import Kind
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines

MOST_BYTES = 16_000_000
"""Of a kind's vectors that are held: about 15,000 records by the static model."""


class Held(NamedTuple):
    """The vectors of a kind, a row each."""

    numbers: Array
    """Whose they are, in order."""
    rows: Array


class Vectors:
    """The vectors of the records of each kind, read once, and from then on only what is new."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._held: dict[Kind, Held] = {}
        self._changed: set[Kind] = set()

    def changed(self) -> None:
        """Note that somebody has written."""
        self._changed = set(self._held)

    def nearest(self, kind: Kind, vector: Array, limit: int, count: int) -> list[tuple[int, float]] | None:
        """The records of a kind, of which there are so many, that are nearest, with their cosines.

        None if they are too many to compare.
        """
        if count * len(vector) * 4 > MOST_BYTES:
            self._held.pop(kind, None)
            return None
        numbers, rows = self._current(kind, len(vector))
        near = cosines(rows, vector.astype("float32"))
        # The best of them in any order, then in theirs: sorting all would take longer than comparing them.
        some = np.argpartition(-near, limit)[:limit] if limit < len(near) else np.arange(len(near))
        best = some[np.lexsort((numbers[some], -near[some]))]
        return list(zip(numbers[best].tolist(), near[best].tolist(), strict=True))

    def _current(self, kind: Kind, length: int) -> Held:
        with self._db.lock:
            if kind not in self._held or kind in self._changed:
                self._held[kind] = self._read(kind, self._held.get(kind) or _nothing(length))
                self._changed.discard(kind)
            return self._held[kind]

    def _read(self, kind: Kind, held: Held) -> Held:
        # A record that is written again gets another number, higher than all before.
        there = np.array([i for (i,) in self._db.execute("SELECT id FROM records WHERE kind = ?", (kind,))], "int64")
        kept = np.isin(held.numbers, there)
        last = int(held.numbers[-1]) if len(held.numbers) else 0
        new = self._db.execute("SELECT id, vector FROM records WHERE kind = ? AND id > ? ORDER BY id", (kind, last))
        if kept.all() and not new:
            return held
        added = np.frombuffer(b"".join([vector for _, vector in new]), dtype="<f2").astype("float32")
        return Held(
            np.concatenate([held.numbers[kept], np.array([number for number, _ in new], dtype="int64")]),
            np.concatenate([held.rows[kept], added.reshape(len(new), held.rows.shape[1])]),
        )


def _nothing(length: int) -> Held:
    return Held(np.zeros(0, dtype="int64"), np.zeros((0, length), dtype="float32"))
