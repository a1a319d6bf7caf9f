"""What relationships say: which records are linked, by the names they are known by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from langgraph_scrum_master.memory.database import Database
from langgraph_scrum_master.memory.records import Record
from langgraph_scrum_master.rank.features import number
from langgraph_scrum_master.text.references import canonical

MOST_LINKS = 50
"""Links of a name that count, the newest."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS edges(one INTEGER NOT NULL, other INTEGER NOT NULL, record INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS by_end ON edges(one, record);
CREATE INDEX IF NOT EXISTS by_record ON edges(record);
"""


class Links:
    """Relationships as edges between names; each record has those of its own names at hand, in its row."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, rows: Iterable[tuple[int, Record]]) -> set[int]:
        """Take in these relationships; gives the names that they link."""
        edges = [(*_ends(record), row) for row, record in rows]
        both = [edge for one, other, row in edges if one != other for edge in ((one, other, row), (other, one, row))]
        self._db.executemany("INSERT INTO edges VALUES (?, ?, ?)", both)
        return {one for one, _, _ in both}

    def take_out(self, row: int) -> set[int]:
        """Let go of a relationship; gives the names that it linked."""
        names = {one for (one,) in self._db.execute("SELECT one FROM edges WHERE record = ?", (row,))}
        self._db.execute("DELETE FROM edges WHERE record = ?", (row,))
        return names

    def renew(self, names: Iterable[int], lost: Iterable[int] = ()) -> None:
        """Write the links of these names, and of those that lost some, into the rows of the records known by them."""
        linked = {
            one for (one,) in self._db.among("SELECT DISTINCT one FROM edges WHERE one IN ({})", sorted(set(names)))
        }
        changed = sorted({*linked, *lost})
        records = {
            row
            for column in ("own", "alias")
            for row in self._db.among(f"SELECT id, own, alias FROM records WHERE {column} IN ({{}})", changed)
        }
        self._db.executemany(
            "UPDATE records SET links = ? WHERE id = ?",
            [(_packed([*self._of(own), *self._of(alias)]), record) for record, own, alias in sorted(records)],
        )

    def _of(self, name: int) -> list[int]:
        query = "SELECT other FROM edges WHERE one = ? ORDER BY record DESC LIMIT ?"
        return [other for (other,) in self._db.execute(query, (name, MOST_LINKS))] if name else []


def _ends(record: Record) -> tuple[int, int]:
    return number(canonical(str(record.data.get("source")))), number(canonical(str(record.data.get("target"))))


def _packed(names: Sequence[int]) -> bytes:
    return np.array(list(dict.fromkeys(names)), dtype="<u4").tobytes()
