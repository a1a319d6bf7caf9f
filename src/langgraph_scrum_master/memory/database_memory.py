"""What memories over a record store offer beside searching: checking, statistics, export and retention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.memory.record_memory import RecordMemory
from langgraph_scrum_master.memory.records import SEARCHED, Record
from langgraph_scrum_master.memory.store import StoreBackend

if TYPE_CHECKING:
    from langgraph_scrum_master.memory.maintenance import MemoryCheck, ShelfStatistics


class DatabaseMemory(RecordMemory):
    """A memory whose records are in a database of this package's own."""

    async def shelves(self) -> list[str]:
        """The names of the shelves beside this memory."""
        return await self._call(self._stored.shelves)

    async def check(self, *, rebuild: bool = False) -> MemoryCheck:
        """Whether the database is sound, and what is derived from records agrees with them; `rebuild` makes it so."""
        from langgraph_scrum_master.memory.maintenance import check_store

        return await self._call(lambda: check_store(self._stored, and_rebuild=rebuild))

    async def statistics(self, *, every_tenant: bool = False) -> list[ShelfStatistics]:
        """How much the shelves of this tenant, or of all tenants, hold."""
        from langgraph_scrum_master.memory.maintenance import statistics

        return await self._call(statistics, self._stored, every_tenant)

    async def backup(self, target: Path) -> None:
        """Copy the whole database, of all tenants, into a new file."""
        from langgraph_scrum_master.memory.maintenance import back_up

        await self._call(back_up, self._stored, target)

    def export(self) -> Iterator[dict[str, Any]]:
        """All records of this tenant, shelf by shelf, as JSON objects."""
        from langgraph_scrum_master.memory.maintenance import exported

        with self._store_errors():
            yield from exported(self._stored)

    async def import_records(self, rows: Iterable[tuple[str, Record]], progress: Callable[[int], None]) -> int:
        """Store records, each with the name of its shelf; gives how many there were."""
        from langgraph_scrum_master.memory.maintenance import imported

        return await self._call(imported, self._stored, rows, progress)

    async def forget_where(
        self, keys: Sequence[str] = (), *, before: float | None = None, session: str | None = None
    ) -> int:
        """Remove records by their keys, what was made before a time, or a session; gives how many went."""
        from langgraph_scrum_master.memory.maintenance import forget_before, forget_session

        gone = 0
        if keys:
            gone += await self._call(self._stored.remove, SEARCHED, list(dict.fromkeys(map(well_formed, keys))))
        if before is not None:
            gone += await self._call(forget_before, self._stored, before)
        if session is not None:
            gone += await self._call(forget_session, self._stored, session)
        return gone

    @property
    def _stored(self) -> StoreBackend:
        if not isinstance(self._backend, StoreBackend):
            raise StoreError(f"{self!r} is looked after by its server, not by this package")
        return self._backend
