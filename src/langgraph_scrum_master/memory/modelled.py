"""Vectors of records by models that a user put in the place of a space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from langgraph_scrum_master.memory.database import Database
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.asked import packed_vector, unit_vectors
from langgraph_scrum_master.rank.features import Array

PROBE = "What does the team know?"
"""A text whose vector a model is known by."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS modelled(
    record INTEGER NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY(record, model)) WITHOUT ROWID;
"""


class Modelled:
    """Made when a record is written; for records from before the model was there, when they are first compared."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._names: dict[int, str] = {}

    def vectors(self, records: Sequence[int], space: str, model: Embedder) -> Array:
        """A row for each of these records."""
        name = f"{space} {self._name(model)}"
        query = "SELECT record, vector FROM modelled WHERE model = ? AND record IN ({})"
        known = dict(self._db.among(query, records, name))
        if missing := [record for record in records if record not in known]:
            known |= self._made(missing, name, model)
        return np.stack([np.frombuffer(known[record], dtype="<f2") for record in records]).astype("float32")

    def take_out(self, record: int) -> None:
        """Let go of the vectors of a record."""
        self._db.execute("DELETE FROM modelled WHERE record = ?", (record,))

    def _name(self, model: Embedder) -> str:
        # Two models of one class are told apart by what they make of a text.
        if id(model) not in self._names:
            vector = np.asarray(model.embed_query(PROBE), dtype="float32")
            self._names[id(model)] = f"{type(model).__name__}-{digest(packed_vector(vector).hex())}"
        return self._names[id(model)]

    def _made(self, records: Sequence[int], name: str, model: Embedder) -> dict[int, bytes]:
        texts = dict(self._db.among("SELECT id, text FROM records WHERE id IN ({})", records))
        # Whoever asks for a record that has just been let go gets the vector of nothing.
        vectors = unit_vectors([texts.get(record, "") for record in records], model)
        made = {record: packed_vector(vector) for record, vector in zip(records, vectors, strict=True)}
        # One whose text was replaced meanwhile is another record by now.
        self._db.executemany(
            "INSERT OR REPLACE INTO modelled SELECT id, ?, ? FROM records WHERE id = ?",
            [(name, vector, record) for record, vector in made.items() if record in texts],
        )
        return made
