"""Nearest vectors: few are compared exactly, of more the sign bits first (binary quantisation).

The sign bits are always held in memory. The vectors themselves are too, in a byte a number, unless they are too many:
then those whose sign bits are nearest are read from the disk.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines
from langgraph_scrum_master.rank.query import unit_rows

COMPARED_EXACTLY = 5_120_000
"""Numbers in all vectors of a kind, 20,000 vectors of the static model, up to which a query is compared with each."""

_LIKELY = 3_072
"""Vectors whose sign bits are nearest, and which are compared then. They hold 98 % of the nearest 20 of 100,000
(`benchmarks/bench_memory.py --large`)."""

LIKELY_SHARE = 0.008
"""The same as a share of all, where that is more."""

BLOCK = 4_096
"""Vectors in a block."""

RowReader = Callable[[Array], Array]
"""Reads the rows at these places from the disk."""

CACHE_BYTES = 512 * 1024 * 1024
"""Bytes of vectors that a process holds, of all shelves of all memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBlock:
    """The unit vectors of some records, quantised to a byte a number."""

    ids: Array
    """The ids of the records; 0 for a record that is gone."""
    rows: Array
    scales: Array
    """What each row is to be multiplied with."""

    @classmethod
    def of(cls, ids: Sequence[int], vectors: Array) -> VectorBlock:
        """A block of these vectors."""
        scaled = unit_rows(vectors.astype("float32"))
        scales = np.maximum(np.abs(scaled).max(axis=1, initial=0.0), 1e-9) / 127
        rows = np.round(scaled / scales[:, None]).astype("i1")
        return cls(ids=np.array(ids, dtype="<i8"), rows=rows, scales=scales.astype("<f4"))

    @classmethod
    def unpack(cls, ids: bytes, rows: bytes, scales: bytes) -> VectorBlock:
        """The block that `pack` gave."""
        numbers = np.frombuffer(ids, "<i8")
        return cls(ids=numbers, rows=np.frombuffer(rows, "i1").reshape(len(numbers), -1), scales=_floats(scales))

    def pack(self) -> tuple[bytes, bytes, bytes]:
        """The ids, rows and scales as bytes."""
        return self.ids.astype("<i8").tobytes(), self.rows.tobytes(), self.scales.astype("<f4").tobytes()

    def without(self, gone: Sequence[int]) -> VectorBlock:
        """The block with nothing in the place of these records."""
        kept = ~np.isin(self.ids, gone)
        return VectorBlock(
            ids=np.where(kept, self.ids, 0), rows=self.rows * kept[:, None], scales=np.where(kept, self.scales, 0)
        )


def _floats(packed: bytes) -> Array:
    return np.frombuffer(packed, "<f4")


class Nearest(NamedTuple):
    """Records, and the cosines of their vectors with a query's, nearest first."""

    ids: Array
    cosines: Array


class VectorIndex:
    """The vectors of one kind of record in one shelf, in the order of their ids."""

    def __init__(self, dimensions: int, read_rows: RowReader | None = None) -> None:
        self._read_rows = read_rows
        """Where given, rows of blocks stay on the disk."""
        self._on_disk = 0
        """Rows from the beginning that are not held."""
        self._ids = _Growing(np.zeros(0, "<i8"))
        self._rows = _Growing(np.zeros((0, dimensions), "i1"))
        self._scales = _Growing(np.zeros(0, "<f4"))
        # Each word of 64 bits in an array of its own: they are walked one after the other.
        self._bits = [_Growing(np.zeros(0, "<u8")) for _ in range(-(-dimensions // 64))]
        self._exact: Array | None = None
        self.dimensions = dimensions

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        exact = 4 * self.dimensions * len(self) if self._is_few(len(self)) else 0
        return len(self) * (12 + 8 * len(self._bits)) + len(self._rows) * self.dimensions + exact

    def append(self, block: VectorBlock, on_disk: bool = False) -> None:
        """Add vectors behind those that are there; those that are `on_disk` can be read again from there."""
        for words, added in zip(self._bits, _sign_bits(block.rows).T, strict=True):
            words.append(added)
        if on_disk and self._read_rows is not None:
            self._on_disk += len(block.rows)
        else:
            self._rows.append(block.rows)
        self._scales.append(block.scales)
        # Last, for a search in another thread looks at as many as there are ids.
        self._ids.append(block.ids)
        self._exact = None

    def truncate(self, count: int) -> None:
        """Drop all but so many vectors from the beginning."""
        self._ids.values = self._ids.values[:count]
        for values in (self._scales, *self._bits):
            values.values = values.values[:count]
        self._on_disk = min(self._on_disk, count)
        self._rows.values = self._rows.values[: count - self._on_disk]
        self._exact = None

    def replace(self, start: int, block: VectorBlock) -> None:
        """Put the vectors of a block in the place of those from `start` on."""
        part = slice(start, start + len(block.ids))
        self._ids.values[part] = block.ids
        if start >= self._on_disk:
            self._rows.values[start - self._on_disk : start - self._on_disk + len(block.ids)] = block.rows
        self._scales.values[part] = block.scales
        for words, bits in zip(self._bits, _sign_bits(block.rows).T, strict=True):
            words.values[part] = bits
        self._exact = None

    def nearest(self, vector: Array, limit: int) -> Nearest:
        """The records whose vectors are nearest."""
        wanted = unit_rows(np.asarray(vector, dtype="float32")[None, :])[0]
        ids = self._ids.values
        if self._is_few(len(ids)):
            places = np.arange(len(ids))
            found = cosines(self._floats(len(ids)), wanted)
        else:
            places = self._likely(wanted, len(ids))
            found = self._cosines(places, wanted)
        there = ids[places] > 0
        if not there.all():
            places, found = places[there], found[there]
        near = np.argpartition(-found, limit - 1)[:limit] if limit < len(found) else np.arange(len(found))
        best = near[np.lexsort((near, -found[near]))]
        return Nearest(ids[places[best]], found[best])

    def _is_few(self, count: int) -> bool:
        return count * self.dimensions <= COMPARED_EXACTLY and not self._on_disk

    def _floats(self, count: int) -> Array:
        exact = self._exact
        if exact is None or len(exact) != count:
            exact = self._rows.values[:count] * self._scales.values[:count, None]
            self._exact = exact
        return exact

    def _likely(self, wanted: Array, count: int) -> Array:
        """The places of the vectors whose sign bits are nearest."""
        apart, differ, number = np.zeros(count, "u2"), np.empty(count, "<u8"), np.empty(count, "u1")
        for words, bits in zip(self._bits, _sign_bits(wanted[None, :])[0], strict=True):
            np.bitwise_xor(words.values[:count], bits, out=differ)
            np.bitwise_count(differ, out=number)
            np.add(apart, number, out=apart)
        within = np.searchsorted(np.cumsum(np.bincount(apart)), max(_LIKELY, int(LIKELY_SHARE * count)))
        return np.flatnonzero(apart <= within)

    def _cosines(self, places: Array, wanted: Array) -> Array:
        rows = self._rows.values[places - self._on_disk] if not self._on_disk else self._both(places)
        return cosines(rows.astype("float32"), wanted) * self._scales.values[places]

    def _both(self, places: Array) -> Array:
        """The rows at these places, in ascending order, from the disk and from memory."""
        assert self._read_rows is not None
        split = int(np.searchsorted(places, self._on_disk))
        held = self._rows.values[places[split:] - self._on_disk]
        return np.concatenate([self._read_rows(places[:split]), held]) if split else held


class _Growing:
    """An array that can be appended to without copying it each time."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def append(self, added: Array) -> None:
        known, end, room = self.values, len(self.values) + len(added), self.values.base
        if not isinstance(room, np.ndarray) or room.shape[1:] != known.shape[1:] or len(room) < end:
            room = np.empty((end + end // 8, *known.shape[1:]), known.dtype)
            room[: len(known)] = known
        room[len(known) : end] = added
        self.values = room[:end]


def _sign_bits(vectors: Array) -> Array:
    bits = np.zeros((len(vectors), -(-vectors.shape[1] // 64) * 64), dtype=bool)
    bits[:, : vectors.shape[1]] = vectors > 0
    return np.packbits(bits, axis=1).view("<u8")


class Sized(Protocol):
    """What takes memory, and says how much."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        ...


class VectorCache:
    """The vector indexes that a process holds: those used last, as long as they fit."""

    def __init__(self, most_bytes: int = CACHE_BYTES) -> None:
        self.most_bytes = most_bytes
        self._held: OrderedDict[Hashable, Sized] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Sized | None:
        """The index that is held under this key."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: Hashable, index: Sized) -> None:
        """Hold the index, and drop those that were not used for longest if all together are too large."""
        with self._lock:
            self._held[key] = index
            self._held.move_to_end(key)
            total = sum(each.nbytes for each in self._held.values())
            while total > self.most_bytes and len(self._held) > 1:
                _, dropped = self._held.popitem(last=False)
                total -= dropped.nbytes

    def drop(self, prefix: Hashable) -> None:
        """Drop the indexes whose keys begin with this."""
        with self._lock:
            for key in [key for key in self._held if isinstance(key, tuple) and key[0] == prefix]:
                del self._held[key]

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        with self._lock:
            return sum(each.nbytes for each in self._held.values())


VECTORS = VectorCache()
"""The vectors of this process."""
