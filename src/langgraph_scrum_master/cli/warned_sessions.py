"""Which sessions were told something already, in a file beside the memory that several hooks may use at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from langgraph_scrum_master.model import digest

MOST = 1_000
"""Sessions that are known again, the latest."""

_BUSY = 10.0
"""Seconds for which another hook may write."""

_FILE = "hooks.sqlite3"

_SCHEMA = "CREATE TABLE IF NOT EXISTS told(number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL UNIQUE)"


class Told:
    """Sessions of a namespace; of each only a digest is kept."""

    def __init__(self, folder: Path, namespace: str) -> None:
        self._file = folder / _FILE
        self._namespace = namespace
        self._execute(_SCHEMA)

    def knows(self, session: str) -> bool:
        """Whether the session was told."""
        return bool(self._execute("SELECT 1 FROM told WHERE session = ?", (self._name(session),)))

    def first(self, session: str) -> bool:
        """Note that the session is told now; False if somebody was faster."""
        new = self._execute("INSERT OR IGNORE INTO told(session) VALUES (?) RETURNING 1", (self._name(session),))
        self._execute("DELETE FROM told WHERE number <= (SELECT max(number) FROM told) - ?", (MOST,))
        return bool(new)

    def _execute(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with closing(sqlite3.connect(self._file, isolation_level=None, timeout=_BUSY)) as database:
            return database.execute(query, values).fetchall()

    def _name(self, session: str) -> str:
        return digest(self._namespace, session)
