"""Describes a source in one line, so that output says what it was made from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from langgraph_scrum_master.model import Snapshot
from langgraph_scrum_master.replay.databases import POSTGRES, database_name, is_database
from langgraph_scrum_master.team.record.files import Placed


class Inventory:
    """Counts what was read from a source. Its text is the description."""

    def __init__(self, source: str | Path | Iterable[object]) -> None:
        self._source = source if isinstance(source, str | Path) else None
        self._kinds: Counter[str] = Counter()
        self._files: set[str] = set()
        self._threads: set[str] = set()

    def add(self, placed: Placed) -> None:
        """Count one snapshot."""
        if placed.snapshot is not None:
            self._kinds[_kind(placed.snapshot)] += 1
            self._files.add(file_of(placed.where))
            self._threads.update(filter(None, (placed.snapshot.thread,)))

    def __str__(self) -> str:
        if self._source is not None and is_database(self._source):
            server = str(self._source).startswith(POSTGRES)
            kind = f"{'PostgreSQL' if server else 'SQLite'} checkpoint database"
            counts = [counted(len(self._threads), "thread"), counted(self._kinds.total(), "step")]
            return f"{database_name(str(self._source))}: {', '.join((kind, *counts))}"
        held = " and ".join(counted(number, kind) for kind, number in sorted(self._kinds.items())) or "nothing"
        files = f" in {counted(len(self._files), 'file')}" if self._source and Path(self._source).is_dir() else ""
        threads = f", {counted(len(self._threads), 'thread')}" if len(self._threads) > 1 else ""
        return f"{self._name()}: {held}{files}{threads}"

    def _name(self) -> str:
        return "given states" if self._source is None else Path(self._source).name or str(self._source)


def file_of(where: str) -> str:
    """The file of a place, without the line."""
    return re.sub(r":\d+$", "", where)


def _kind(snapshot: Snapshot) -> str:
    if snapshot.origin == "messages":
        return "message"
    return "snapshot" if snapshot.written_by or snapshot.origin == "run" else "state"


def counted(number: int, what: str) -> str:
    """The number with its noun, such as `2 threads`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
