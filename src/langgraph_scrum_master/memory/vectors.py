"""Nearest-neighbour search: exact for few vectors, preselected by sign bits (binary quantisation) for many.

The sign bits are always in memory. The vectors, quantised to int8, are in memory too, unless they are too large: then
the rows of the preselected vectors are read from disk.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines
from langgraph_scrum_master.rank.query import unit_rows
from langgraph_scrum_master.rank.table import GrowingArray

COMPARED_EXACTLY = 5_120_000
"""Vectors times dimensions up to which search is exact: 20,000 vectors of the static model."""

_PRESELECTED = 3_072
"""Vectors preselected by Hamming distance of the sign bits. They include 98 % of the nearest 20 among 100,000
(`benchmarks/bench_memory.py --large`)."""

PRESELECTED_SHARE = 0.008
"""The same as a share of all vectors, if that is more."""

_CACHED_AT_ONCE = 256
"""Vectors whose cosines are computed at once: a third faster than all at once."""

BLOCK = 4_096
"""Vectors per block."""

RowReader = Callable[[Array], Array]
"""Reads the rows at these offsets from disk."""

CACHE_BYTES = 512 * 1024 * 1024
"""Bytes of cached vectors per process, for all memories, unless `CACHE_VARIABLE` is set."""

CACHE_VARIABLE = "SCRUM_MASTER_VECTOR_CACHE_MB"
"""The environment variable for the size of the cache in megabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBlock:
    """The unit vectors of some records, quantised to int8."""

    ids: Array
    """Record ids; 0 for a deleted record."""
    rows: Array
    scales: Array
    """The scale of each row: vector = row * scale."""

    @classmethod
    def of(cls, ids: Sequence[int], vectors: Array) -> VectorBlock:
        """Quantise these vectors."""
        scaled = unit_rows(vectors.astype("float32"))
        scales = np.maximum(np.abs(scaled).max(axis=1, initial=0.0), 1e-9) / 127
        rows = np.round(scaled / scales[:, None]).astype("i1")
        return cls(ids=np.array(ids, dtype="<i8"), rows=rows, scales=scales.astype("<f4"))

    @classmethod
    def unpack(cls, ids: bytes, rows: bytes, scales: bytes) -> VectorBlock:
        """The block that `pack` serialised."""
        numbers = np.frombuffer(ids, "<i8")
        return cls(ids=numbers, rows=np.frombuffer(rows, "i1").reshape(len(numbers), -1), scales=_floats(scales))

    def pack(self) -> tuple[bytes, bytes, bytes]:
        """The ids, rows and scales as bytes."""
        return self.ids.astype("<i8").tobytes(), self.rows.tobytes(), self.scales.astype("<f4").tobytes()

    def without(self, removed: Sequence[int]) -> VectorBlock:
        """The block with the vectors of these records cleared."""
        remaining = ~np.isin(self.ids, removed)
        return VectorBlock(
            ids=np.where(remaining, self.ids, 0),
            rows=self.rows * remaining[:, None],
            scales=np.where(remaining, self.scales, 0),
        )


def _floats(packed: bytes) -> Array:
    return np.frombuffer(packed, "<f4")


class Nearest(NamedTuple):
    """Record ids and cosines, nearest first."""

    ids: Array
    cosines: Array


class VectorIndex:
    """The vectors of one kind of record in one shelf, in the order of their ids."""

    def __init__(self, dimensions: int, read_rows: RowReader | None = None) -> None:
        self._read_rows = read_rows
        """If given, the rows of blocks stay on disk."""
        self._on_disk = 0
        """Number of leading rows that are on disk."""
        self._ids = GrowingArray(np.zeros(0, "<i8"))
        self._rows = GrowingArray(np.zeros((0, dimensions), "i1"))
        self._scales = GrowingArray(np.zeros(0, "<f4"))
        # One array per 64-bit word, because the Hamming distance is computed word by word.
        self._bits = [GrowingArray(np.zeros(0, "<u8")) for _ in range(-(-dimensions // 64))]
        self._exact: Array | None = None
        self.dimensions = dimensions

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        exact = 4 * self.dimensions * len(self) if self._is_exact(len(self)) else 0
        return len(self) * (12 + 8 * len(self._bits)) + len(self._rows) * self.dimensions + exact

    def append(self, block: VectorBlock, on_disk: bool = False) -> None:
        """Append vectors; those `on_disk` can be read again from there."""
        for words, added in zip(self._bits, _sign_bits(block.rows).T, strict=True):
            words.append(added)
        if on_disk and self._read_rows is not None:
            self._on_disk += len(block.rows)
        else:
            self._rows.append(block.rows)
        self._scales.append(block.scales)
        # Appended last, because a search in another thread takes its length from the ids.
        self._ids.append(block.ids)
        self._exact = None

    def truncate(self, count: int) -> None:
        """Keep only the first `count` vectors."""
        self._ids.values = self._ids.values[:count]
        for values in (self._scales, *self._bits):
            values.values = values.values[:count]
        self._on_disk = min(self._on_disk, count)
        self._rows.values = self._rows.values[: count - self._on_disk]
        self._exact = None

    def replace(self, start: int, block: VectorBlock) -> None:
        """Replace the vectors from `start` on by those of a block."""
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
        if self._is_exact(len(ids)):
            offsets = np.arange(len(ids))
            found = cosines(self._floats(len(ids)), wanted)
        else:
            offsets = self._preselect(wanted, len(ids))
            found = self._cosines(offsets, wanted)
        present = ids[offsets] > 0
        if not present.all():
            offsets, found = offsets[present], found[present]
        near = np.argpartition(-found, limit - 1)[:limit] if limit < len(found) else np.arange(len(found))
        best = near[np.lexsort((near, -found[near]))]
        return Nearest(ids[offsets[best]], found[best])

    def _is_exact(self, count: int) -> bool:
        return count * self.dimensions <= COMPARED_EXACTLY and not self._on_disk

    def _floats(self, count: int) -> Array:
        exact = self._exact
        if exact is None or len(exact) != count:
            exact = self._rows.values[:count] * self._scales.values[:count, None]
            self._exact = exact
        return exact

    def _preselect(self, wanted: Array, count: int) -> Array:
        """The offsets of the vectors whose sign bits have the smallest Hamming distance."""
        distance, differ, number = np.zeros(count, "u2"), np.empty(count, "<u8"), np.empty(count, "u1")
        for words, bits in zip(self._bits, _sign_bits(wanted[None, :])[0], strict=True):
            np.bitwise_xor(words.values[:count], bits, out=differ)
            np.bitwise_count(differ, out=number)
            np.add(distance, number, out=distance)
        within = np.searchsorted(np.cumsum(np.bincount(distance)), max(_PRESELECTED, int(PRESELECTED_SHARE * count)))
        return np.flatnonzero(distance <= within)

    def _cosines(self, offsets: Array, wanted: Array) -> Array:
        if self._on_disk:
            found = cosines(self._read(offsets).astype("float32"), wanted)
        else:
            found = np.concatenate([self._part_cosines(part, wanted) for part in _parts(offsets)])
        return found * self._scales.values[offsets]

    def _part_cosines(self, offsets: Array, wanted: Array) -> Array:
        return cosines(self._rows.values.take(offsets, axis=0).astype("float32"), wanted)

    def _read(self, offsets: Array) -> Array:
        """The rows at these offsets, which are in ascending order, from disk and from memory."""
        assert self._read_rows is not None
        split = int(np.searchsorted(offsets, self._on_disk))
        in_memory = self._rows.values[offsets[split:] - self._on_disk]
        return np.concatenate([self._read_rows(offsets[:split]), in_memory]) if split else in_memory


def _parts(offsets: Array) -> list[Array]:
    """The offsets in parts whose vectors fit into the processor's cache."""
    return [offsets[start : start + _CACHED_AT_ONCE] for start in range(0, max(1, len(offsets)), _CACHED_AT_ONCE)]


def _sign_bits(vectors: Array) -> Array:
    bits = np.zeros((len(vectors), -(-vectors.shape[1] // 64) * 64), dtype=bool)
    bits[:, : vectors.shape[1]] = vectors > 0
    return np.packbits(bits, axis=1).view("<u8")


class Sized(Protocol):
    """An object that reports its size."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        ...


class VectorCache:
    """An LRU cache of vector indexes, limited by size."""

    def __init__(self, most_bytes: int = CACHE_BYTES) -> None:
        self.most_bytes = most_bytes
        self._indexes: OrderedDict[Hashable, Sized] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Sized | None:
        """The index with this key, or None."""
        with self._lock:
            if key in self._indexes:
                self._indexes.move_to_end(key)
            return self._indexes.get(key)

    def put(self, key: Hashable, index: Sized) -> None:
        """Add the index, and evict the least recently used ones if the cache is too large."""
        with self._lock:
            self._indexes[key] = index
            self._indexes.move_to_end(key)
            total = sum(each.nbytes for each in self._indexes.values())
            while total > self.most_bytes and len(self._indexes) > 1:
                _, evicted = self._indexes.popitem(last=False)
                total -= evicted.nbytes

    def drop(self, prefix: Hashable) -> None:
        """Drop the indexes whose keys start with this."""
        with self._lock:
            for key in [key for key in self._indexes if isinstance(key, tuple) and key[0] == prefix]:
                del self._indexes[key]

    @property
    def nbytes(self) -> int:
        """Size in bytes of all indexes."""
        with self._lock:
            return sum(each.nbytes for each in self._indexes.values())


def cache_bytes(environ: Mapping[str, str]) -> int:
    """The size of the cache from the environment, or the default."""
    given = environ.get(CACHE_VARIABLE, "")
    if given and not (given.isdecimal() and int(given)):
        raise ConfigError(f"{CACHE_VARIABLE} must be a whole number of megabytes, 1 or more, got {given!r}")
    return int(given) * 1024 * 1024 if given else CACHE_BYTES


VECTORS = VectorCache(cache_bytes(os.environ))
"""The cache of this process."""
