"""The records in memory whose features are ranked, limited in size over all memories of the process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import ref

import numpy as np

from langgraph_scrum_master.memory.records import SEARCHED, Kind
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.table import CandidateTable, GrowingArray

CANDIDATE_BYTES = 128 * 1024 * 1024
"""Bytes of records in memory per process, for all memories: about 1.8 kB each."""

_ENTRY_BYTES = 200
"""Bytes of a record besides its columns, about."""


ReadCandidates: TypeAlias = Callable[[Sequence[int]], list[tuple[Any, ...]]]
"""Reads records with these ids, as `Statements.rows`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateRows:
    """Records of a shelf, as rows of a table."""

    table: CandidateTable
    numbers: Array
    """The row of each in the table."""
    ids: Array

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, order: Array | slice) -> CandidateRows:
        """These of the records, in this order."""
        return CandidateRows(table=self.table, numbers=self.numbers[order], ids=self.ids[order])

    def newest_first(self) -> CandidateRows:
        """The records, newest first."""
        return self.take(np.lexsort((-self.ids, -self.table.gather("created", self.numbers)))) if len(self) else self


NO_ROWS = CandidateRows(table=CandidateTable(), numbers=np.zeros(0, "int64"), ids=np.zeros(0, "int64"))


class CandidateCache:
    """The records of one shelf that are in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._block = _Block()

    def __len__(self) -> int:
        return len(self._block.numbers)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._block.nbytes

    def clear(self) -> None:
        """Drop all records."""
        # A call in another thread continues with the block that it started with.
        self._block = _Block()

    def rows(self, ids: Sequence[int], kinds: Sequence[Kind], read: ReadCandidates) -> CandidateRows:
        """The records with these ids, if of these kinds; `read` reads those that are not in memory."""
        block = self._block
        with self._lock:
            missing = [each for each in ids if each not in block.numbers]
        if missing:
            fresh = read(missing)
            with self._lock:
                block.add([row for row in fresh if row[0] not in block.numbers and row[1] in SEARCHED])
        CANDIDATE_LIMIT.use(self, grown=bool(missing))
        return block.rows(ids, kinds)


class _Block:
    """Records in columns, and the row of each."""

    def __init__(self) -> None:
        self.table = CandidateTable()
        self.kinds = GrowingArray(np.zeros(0, "i1"))
        self.numbers: dict[int, int] = {}
        self.nbytes = 0

    def add(self, fresh: Sequence[tuple[Any, ...]]) -> None:
        if not fresh:
            return
        ids, kinds, *columns = zip(*fresh, strict=True)
        first = self.table.size
        self.table.append(columns)
        self.kinds.append(np.array([SEARCHED.index(kind) for kind in kinds], dtype="i1"))
        # Last, because other threads look up rows meanwhile.
        self.numbers.update(zip(ids, range(first, self.table.size), strict=True))
        self.nbytes = self.table.nbytes + _ENTRY_BYTES * len(self.numbers)

    def rows(self, ids: Sequence[int], kinds: Sequence[Kind]) -> CandidateRows:
        known = self.numbers
        found = [(each, number) for each in ids if (number := known.get(each)) is not None]
        chosen = np.array(found, dtype="int64").reshape(-1, 2)
        wanted = [SEARCHED.index(kind) for kind in kinds if kind in SEARCHED]
        if len(wanted) < len(SEARCHED):
            chosen = chosen[np.isin(self.kinds.values[chosen[:, 1]], wanted)]
        return CandidateRows(table=self.table, numbers=chosen[:, 1], ids=chosen[:, 0])


class CandidateLimit:
    """Limits the size of all caches together: the least recently used ones are cleared."""

    def __init__(self, most_bytes: int = CANDIDATE_BYTES) -> None:
        self.most_bytes = most_bytes
        self._caches: OrderedDict[int, ref[CandidateCache]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Size in bytes of all caches."""
        with self._lock:
            return sum(cache.nbytes for each in self._caches.values() if (cache := each()))

    def use(self, cache: CandidateCache, grown: bool) -> None:
        """Count the cache as the most recently used one. If it has grown, clear others, or itself if too large."""
        with self._lock:
            self._caches[id(cache)] = ref(cache)
            self._caches.move_to_end(id(cache))
            if grown:
                self._evict()

    def _evict(self) -> None:
        caches = {key: each for key, found in self._caches.items() if (each := found()) is not None}
        self._caches = OrderedDict((key, self._caches[key]) for key in caches)
        total = sum(each.nbytes for each in caches.values())
        for key, each in caches.items():
            if total <= self.most_bytes:
                return
            total -= each.nbytes
            each.clear()
            del self._caches[key]


CANDIDATE_LIMIT = CandidateLimit()
"""The limit of this process."""
