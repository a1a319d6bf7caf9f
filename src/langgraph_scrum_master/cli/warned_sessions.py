"""The sessions that were already warned, in a file next to the memory. Several hooks may use it at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from langgraph_scrum_master.model import digest

MAX_SESSIONS = 1_000
"""Only the latest sessions are remembered."""

_BUSY_TIMEOUT = 10.0
"""Seconds to wait while another hook writes."""

_FILE = "hooks.sqlite3"

_SCHEMA = "CREATE TABLE IF NOT EXISTS warned(number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL UNIQUE)"


class WarnedSessions:
    """The warned sessions of a namespace. Only digests of their ids are stored."""

    def __init__(self, folder: Path, namespace: str) -> None:
        self._file = folder / _FILE
        self._namespace = namespace
        self._execute(_SCHEMA)

    def __contains__(self, session: str) -> bool:
        """Whether the session was warned."""
        return bool(self._execute("SELECT 1 FROM warned WHERE session = ?", (self._name(session),)))

    def add(self, session: str) -> bool:
        """Record that the session is warned. False if another process was first."""
        new = self._execute("INSERT OR IGNORE INTO warned(session) VALUES (?) RETURNING 1", (self._name(session),))
        self._execute("DELETE FROM warned WHERE number <= (SELECT max(number) FROM warned) - ?", (MAX_SESSIONS,))
        return bool(new)

    def _execute(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with closing(sqlite3.connect(self._file, isolation_level=None, timeout=_BUSY_TIMEOUT)) as database:
            return database.execute(query, values).fetchall()

    def _name(self, session: str) -> str:
        return digest(self._namespace, session)
