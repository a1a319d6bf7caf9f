"""Candidates in columns, so that the features of some of them are gathered at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from langgraph_scrum_master.rank.features import RAGGED, Array, column, heads, lengths


class Candidate(NamedTuple):
    """A text to be ranked, with packed features and vectors, its time, and its position in a session."""

    features: bytes
    vector: bytes
    context: bytes
    """Its vector with those of its session neighbours added."""
    session: str = ""
    position: int = 0
    created: float = 0.0
    links: bytes = b""
    """The names that relationships link it with, packed."""


class GrowingArray:
    """An array with amortised append. Arrays taken from it before an append stay valid."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Size in bytes, with the room for more values."""
        buffer = self.values.base
        return buffer.nbytes if isinstance(buffer, np.ndarray) else self.values.nbytes

    def append(self, added: Array) -> None:
        """Append values."""
        values, end, buffer = self.values, len(self.values) + len(added), self.values.base
        if not isinstance(buffer, np.ndarray) or buffer.shape[1:] != values.shape[1:] or len(buffer) < end:
            buffer = np.empty((end + end // 8, *values.shape[1:]), values.dtype)
            buffer[: len(values)] = values
        buffer[len(values) : end] = added
        self.values = buffer[:end]


class CandidateTable:
    """Candidates in columns, numbered in the order in which they are appended."""

    def __init__(self) -> None:
        self._columns: dict[str, GrowingArray] = {}
        self._sessions: dict[str, int] = {}
        self._session_names: list[str] = []
        self.size = 0

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return sum(each.nbytes for each in self._columns.values()) + _NAME_BYTES * len(self._session_names)

    def append(self, columns: Sequence[Sequence[Any]]) -> None:
        """Append candidates, given as a column for each field of `Candidate`.

        Calls from several threads must be serialised; readers need not wait.
        """
        packed, vectors, contexts, sessions, positions, created, links = columns
        head = heads(packed)
        # Checked before anything is appended.
        matrices = {
            "vectors": _matrix(vectors, "<i2"),
            "contexts": _matrix(contexts, "<i2"),
            "grams": column(packed, head, "grams").reshape(len(packed), -1),
        }
        for name, matrix in matrices.items():
            if name in self._columns and matrix.shape[1] != self._columns[name].values.shape[1]:
                raise ValueError(f"the {name} of candidates differ in length")
        self._append("heads", head)
        for name, matrix in matrices.items():
            self._append(name, matrix)
        self._append("sessions", np.array([self._session(name) for name in sessions], dtype="int64"))
        self._append("positions", np.array(positions, dtype="int64"))
        self._append("created", np.array(created, dtype="float64"))
        for name in RAGGED:
            self._append_ragged(name, column(packed, head, name), lengths(head, name))
        linked = np.frombuffer(b"".join(links), "<u4")
        self._append_ragged("links", linked, np.array([len(each) for each in links]) // linked.itemsize)
        self.size += len(packed)

    def session_name(self, number: int) -> str:
        """The name of a session by its number; empty for -1, which stands for no session."""
        return self._session_names[number] if number >= 0 else ""

    def gather(self, name: str, rows: Array) -> Array:
        """The values of these rows in a column."""
        return self._columns[name].values.take(rows, axis=0)

    def gather_bytes(self, name: str, rows: Array, columns: Array) -> Array:
        """These columns of these rows, stored column by column."""
        values = self._columns[name].values
        return values.ravel().take(columns[:, None] + rows * values.shape[1]).T

    def gather_ragged(self, name: str, rows: Array) -> tuple[Array, Array]:
        """The values of these rows in a ragged column, concatenated, and the number of values of each row."""
        sizes = self.gather(f"{name} lengths", rows).astype("int64")
        starts = self.gather(f"{name} starts", rows) - (np.cumsum(sizes) - sizes)
        flat = np.repeat(starts, sizes)
        flat += np.arange(len(flat))
        return self._columns[name].values.take(flat), sizes

    def _append(self, name: str, added: Array) -> None:
        if name in self._columns:
            self._columns[name].append(added)
        else:
            self._columns[name] = GrowingArray(added)

    def _append_ragged(self, name: str, flat: Array, sizes: Array) -> None:
        start = len(self._columns[name]) if name in self._columns else 0
        self._append(name, flat)
        self._append(f"{name} lengths", sizes.astype("int32"))
        self._append(f"{name} starts", start + np.cumsum(sizes) - sizes)

    def _session(self, name: str) -> int:
        if not name:
            return -1
        if (number := self._sessions.get(name)) is None:
            number = self._sessions[name] = len(self._session_names)
            self._session_names.append(name)
        return number


_NAME_BYTES = 200
"""Bytes for a session's name, about."""


def _matrix(packed: Sequence[bytes], dtype: str) -> Array:
    return np.frombuffer(b"".join(packed), dtype).reshape(len(packed), len(packed[0]) // 2)
