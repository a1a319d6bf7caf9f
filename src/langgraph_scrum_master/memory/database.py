"""A SQLite database that any thread may use, one at a time."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import finalize

BUSY = 60.0
"""Seconds for which another process may write before a write here fails."""

_MOST_VARIABLES = 450


class Database:
    """A connection and its lock."""

    def __init__(self, path: Path | None) -> None:
        self._connection = sqlite3.connect(
            str(path) if path else ":memory:", check_same_thread=False, isolation_level=None, timeout=BUSY
        )
        self.lock = threading.RLock()
        self._version = 0
        # Whoever lets go of a memory need not close it; at the end of the process others may still be reading.
        finalize(self, self._connection.close).atexit = False

    def look(self) -> int:
        """Find out whether another process has written: it gives another number then."""
        self._version = int(self.one("PRAGMA data_version")[0])
        return self._version

    @property
    def change(self) -> tuple[int, int]:
        """Changes when anybody has written: this connection, or another process as far as was looked."""
        return self._version, self._connection.total_changes

    def run(self, *statements: str) -> None:
        """Several statements without values."""
        with self.lock:
            for statement in statements:
                self._connection.executescript(statement)

    def execute(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows that the statement gives."""
        with self.lock:
            return self._connection.execute(query, values).fetchall()

    def one(self, query: str, values: Sequence[Any] = ()) -> Any:
        """The first row that the statement gives, or None."""
        with self.lock:
            return self._connection.execute(query, values).fetchone()

    def executemany(self, query: str, values: Iterable[Sequence[Any]]) -> None:
        """The statement for each of these."""
        with self.lock:
            self._connection.executemany(query, values)

    def among(self, query: str, values: Sequence[Any], *before: Any) -> list[Any]:
        """The rows of a statement with `IN ({})` for these values, however many they are."""
        found: list[Any] = []
        with self.lock:
            for part in parts(values):
                found += self._connection.execute(query.format(", ".join("?" * len(part))), (*before, *part)).fetchall()
        return found

    def close(self) -> None:
        """Let go of the file."""
        with self.lock:
            self._connection.close()


def parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The values in as many parts as SQLite needs."""
    for start in range(0, len(values), _MOST_VARIABLES):
        yield values[start : start + _MOST_VARIABLES]
