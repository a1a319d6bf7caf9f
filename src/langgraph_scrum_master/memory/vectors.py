"""The vectors of a memory at hand, for kinds of which there are few enough to compare with all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from langgraph_scrum_master.memory.database import Database
from langgraph_scrum_master.memory.records import Kind
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines

FEW = 5_000
"""Records of a kind that are compared one by one, which finds the nearest for sure; of more, an index finds most."""


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
        keys = dict(self._db.execute("SELECT id, key FROM records WHERE kind = ? ORDER BY id", (kind,)))
        there = np.fromiter(keys, dtype="int64", count=len(keys))
        numbers, units = (before.numbers, before.units) if before else (there[:0], np.zeros((0, 1), "float32"))
        new = there[~np.isin(there, numbers)].tolist()
        found = self._db.among("SELECT id, vector FROM records WHERE id IN ({}) ORDER BY id", new)
        left = np.isin(numbers, there)
        parts = [units[left]] if left.any() else []
        if found:
            vectors = np.stack([np.frombuffer(vector, dtype="<f2") for _, vector in found])
            parts.append(_units(vectors.astype("float32")))
        # Numbers only ever grow, so what is new comes last.
        numbers = np.concatenate([numbers[left], np.array([number for number, _ in found], dtype="int64")])
        return _Held(
            change=change,
            numbers=numbers,
            keys=[keys[number] for number in numbers.tolist()],
            units=np.concatenate(parts) if parts else units[:0],
        )


def _units(vectors: Array) -> Array:
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    units: Array = vectors / np.maximum(lengths, 1e-9)
    return units
