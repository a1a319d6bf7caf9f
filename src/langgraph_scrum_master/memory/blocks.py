"""The vectors of a SQLite memory: stored in blocks, cached as indexes in the process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from langgraph_scrum_master.memory.database import DerivedError
from langgraph_scrum_master.memory.records import SEARCHED, Kind
from langgraph_scrum_master.memory.vectors import BLOCK, Nearest, VectorBlock, VectorCache, VectorIndex
from langgraph_scrum_master.rank.features import Array

if TYPE_CHECKING:
    import threading
    from collections.abc import Hashable

    from langgraph_scrum_master.memory.database import ShelfRow, Statements


@dataclass(slots=True)
class _BlockIndex:
    """An in-memory index, and the state of the database that it reflects."""

    index: VectorIndex
    epoch: int = -1
    last: int = 0
    """The epoch and the last record id of the shelf at the last update."""
    versions: list[int] = field(default_factory=list)
    """The version of each block."""
    last_ids: list[int] = field(default_factory=list)
    """The id of the last record of each block."""
    starts: list[int] = field(default_factory=list)
    """The offset of each block in the index."""
    rowids: list[int] = field(default_factory=list)
    """The rowid of each block."""
    packed: int = 0
    """Number of vectors that come from blocks; the rest are not in a block yet."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.index.nbytes

    @property
    def end(self) -> int:
        """The last record id in a block."""
        return self.last_ids[-1] if self.last_ids else 0

    def clear(self) -> None:
        """Drop all vectors."""
        self.index.truncate(0)
        self.versions, self.last_ids, self.starts, self.rowids, self.packed = [], [], [], [], 0


class VectorBlocks:
    """Nearest-neighbour search. Blocks and indexes are derived from the records and can be rebuilt at any time."""

    def __init__(self, database: Hashable, cache: VectorCache, lock: threading.RLock) -> None:
        self._database = database
        self._cache = cache
        self._lock = lock

    def nearest(self, statements: Statements, shelf: ShelfRow, kind: Kind, vector: Array, limit: int) -> Nearest:
        """The records of a kind whose vectors are nearest."""
        with self._lock:
            index = self._current(statements, shelf, kind, len(vector))
        return index.nearest(vector, limit)

    def save(self, statements: Statements, shelf: ShelfRow) -> None:
        """Write vectors that are in no block yet into blocks; a block is written only when it is full."""
        for kind in SEARCHED:
            found = statements.one(
                "SELECT number, last FROM blocks WHERE shelf = ? AND kind = ? ORDER BY number DESC LIMIT 1",
                (shelf.id, kind),
            )
            number, end = found or (0, 0)
            new = statements.vectors(shelf, kind, end)
            for start in range(0, len(new) - BLOCK + 1, BLOCK):
                part, number = new[start : start + BLOCK], number + 1
                block = VectorBlock.of([each for each, _ in part], _stack([each for _, each in part]))
                statements.execute(
                    "INSERT INTO blocks(shelf, kind, number, last, version, checksum, ids, rows, scales) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    # The epoch grows with each removal, so this version is new for this block number.
                    (shelf.id, kind, number, part[-1][0], shelf.epoch, *_with_checksum(block)),
                )

    def remove(self, statements: Statements, shelf: int, kind: Kind, removed: Sequence[int]) -> None:
        """Clear the vectors of these records in their blocks."""
        if not statements.one("SELECT 1 FROM blocks WHERE shelf = ? AND kind = ? LIMIT 1", (shelf, kind)):
            return
        by_block: dict[int, list[int]] = {}
        for each in removed:
            query = "SELECT number FROM blocks WHERE shelf = ? AND kind = ? AND last >= ? ORDER BY number LIMIT 1"
            if found := statements.one(query, (shelf, kind, each)):
                by_block.setdefault(found[0], []).append(each)
        for number, ids in by_block.items():
            where = "WHERE shelf = ? AND kind = ? AND number = ?"
            packed = statements.one(f"SELECT checksum, ids, rows, scales FROM blocks {where}", (shelf, kind, number))
            statements.execute(
                f"UPDATE blocks SET checksum = ?, ids = ?, rows = ?, scales = ?, version = version + 1 {where}",
                (*_with_checksum(_unpack(*packed).without(ids)), shelf, kind, number),
            )

    def check(self, statements: Statements, shelf: ShelfRow) -> list[str]:
        """The differences between the blocks of a shelf and its records."""
        problems: list[str] = []
        for kind in SEARCHED:
            packed: dict[int, Array] = {}
            blocks = statements.execute(
                "SELECT checksum, ids, rows, scales, last FROM blocks WHERE shelf = ? AND kind = ? ORDER BY number",
                (shelf.id, kind),
            )
            for *parts, _ in blocks:
                try:
                    block = _unpack(*parts)
                except DerivedError as error:
                    problems.append(str(error))
                    continue
                present = block.ids > 0
                packed.update(zip(block.ids[present].tolist(), block.rows[present], strict=True))
            end = blocks[-1][4] if blocks else 0
            stored = {number: vector for number, vector in statements.vectors(shelf, kind, 0) if number <= end}
            wrong = stored.keys() ^ packed.keys()
            numbers = sorted(stored.keys() & packed.keys())
            if numbers:
                expected = VectorBlock.of(numbers, _stack([stored[each] for each in numbers]))
                distance = np.abs(expected.rows.astype("i2") - np.stack([packed[each] for each in numbers])).max(axis=1)
                wrong |= {each for each, off in zip(numbers, distance.tolist(), strict=True) if off > 1}
            if wrong:
                problems.append(f"{len(wrong)} vectors of kind {kind!r} differ from those of their records")
        return problems

    def _current(self, statements: Statements, shelf: ShelfRow, kind: Kind, dimensions: int) -> VectorIndex:
        key = (self._database, shelf.id, kind)
        cached = self._cache.get(key)
        if not isinstance(cached, _BlockIndex) or cached.index.dimensions != dimensions:
            cached = self._new(statements, shelf, dimensions)
        if (cached.epoch, cached.last) != (shelf.epoch, shelf.last):
            self._update(statements, shelf, kind, cached)
        self._cache.put(key, cached)
        return cached.index

    def _new(self, statements: Statements, shelf: ShelfRow, dimensions: int) -> _BlockIndex:
        """An empty index. If the vectors would take more than half of the cache, rows stay on disk."""
        if shelf.records * dimensions <= self._cache.most_bytes // 2:
            return _BlockIndex(VectorIndex(dimensions))
        cached = _BlockIndex(VectorIndex(dimensions, lambda offsets: _read_rows(statements, cached, offsets)))
        return cached

    def _update(self, statements: Statements, shelf: ShelfRow, kind: Kind, cached: _BlockIndex) -> None:
        blocks = statements.execute(
            "SELECT rowid, version, last, number FROM blocks WHERE shelf = ? AND kind = ? ORDER BY number",
            (shelf.id, kind),
        )
        if [number for *_, number in blocks] != list(range(1, len(blocks) + 1)):
            raise DerivedError(f"blocks of vectors of kind {kind!r} are missing")
        if [last for _, _, last, _ in blocks[: len(cached.last_ids)]] != cached.last_ids:
            cached.clear()
        after = max(cached.last, cached.end)
        if len(blocks) != len(cached.versions) or cached.epoch != shelf.epoch:
            # Vectors outside blocks are read again: they may be in a block now, or deleted.
            cached.index.truncate(cached.packed)
            after = cached.end
        for i, (rowid, version, last, _) in enumerate(blocks):
            if i < len(cached.versions) and cached.versions[i] == version:
                continue
            block = _unpack(*statements.one("SELECT checksum, ids, rows, scales FROM blocks WHERE rowid = ?", (rowid,)))
            if i < len(cached.versions):
                cached.index.replace(cached.starts[i], block)
                cached.versions[i] = version
            else:
                cached.starts.append(len(cached.index))
                cached.versions.append(version)
                cached.rowids.append(rowid)
                cached.index.append(block, on_disk=True)
                cached.last_ids.append(last)
                cached.packed = len(cached.index)
                after = last
        if new := statements.vectors(shelf, kind, after):
            cached.index.append(VectorBlock.of([each for each, _ in new], _stack([each for _, each in new])))
        cached.epoch, cached.last = shelf.epoch, shelf.last


def _read_rows(statements: Statements, cached: _BlockIndex, offsets: Array) -> Array:
    """The rows at these offsets, which are in ascending order, from the blocks on disk."""
    rows = np.zeros((len(offsets), cached.index.dimensions), "i1")
    blocks = np.searchsorted(cached.starts, offsets, side="right") - 1
    for number in np.unique(blocks).tolist():
        own = np.flatnonzero(blocks == number)
        # The block is missing while another process rebuilds: its vectors then count as zero.
        if packed := statements.one("SELECT rows FROM blocks WHERE rowid = ?", (cached.rowids[number],)):
            block = np.frombuffer(packed[0], "i1").reshape(-1, cached.index.dimensions)
            rows[own] = block[offsets[own] - cached.starts[number]]
    return rows


def _with_checksum(block: VectorBlock) -> tuple[int, bytes, bytes, bytes]:
    parts = block.pack()
    return _checksum(*parts), *parts


def _unpack(checksum: int, ids: bytes, rows: bytes, scales: bytes) -> VectorBlock:
    """The block from its stored parts. Raises `DerivedError` if the checksum is wrong."""
    if not all(isinstance(part, bytes) for part in (ids, rows, scales)) or checksum != _checksum(ids, rows, scales):
        raise DerivedError("a block of vectors is damaged")
    return VectorBlock.unpack(ids, rows, scales)


def _checksum(ids: bytes, rows: bytes, scales: bytes) -> int:
    return crc32(rows, crc32(scales, crc32(ids)))


def _stack(packed: Sequence[bytes]) -> Array:
    return np.frombuffer(b"".join(packed), "<f2").reshape(len(packed), -1)
