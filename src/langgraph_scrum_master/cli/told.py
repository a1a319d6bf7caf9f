"""Which sessions were told something already, in a file beside the memory that several hooks may use at once."""

from __future__ import annotations

from pathlib import Path

from langgraph_scrum_master.memory.database import Database
from langgraph_scrum_master.model import digest

MOST = 1_000
"""Sessions that are known again, the latest."""

FILE = "hooks.sqlite3"

_SCHEMA = "CREATE TABLE IF NOT EXISTS told(number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL UNIQUE)"


class Told:
    """Sessions of a namespace; of each only a digest is kept."""

    def __init__(self, folder: Path, namespace: str) -> None:
        self._db = Database(folder / FILE)
        self._namespace = namespace
        self._db.execute(_SCHEMA)

    def knows(self, session: str) -> bool:
        """Whether the session was told."""
        return self._db.one("SELECT 1 FROM told WHERE session = ?", (self._name(session),)) is not None

    def first(self, session: str) -> bool:
        """Note that the session is told now; False if somebody was faster."""
        new = self._db.execute("INSERT OR IGNORE INTO told(session) VALUES (?) RETURNING 1", (self._name(session),))
        self._db.execute("DELETE FROM told WHERE number <= (SELECT max(number) FROM told) - ?", (MOST,))
        return bool(new)

    def _name(self, session: str) -> str:
        return digest(self._namespace, session)
