"""The vectors of a memory at hand: few are compared one by one, of more a sketch of each first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from langgraph_scrum_master.memory.database import Database
from langgraph_scrum_master.memory.records import Kind
from langgraph_scrum_master.rank.asked import units
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
class Held:
    """The vectors of some records, in the order of their numbers."""

    numbers: Array
    rows: Array
    """Unit vectors; of many records in bytes, to be multiplied with the scale of each."""
    scales: Array
    sketches: tuple[Array, ...]
    """A bit for each number of a vector: whether it is above zero. A list for each 64 of them; none for few records."""

    @property
    def few(self) -> bool:
        """Whether each is compared."""
        return not self.sketches

    def nearest(self, vector: Array, limit: int) -> list[tuple[int, float]]:
        """The numbers of the records whose vectors are nearest, with their cosines."""
        wanted = units(np.asarray(vector, dtype="float32")[None, :])[0]
        places = np.arange(len(self.numbers)) if self.few else self._likely(wanted)
        found = self._cosines(places, wanted)
        near = np.argpartition(-found, limit - 1)[:limit] if limit < len(found) else np.arange(len(found))
        best = near[np.lexsort((near, -found[near]))]
        return list(zip(self.numbers[places[best]].tolist(), found[best].tolist(), strict=True))

    def at(self, places: Array) -> Held:
        """Those at these places alone."""
        return Held(
            numbers=self.numbers[places],
            rows=self.rows[places],
            scales=self.scales[places],
            sketches=tuple(known[places] for known in self.sketches),
        )

    def plus(self, added: Held) -> Held:
        """With these as well."""
        return Held(
            numbers=_appended(self.numbers, added.numbers),
            rows=_appended(self.rows, added.rows),
            scales=_appended(self.scales, added.scales),
            sketches=tuple(map(_appended, self.sketches, added.sketches)),
        )

    def _likely(self, wanted: Array) -> Array:
        """Where those are whose sketches are nearest."""
        apart = np.zeros(len(self.numbers), dtype="u2")
        for known, bits in zip(self.sketches, _sketches(wanted[None, :]), strict=True):
            apart += np.bitwise_count(known ^ bits)
        within = np.searchsorted(np.cumsum(np.bincount(apart)), LIKELY)
        return np.flatnonzero(apart <= within)

    def _cosines(self, places: Array, wanted: Array) -> Array:
        if self.few:
            return cosines(self.rows, wanted)
        return cosines(self.rows[places].astype("float32"), wanted) * self.scales[places]


class _Read(NamedTuple):
    """What was read of a kind: after which change of the ledger, and up to which number of any record."""

    change: tuple[int, int]
    last: int
    held: Held | None


class Vectors:
    """Read once, and again only what was written since."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._known: dict[Kind, _Read] = {}

    def up_to_date(self, kind: Kind, count: int, length: int) -> Held | None:
        """The vectors of a kind of which there are so many, so long; for whoever holds the database's lock."""
        known, change = self._known.get(kind), self._db.change
        if known is None or known.change != change:
            few = count * length <= FEW_NUMBERS
            # Few are held in another form than many.
            same = known if known and known.held and known.held.few == few else None
            last = self._db.one("SELECT max(id) FROM records")[0] or 0
            new = list(self._pages(kind, same.last if same else 0, last, few))
            known = self._known[kind] = _Read(change, last, self._joined(kind, count, same and same.held, new))
        return known.held

    def _pages(self, kind: Kind, first: int, last: int, few: bool) -> Iterator[Held]:
        # By their numbers alone: there are few new ones, whatever their kind.
        query = f"SELECT id, vector FROM records WHERE id > ? AND id <= ? AND +kind = ? ORDER BY id LIMIT {PAGE}"
        while page := self._db.execute(query, (first, last, kind)):
            first = page[-1][0]
            yield _page([number for number, _ in page], [vector for _, vector in page], few)

    def _joined(self, kind: Kind, count: int, held: Held | None, new: Sequence[Held]) -> Held | None:
        """What is held and is still there, and what is new, which comes last, for numbers only ever grow."""
        if held and len(held.numbers) + sum(len(page.numbers) for page in new) != count:
            there = [number for (number,) in self._db.execute("SELECT id FROM records WHERE kind = ?", (kind,))]
            held = held.at(np.flatnonzero(np.isin(held.numbers, there)))
        parts = [*([held] if held and len(held.numbers) else []), *new]
        return reduce(Held.plus, parts) if parts else None


def _page(numbers: Sequence[int], packed: Sequence[bytes], few: bool) -> Held:
    vectors = units(np.frombuffer(b"".join(packed), dtype="<f2").reshape(len(packed), -1).astype("float32"))
    if few:
        return Held(numbers=np.array(numbers), rows=vectors, scales=np.ones(len(vectors), "float32"), sketches=())
    scales = np.maximum(np.abs(vectors).max(axis=1), 1e-9) / 127
    rows = np.round(vectors / scales[:, None]).astype("i1")
    return Held(numbers=np.array(numbers), rows=rows, scales=scales, sketches=_sketches(vectors))


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
