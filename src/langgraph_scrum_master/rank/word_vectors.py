"""Vectors of single words in the static model, to find related words."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import Array

MAX_WORDS = 100_000
"""Words whose vectors are cached."""

_current: WordVectors | None = None


def word_vectors() -> WordVectors:
    """The word vectors of this process, shared by all memories."""
    global _current
    # A full cache is replaced, not emptied: callers that still hold rows of it can go on using it.
    if _current is None or len(_current) > MAX_WORDS:
        _current = WordVectors()
    return _current


class WordVectors:
    """The vectors of words, computed once and addressed by row."""

    def __init__(self) -> None:
        self._model = static_model()
        self._row_of: dict[str, int] = {}
        self._table = np.zeros((1024, self._model.vectors.shape[1] if self._model else 0), dtype="float32")
        self._lock = threading.Lock()
        self.unknown_row = self.rows([""])[0]
        """The row of an unknown word."""

    def __len__(self) -> int:
        return len(self._row_of)

    def rows(self, words: Sequence[str]) -> list[int]:
        """The row of each word; new words are added."""
        with self._lock:
            if new := {word for word in words if word not in self._row_of}:
                self._add(sorted(new))
            return [self._row_of[word] for word in words]

    def vectors(self, rows: Array | Sequence[int]) -> Array:
        """The unit vectors in these rows; zeros for the unknown word and for numbers, which have no related words."""
        return self._table.take(rows, axis=0)

    def _add(self, new: Sequence[str]) -> None:
        start = len(self._row_of)
        while start + len(new) > len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        named = [row for row, word in enumerate(new) if not word.isdigit() and word]
        if self._model is not None and named:
            self._table[[start + row for row in named]] = self._model.means([new[row] for row in named])
        self._row_of.update((word, row) for row, word in enumerate(new, start))
