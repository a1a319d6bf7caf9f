"""Words that are kin: near each other in the static model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache

import numpy as np

from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import Array

MOST_KEPT = 100_000
"""Words whose vectors are kept."""


@cache
def kinship() -> Kinship:
    """The vectors that this process has made: a word means the same in every memory."""
    return Kinship()


class Kinship:
    """The vectors of words, each made once."""

    def __init__(self) -> None:
        self._model = static_model()
        self._rows: dict[str, int] = {}
        self._table = np.zeros((1024, self._model.vectors.shape[1] if self._model else 0), dtype="float32")
        self._lock = threading.Lock()

    def vectors(self, words: Sequence[str]) -> Array:
        """The unit vectors of these words; zeros for an empty one, and for a number, which has no kin."""
        with self._lock:
            try:
                rows = [self._rows[word] for word in words]
            except KeyError:
                if len(self._rows) > MOST_KEPT:
                    self._rows.clear()
                self._learn(sorted({word for word in words if word not in self._rows}))
                rows = [self._rows[word] for word in words]
            return self._table.take(rows, axis=0)

    def _learn(self, new: Sequence[str]) -> None:
        start = len(self._rows)
        while start + len(new) > len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        self._table[start : start + len(new)] = 0
        named = [row for row, word in enumerate(new) if not word.isdigit() and word]
        if self._model is not None and named:
            self._table[[start + row for row in named]] = self._model.means([new[row] for row in named])
        self._rows.update((word, row) for row, word in enumerate(new, start))
