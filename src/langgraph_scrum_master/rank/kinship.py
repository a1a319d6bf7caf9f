"""Words that are kin: near each other in the static model."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import Array

MOST_KEPT = 100_000
"""Words whose vectors are kept."""

_current: Kinship | None = None


def kinship() -> Kinship:
    """The vectors that this process has made: a word means the same in every memory."""
    global _current
    # Another one when it is full: whoever still has numbers of the old one can go on with that.
    if _current is None or len(_current) > MOST_KEPT:
        _current = Kinship()
    return _current


class Kinship:
    """The vectors of words, each made once; a word is known by the number of its vector."""

    def __init__(self) -> None:
        self._model = static_model()
        self._rows: dict[str, int] = {}
        self._table = np.zeros((1024, self._model.vectors.shape[1] if self._model else 0), dtype="float32")
        self._lock = threading.Lock()
        self.nobody = self.numbers([""])[0]
        """The number of a word that is not known."""

    def __len__(self) -> int:
        return len(self._rows)

    def numbers(self, words: Sequence[str]) -> list[int]:
        """The number of each word."""
        with self._lock:
            if new := {word for word in words if word not in self._rows}:
                self._learn(sorted(new))
            return [self._rows[word] for word in words]

    def vectors(self, numbers: Array | Sequence[int]) -> Array:
        """The unit vectors of these words; zeros for one that is not known, and for a number, which has no kin."""
        return self._table.take(numbers, axis=0)

    def _learn(self, new: Sequence[str]) -> None:
        start = len(self._rows)
        while start + len(new) > len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        named = [row for row, word in enumerate(new) if not word.isdigit() and word]
        if self._model is not None and named:
            self._table[[start + row for row in named]] = self._model.means([new[row] for row in named])
        self._rows.update((word, row) for row, word in enumerate(new, start))
