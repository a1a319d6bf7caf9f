"""The vectors of a memory at hand, for kinds of which there are few enough to compare with all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from langgraph_scrum_master.memory.database import Database
from langgraph_scrum_master.memory.records import Kind
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines

MOST_NUMBERS = 5_120_000
"""Of a kind's vectors together, about 20 MB, up to which a query is compared with each, which finds the nearest for
sure; of more, an index finds most. That is 20,000 records with the static model.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The vectors of a kind, in the order of the records' numbers, and after which change of the ledger."""

    change: tuple[int, int]
    numbers: Array
    keys: list[str]
    units: Array


class Vectors:
    """Read once, and again only what was written since."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._held: dict[Kind, _Held] = {}

    def nearest(self, kind: Kind, vector: Array, limit: int) -> list[tuple[str, float]]:
        """The keys of the records of a kind whose vectors are nearest, with their cosines."""
        held = self._up_to_date(kind)
        if not held.keys:
            return []
        wanted = _units(np.asarray(vector, dtype="float32")[None, :])[0]
        found = cosines(held.units, wanted)
        near = np.argpartition(-found, limit - 1)[:limit] if limit < len(found) else np.arange(len(found))
        best = near[np.lexsort((near, -found[near]))].tolist()
        return [(held.keys[i], float(found[i])) for i in best]

    def _up_to_date(self, kind: Kind) -> _Held:
        with self._db.lock:
            held, change = self._held.get(kind), self._db.change
            if held is None or held.change != change:
                held = self._held[kind] = self._read(kind, held, change)
            return held

    def _read(self, kind: Kind, before: _Held | None, change: tuple[int, int]) -> _Held:
        held = before or _Held(change=change, numbers=np.zeros(0, "int64"), keys=[], units=np.zeros((0, 1), "float32"))
        last = int(held.numbers[-1]) if held.keys else 0
        # Numbers only ever grow, so what is new comes last. By them alone: there are few new ones, whatever their kind.
        query = "SELECT id, key, vector FROM records WHERE id > ? AND +kind = ? ORDER BY id"
        new = self._db.execute(query, (last, kind))
        if self._db.one("SELECT count(*) FROM records WHERE kind = ?", (kind,))[0] != len(held.keys) + len(new):
            held = self._left(kind, held)
        if not new:
            return replace(held, change=change)
        vectors = _units(np.stack([np.frombuffer(vector, dtype="<f2") for *_, vector in new]).astype("float32"))
        return _Held(
            change=change,
            numbers=np.append(held.numbers, [number for number, *_ in new]),
            keys=[*held.keys, *(key for _, key, _ in new)],
            units=np.concatenate([held.units, vectors]) if held.keys else vectors,
        )

    def _left(self, kind: Kind, held: _Held) -> _Held:
        """Those of the records that are still there."""
        there = [number for (number,) in self._db.execute("SELECT id FROM records WHERE kind = ?", (kind,))]
        left = np.isin(held.numbers, there)
        keys = [key for key, stays in zip(held.keys, left.tolist(), strict=True) if stays]
        return replace(held, numbers=held.numbers[left], keys=keys, units=held.units[left])


def _units(vectors: Array) -> Array:
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    units: Array = vectors / np.maximum(lengths, 1e-9)
    return units
