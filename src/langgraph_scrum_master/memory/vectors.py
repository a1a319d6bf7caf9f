"""The vectors of a memory at hand: few are compared one by one, of more a sketch of each first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from langgraph_scrum_master.memory.database import Database
from langgraph_scrum_master.memory.records import Kind
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines

FEW_NUMBERS = 5_120_000
"""Of a kind's vectors together, 20,000 with the static model, up to which a query is compared with each, which finds
the nearest for sure; of more, with those whose sketches are nearest.
"""

LIKELY = 3_072
"""Records whose sketches are nearest: among them are 98 % of the nearest 20 of 100,000."""

MOST_NUMBERS = 64_000_000
"""Of a kind's vectors together, 250,000 with the static model, up to which they are held, from then on in a byte each;
of more, Chroma's index finds the nearest.
"""

PAGE = 10_000
"""Vectors that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The vectors of some records, in the order of their numbers."""

    numbers: Array
    rows: Array
    """Unit vectors; of many records in bytes, to be multiplied with the scale of each."""
    scales: Array
    sketches: tuple[Array, ...]
    """A bit for each number of a vector: whether it is above zero. A list for each 64 of them."""

    @property
    def few(self) -> bool:
        """Whether each is compared."""
        return bool(self.rows.dtype == "float32")

    def likely(self, wanted: Array) -> Array:
        """Where those are whose sketches are nearest; everywhere, if they are few."""
        if self.few:
            return np.arange(len(self.numbers))
        apart = np.zeros(len(self.numbers), dtype="u2")
        for known, bits in zip(self.sketches, _sketches(wanted[None, :]), strict=True):
            apart += np.bitwise_count(known ^ bits)
        within = np.searchsorted(np.cumsum(np.bincount(apart)), LIKELY)
        return np.flatnonzero(apart <= within)

    def cosines(self, places: Array, wanted: Array) -> Array:
        """How near those at these places are."""
        if self.few:
            return cosines(self.rows, wanted)
        return cosines(self.rows[places].astype("float32"), wanted) * self.scales[places]

    def at(self, places: Array) -> _Held:
        """Those at these places alone."""
        return _Held(
            numbers=self.numbers[places],
            rows=self.rows[places],
            scales=self.scales[places],
            sketches=tuple(known[places] for known in self.sketches),
        )

    def plus(self, added: _Held) -> _Held:
        """With these as well."""
        return _Held(
            numbers=_appended(self.numbers, added.numbers),
            rows=_appended(self.rows, added.rows),
            scales=_appended(self.scales, added.scales),
            sketches=tuple(map(_appended, self.sketches, added.sketches)),
        )


class Vectors:
    """Read once, and again only what was written since."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._held: dict[Kind, tuple[tuple[int, int], _Held]] = {}

    def nearest(self, kind: Kind, count: int, vector: Array, limit: int) -> list[tuple[int, float]]:
        """The numbers of the records of a kind, so many, whose vectors are nearest, with their cosines."""
        wanted = _units(np.asarray(vector, dtype="float32")[None, :])[0]
        held = self._up_to_date(kind, count, few=count * len(wanted) <= FEW_NUMBERS)
        if held is None:
            return []
        places = held.likely(wanted)
        found = held.cosines(places, wanted)
        near = np.argpartition(-found, limit - 1)[:limit] if limit < len(found) else np.arange(len(found))
        best = near[np.lexsort((near, -found[near]))]
        return list(zip(held.numbers[places[best]].tolist(), found[best].tolist(), strict=True))

    def _up_to_date(self, kind: Kind, count: int, few: bool) -> _Held | None:
        with self._db.lock:
            change = self._db.change
            known, held = self._held.get(kind, (None, None))
            if known != change:
                held = self._read(kind, held, count, few)
                if held is not None:
                    self._held[kind] = change, held
            return held

    def _read(self, kind: Kind, before: _Held | None, count: int, few: bool) -> _Held | None:
        held = before if before and before.few == few else None
        # Numbers only ever grow, so what is new comes last.
        new = list(self._after(kind, int(held.numbers[-1]) if held else 0, few))
        if held and len(held.numbers) + sum(len(page.numbers) for page in new) != count:
            there = [number for (number,) in self._db.execute("SELECT id FROM records WHERE kind = ?", (kind,))]
            held = held.at(np.flatnonzero(np.isin(held.numbers, there)))
        parts = [*([held] if held and len(held.numbers) else []), *new]
        return reduce(_Held.plus, parts) if parts else None

    def _after(self, kind: Kind, last: int, few: bool) -> Iterator[_Held]:
        # By their numbers alone: there are few after the last, whatever their kind.
        query = f"SELECT id, vector FROM records WHERE id > ? AND +kind = ? ORDER BY id LIMIT {PAGE}"
        while page := self._db.execute(query, (last, kind)):
            last = page[-1][0]
            yield _page([number for number, _ in page], [vector for _, vector in page], few)


def _page(numbers: Sequence[int], packed: Sequence[bytes], few: bool) -> _Held:
    units = _units(np.frombuffer(b"".join(packed), dtype="<f2").reshape(len(packed), -1).astype("float32"))
    held = _Held(
        numbers=np.array(numbers), rows=units, scales=np.ones(len(units), "float32"), sketches=_sketches(units)
    )
    if few:
        return held
    scales = np.maximum(np.abs(units).max(axis=1), 1e-9) / 127
    return replace(held, rows=np.round(units / scales[:, None]).astype("i1"), scales=scales)


def _appended(known: Array, added: Array) -> Array:
    """Both in a row: in place, if there is room behind the first, for all would have to be copied else."""
    end, room = len(known) + len(added), known.base
    if not isinstance(room, np.ndarray) or room.shape[1:] != known.shape[1:] or len(room) < end:
        room = np.empty((end + end // 8, *known.shape[1:]), known.dtype)
        room[: len(known)] = known
    room[len(known) : end] = added
    return room[:end]


def _sketches(vectors: Array) -> tuple[Array, ...]:
    bits = np.zeros((len(vectors), -(-vectors.shape[1] // 64) * 64), dtype=bool)
    bits[:, : vectors.shape[1]] = vectors > 0
    return tuple(part.copy() for part in np.packbits(bits, axis=1).view("u8").T)


def _units(vectors: Array) -> Array:
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    units: Array = vectors / np.maximum(lengths, 1e-9)
    return units
