"""The vectors of a SQLite memory: packed into blocks in the database, and held as indexes in the process."""

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
class _Held:
    """An index, and what of the database is in it."""

    index: VectorIndex
    epoch: int = -1
    last: int = 0
    """The epoch of the shelf, and the id of its last record, when it was looked at."""
    versions: list[int] = field(default_factory=list)
    """Of the blocks, in order."""
    lasts: list[int] = field(default_factory=list)
    """The id of the last record of each block."""
    starts: list[int] = field(default_factory=list)
    """Where each block begins in the index."""
    blocks: list[int] = field(default_factory=list)
    """The rowid of each block."""
    packed: int = 0
    """Vectors that are in blocks; those behind them are in no block yet."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return self.index.nbytes

    @property
    def end(self) -> int:
        """The id of the last record that is in a block."""
        return self.lasts[-1] if self.lasts else 0

    def clear(self) -> None:
        """Drop all vectors."""
        self.index.truncate(0)
        self.versions, self.lasts, self.starts, self.blocks, self.packed = [], [], [], [], 0


class VectorBlocks:
    """Finds the nearest vectors. Derived from the records: blocks and indexes can be made again at any time."""

    def __init__(self, database: Hashable, cache: VectorCache, lock: threading.RLock) -> None:
        self._database = database
        self._cache = cache
        self._lock = lock

    def nearest(self, statements: Statements, shelf: ShelfRow, kind: Kind, vector: Array, limit: int) -> Nearest:
        """The records of a kind whose vectors are nearest."""
        with self._lock:
            index = self._up_to_date(statements, shelf, kind, len(vector))
        return index.nearest(vector, limit)

    def save(self, statements: Statements, shelf: ShelfRow) -> None:
        """Pack vectors that are in no block yet, where there are enough for one."""
        for kind in SEARCHED:
            found = statements.one(
                "SELECT number, last FROM blocks WHERE shelf = ? AND kind = ? ORDER BY number DESC LIMIT 1",
                (shelf.id, kind),
            )
            number, end = found or (0, 0)
            new = statements.vectors(shelf, kind, end)
            for start in range(0, len(new) - BLOCK + 1, BLOCK):
                part, number = new[start : start + BLOCK], number + 1
                block = VectorBlock.of([each for each, _ in part], _stacked([each for _, each in part]))
                statements.execute(
                    "INSERT INTO blocks(shelf, kind, number, last, version, checksum, ids, rows, scales) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    # Greater than that of any block that was there before: an epoch follows each removal.
                    (shelf.id, kind, number, part[-1][0], shelf.epoch, *_with_checksum(block)),
                )

    def remove(self, statements: Statements, shelf: int, kind: Kind, gone: Sequence[int]) -> None:
        """Take the vectors of these records out of their blocks."""
        if not statements.one("SELECT 1 FROM blocks WHERE shelf = ? AND kind = ? LIMIT 1", (shelf, kind)):
            return
        of_block: dict[int, list[int]] = {}
        for each in gone:
            query = "SELECT number FROM blocks WHERE shelf = ? AND kind = ? AND last >= ? ORDER BY number LIMIT 1"
            if found := statements.one(query, (shelf, kind, each)):
                of_block.setdefault(found[0], []).append(each)
        for number, ids in of_block.items():
            where = "WHERE shelf = ? AND kind = ? AND number = ?"
            packed = statements.one(f"SELECT checksum, ids, rows, scales FROM blocks {where}", (shelf, kind, number))
            statements.execute(
                f"UPDATE blocks SET checksum = ?, ids = ?, rows = ?, scales = ?, version = version + 1 {where}",
                (*_with_checksum(_unpacked(*packed).without(ids)), shelf, kind, number),
            )

    def check(self, statements: Statements, shelf: ShelfRow) -> list[str]:
        """How the blocks of a shelf differ from its records."""
        problems: list[str] = []
        for kind in SEARCHED:
            packed: dict[int, Array] = {}
            blocks = statements.execute(
                "SELECT checksum, ids, rows, scales, last FROM blocks WHERE shelf = ? AND kind = ? ORDER BY number",
                (shelf.id, kind),
            )
            for *parts, _ in blocks:
                try:
                    block = _unpacked(*parts)
                except DerivedError as error:
                    problems.append(str(error))
                    continue
                there = block.ids > 0
                packed.update(zip(block.ids[there].tolist(), block.rows[there], strict=True))
            end = blocks[-1][4] if blocks else 0
            kept = {number: vector for number, vector in statements.vectors(shelf, kind, 0) if number <= end}
            wrong = kept.keys() ^ packed.keys()
            numbers = sorted(kept.keys() & packed.keys())
            if numbers:
                again = VectorBlock.of(numbers, _stacked([kept[each] for each in numbers]))
                apart = np.abs(again.rows.astype("i2") - np.stack([packed[each] for each in numbers])).max(axis=1)
                wrong |= {each for each, far in zip(numbers, apart.tolist(), strict=True) if far > 1}
            if wrong:
                problems.append(f"{len(wrong)} vectors of kind {kind!r} differ from those of their records")
        return problems

    def _up_to_date(self, statements: Statements, shelf: ShelfRow, kind: Kind, dimensions: int) -> VectorIndex:
        key = (self._database, shelf.id, kind)
        held = self._cache.get(key)
        if not isinstance(held, _Held) or held.index.dimensions != dimensions:
            held = self._new(statements, shelf, dimensions)
        if (held.epoch, held.last) != (shelf.epoch, shelf.last):
            self._follow(statements, shelf, kind, held)
        self._cache.put(key, held)
        return held.index

    def _new(self, statements: Statements, shelf: ShelfRow, dimensions: int) -> _Held:
        """An empty index; where all vectors would take more memory than there is, their rows stay on the disk."""
        if shelf.records * dimensions <= self._cache.most_bytes // 2:
            return _Held(VectorIndex(dimensions))
        held = _Held(VectorIndex(dimensions, lambda places: _read_rows(statements, held, places)))
        return held

    def _follow(self, statements: Statements, shelf: ShelfRow, kind: Kind, held: _Held) -> None:
        blocks = statements.execute(
            "SELECT rowid, version, last, number FROM blocks WHERE shelf = ? AND kind = ? ORDER BY number",
            (shelf.id, kind),
        )
        if [number for *_, number in blocks] != list(range(1, len(blocks) + 1)):
            raise DerivedError(f"blocks of vectors of kind {kind!r} are missing")
        if [last for _, _, last, _ in blocks[: len(held.lasts)]] != held.lasts:
            held.clear()
        after = max(held.last, held.end)
        if len(blocks) != len(held.versions) or held.epoch != shelf.epoch:
            # What is in no block yet is read again: it may be in one now, or be gone.
            held.index.truncate(held.packed)
            after = held.end
        for place, (row, version, last, _) in enumerate(blocks):
            if place < len(held.versions) and held.versions[place] == version:
                continue
            block = _unpacked(*statements.one("SELECT checksum, ids, rows, scales FROM blocks WHERE rowid = ?", (row,)))
            if place < len(held.versions):
                held.index.replace(held.starts[place], block)
                held.versions[place] = version
            else:
                held.starts.append(len(held.index))
                held.versions.append(version)
                held.blocks.append(row)
                held.index.append(block, on_disk=True)
                held.lasts.append(last)
                held.packed = len(held.index)
                after = last
        if new := statements.vectors(shelf, kind, after):
            held.index.append(VectorBlock.of([each for each, _ in new], _stacked([each for _, each in new])))
        held.epoch, held.last = shelf.epoch, shelf.last


def _read_rows(statements: Statements, held: _Held, places: Array) -> Array:
    """The rows at these places, in ascending order, from their blocks."""
    rows = np.zeros((len(places), held.index.dimensions), "i1")
    whose = np.searchsorted(held.starts, places, side="right") - 1
    for number in np.unique(whose).tolist():
        own = np.flatnonzero(whose == number)
        # Not there where somebody is making the blocks anew at this moment: such a search finds less.
        if packed := statements.one("SELECT rows FROM blocks WHERE rowid = ?", (held.blocks[number],)):
            block = np.frombuffer(packed[0], "i1").reshape(-1, held.index.dimensions)
            rows[own] = block[places[own] - held.starts[number]]
    return rows


def _with_checksum(block: VectorBlock) -> tuple[int, bytes, bytes, bytes]:
    parts = block.pack()
    return _checksum(*parts), *parts


def _unpacked(checksum: int, ids: bytes, rows: bytes, scales: bytes) -> VectorBlock:
    """The block of these parts; raises if they are not those that were written."""
    if not all(isinstance(part, bytes) for part in (ids, rows, scales)) or checksum != _checksum(ids, rows, scales):
        raise DerivedError("a block of vectors is damaged")
    return VectorBlock.unpack(ids, rows, scales)


def _checksum(ids: bytes, rows: bytes, scales: bytes) -> int:
    return crc32(rows, crc32(scales, crc32(ids)))


def _stacked(packed: Sequence[bytes]) -> Array:
    return np.frombuffer(b"".join(packed), "<f2").reshape(len(packed), -1)
