"""Corpus statistics: document frequencies and inverse document frequency (idf)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Protocol

import numpy as np

from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import BUCKETS, Array, Features, column, heads
from langgraph_scrum_master.rank.word_vectors import WordVectors
from langgraph_scrum_master.text.terms import STOP_WORDS

PRIOR = 20
"""Empty texts added to the corpus size, so that idf stays above 0 in a small memory. By hand. Not part of `RankTuning`,
because the mean vector uses it too.
"""


class TokenWeights(Protocol):
    """The idf of the static model's tokens."""

    def token_idf(self, tokens: Array) -> Array:
        """The idf of each of these tokens."""
        ...


class Corpus(TokenWeights, Protocol):
    """The statistics that ranking needs of a corpus."""

    @property
    def mean_length(self) -> float:
        """Terms per text, on average."""
        ...

    @property
    def mean_grams(self) -> float:
        """Occupied hash buckets per text, on average."""
        ...

    @property
    def centre(self) -> Array:
        """The mean vector, shrunk towards zero by `PRIOR` empty texts; empty if no text has a vector."""
        ...

    def term_idf(self, terms: Array) -> Array:
        """The idf of each term."""
        ...

    def gram_idf(self, buckets: Array) -> Array:
        """The idf of each of these hash buckets of character n-grams."""
        ...

    def word_rows(self, terms: Array, vectors: WordVectors) -> Array:
        """The row in `vectors` of a word for each term."""
        ...


class CorpusCounts:
    """Running counts of texts, tokens and n-gram buckets, and the sum of vectors; terms are counted by subclasses."""

    def __init__(self) -> None:
        model = static_model()
        self.size = 0
        self.length = 0
        self.tokens = np.zeros(len(model.vectors) if model else 0, dtype="<i4")
        self.grams = np.zeros(BUCKETS, dtype="<i4")
        self.vectors = np.zeros(0, dtype="<f8")

    @property
    def mean_length(self) -> float:
        """Terms per text, on average."""
        return max(1.0, self.length / self.size) if self.size else 1.0

    @property
    def mean_grams(self) -> float:
        """Occupied hash buckets per text, on average."""
        return float(self.grams.sum(dtype="int64")) / self.size if self.size else 1.0

    @property
    def centre(self) -> Array:
        """The mean vector, shrunk towards zero by `PRIOR` empty texts; empty if no text has a vector."""
        return self.vectors / (self.size + PRIOR)

    def add(self, vectors: Array, times: int = 1) -> None:
        """Add the vectors of texts; `times=-1` subtracts them."""
        added = times * vectors.sum(axis=0, dtype="<f8")
        self.vectors = self.vectors + added if len(self.vectors) else added

    def count(self, features: Features, times: int = 1) -> None:
        """Add a text; `times=-1` subtracts it."""
        self.size += times
        self.length += times * features.length
        self.tokens[features.tokens] += times
        self.grams += times * np.unpackbits(features.grams).astype("<i4")

    def count_packed(self, packed: Sequence[bytes], times: int = 1) -> None:
        """Add texts by their packed features; `times=-1` subtracts them."""
        head = heads(packed)
        self.size += times * len(packed)
        self.length += times * int(column(packed, head, "counts").sum(dtype="int64"))
        # A text's features hold each token once, so this counts documents.
        counts = np.bincount(column(packed, head, "tokens"), minlength=len(self.tokens))[: len(self.tokens)]
        self.tokens += (times * counts).astype("<i4")
        occupied = np.unpackbits(column(packed, head, "grams").reshape(len(packed), -1), axis=1)
        self.grams += times * occupied.sum(axis=0, dtype="<i4")

    def token_idf(self, tokens: Array) -> Array:
        """The idf of each of these tokens."""
        return idf(self.tokens[tokens] + prior_tokens()[tokens], self.size)

    def gram_idf(self, buckets: Array) -> Array:
        """The idf of each of these hash buckets of character n-grams."""
        return idf(self.grams[buckets], self.size)


class TextCorpus(CorpusCounts):
    """A corpus of texts that are ranked once and not stored."""

    def __init__(self, texts: Iterable[tuple[Features, Mapping[int, str]]]) -> None:
        super().__init__()
        self._counts: dict[int, int] = {}
        self._words: dict[int, str] = {}
        for features, words in texts:
            self.count(features)
            self._words |= words
            for term in features.terms.tolist():
                self._counts[term] = self._counts.get(term, 0) + 1

    def term_idf(self, terms: Array) -> Array:
        """The idf of each term."""
        return idf(np.array([self._counts.get(term, 0) for term in terms.tolist()]), self.size)

    def word_rows(self, terms: Array, vectors: WordVectors) -> Array:
        """The row in `vectors` of a word for each term."""
        distinct, inverse = np.unique(terms, return_inverse=True)
        return np.array(vectors.rows([self._words.get(term, "") for term in distinct.tolist()]))[inverse]


def idf(counts: Array, size: int) -> Array:
    """The idf for document frequencies in a corpus of this size."""
    values: Array = np.log1p((size + PRIOR - np.minimum(counts, size + PRIOR) + 0.5) / (counts + 0.5))
    return values.astype("float32")


@cache
def prior_tokens() -> Array:
    """The prior document frequency of each token: `PRIOR` for stop words, else 0."""
    model = static_model()
    if model is None:
        return np.zeros(0, dtype="<i4")
    forms = [form for word in sorted(STOP_WORDS) for form in (word, word.capitalize())]
    prior = np.zeros(len(model.vectors), dtype="<i4")
    prior[np.unique(np.concatenate(model.token_ids(forms)))] = PRIOR
    return prior
