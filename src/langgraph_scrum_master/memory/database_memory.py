"""Maintenance of memories in a record store: checks, statistics, backup, export and retention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.memory.record_memory import RecordMemory
from langgraph_scrum_master.memory.records import RECORD_KINDS, SEARCHED, Kind, Record
from langgraph_scrum_master.memory.store import StoreBackend

if TYPE_CHECKING:
    from langgraph_scrum_master.memory.maintenance import MemoryCheck, ShelfStatistics


class DatabaseMemory(RecordMemory):
    """A memory in a database that this package manages."""

    async def shelves(self) -> list[str]:
        """The names of the shelves beside this memory."""
        return await self._call(self._store_backend.shelves)

    async def check(self, *, rebuild: bool = False) -> MemoryCheck:
        """Check the database, and that derived data matches the records; `rebuild` rebuilds derived data."""
        from langgraph_scrum_master.memory.maintenance import check_store

        return await self._call(lambda: check_store(self._store_backend, and_rebuild=rebuild))

    async def statistics(self, *, every_tenant: bool = False) -> list[ShelfStatistics]:
        """The size of each shelf of this tenant, or of all tenants."""
        from langgraph_scrum_master.memory.maintenance import statistics

        return await self._call(statistics, self._store_backend, every_tenant)

    async def backup(self, target: Path) -> None:
        """Copy the whole database, with all tenants, into a new file."""
        from langgraph_scrum_master.memory.maintenance import back_up

        await self._call(back_up, self._store_backend, target)

    async def page(self, limit: int, offset: int = 0, kind: Kind | None = None) -> tuple[list[Record], int]:
        """Some records of this shelf, those stored last first, and the number of all; only of a kind, if given."""
        from langgraph_scrum_master.memory.maintenance import page_of_records

        kinds = RECORD_KINDS if kind is None else (kind,)
        return await self._call(page_of_records, self._store_backend, kinds, limit, offset)

    async def with_key(self, key: str) -> list[Record]:
        """The records of this shelf with this key: several if they are of different kinds."""
        from langgraph_scrum_master.memory.maintenance import records_with_key

        return await self._call(records_with_key, self._store_backend, key)

    def export(self) -> Iterator[dict[str, Any]]:
        """All records of this tenant, shelf by shelf, as JSON objects."""
        from langgraph_scrum_master.memory.maintenance import export_records

        with self._store_errors():
            yield from export_records(self._store_backend)

    async def import_records(self, rows: Iterable[tuple[str, Record]], progress: Callable[[int], None]) -> int:
        """Store records, each with the name of its shelf, and return their number."""
        from langgraph_scrum_master.memory.maintenance import import_records

        return await self._call(import_records, self._store_backend, rows, progress)

    async def forget_where(
        self, keys: Sequence[str] = (), *, before: float | None = None, session: str | None = None
    ) -> int:
        """Delete records by key, by age, or by session, and return their number."""
        from langgraph_scrum_master.memory.maintenance import forget_before, forget_session

        removed = 0
        if keys:
            removed += await self._call(
                self._store_backend.remove, SEARCHED, list(dict.fromkeys(map(well_formed, keys)))
            )
        if before is not None:
            removed += await self._call(forget_before, self._store_backend, before)
        if session is not None:
            removed += await self._call(forget_session, self._store_backend, session)
        return removed

    @property
    def _store_backend(self) -> StoreBackend:
        if not isinstance(self._backend, StoreBackend):
            raise StoreError(f"{self!r} is managed by its server: use the tools of the server")
        return self._backend
