"""Words that are kin: near each other in the static model."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np

from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import Array

MOST_KEPT = 100_000
"""Words whose vectors are kept."""


class Kinship:
    """The vectors of words, each made once."""

    def __init__(self) -> None:
        self._model = static_model()
        self._rows: dict[int, int] = {}
        self._table = np.zeros((1024, self._model.vectors.shape[1] if self._model else 0), dtype="float32")
        self._lock = threading.Lock()

    def vectors(self, terms: Sequence[int], words: Mapping[int, str]) -> Array:
        """The unit vectors of these terms; zeros where the word is not known."""
        with self._lock:
            if len(self._rows) > MOST_KEPT:
                self._rows.clear()
            self._learn([term for term in terms if term not in self._rows and term in words], words)
            rows = [self._rows.get(term, -1) for term in terms]
            found = self._table[rows]
        if min(rows, default=0) < 0:
            found[np.array(rows) < 0] = 0
        return found

    def unknown(self, terms: Sequence[int]) -> list[int]:
        """Those of the terms whose word is needed."""
        return [term for term in terms if term not in self._rows]

    def _learn(self, new: Sequence[int], words: Mapping[int, str]) -> None:
        if not new or self._model is None:
            return
        start = len(self._rows)
        while start + len(new) > len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        for row, (term, ids) in enumerate(zip(new, self._model.token_ids([words[t] for t in new]), strict=True), start):
            self._table[row] = self._model.mean(ids)
            self._rows[term] = row
