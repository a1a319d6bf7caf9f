"""Document frequencies of the texts that are searched, and the idf that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Protocol

import numpy as np

from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import BUCKETS, Array, Features, column, heads
from langgraph_scrum_master.rank.kinship import Kinship
from langgraph_scrum_master.text.terms import STOP_WORDS

PRIOR = 20
"""Empty texts that idf assumes, so that in a small memory each word still counts. By hand. Not part of `RankTuning`:
the stored means of vectors use it too.
"""


class TokenWeights(Protocol):
    """The idf of tokens of the static model."""

    def token_rarity(self, tokens: Array) -> Array:
        """The idf of each of these tokens of the static model."""
        ...


class Corpus(TokenWeights, Protocol):
    """The statistics of the texts that are searched."""

    @property
    def mean_length(self) -> float:
        """Terms of a text, on average."""
        ...

    @property
    def mean_grams(self) -> float:
        """Filled hash buckets of a text, on average."""
        ...

    @property
    def centre(self) -> Array:
        """The mean of the texts' vectors, less what too few of them say; empty if they have none."""
        ...

    def term_rarity(self, terms: Array) -> Array:
        """The idf of each term."""
        ...

    def gram_rarity(self, places: Array) -> Array:
        """The idf of each of these hash buckets of character n-grams."""
        ...

    def kin(self, terms: Array, known: Kinship) -> Array:
        """The number that a word of each of these terms is known by there."""
        ...


class Tally:
    """Counts of all but the terms, added up text by text."""

    def __init__(self) -> None:
        model = static_model()
        self.size = 0
        self.length = 0
        self.tokens = np.zeros(len(model.vectors) if model else 0, dtype="<i4")
        self.grams = np.zeros(BUCKETS, dtype="<i4")
        self.vectors = np.zeros(0, dtype="<f8")

    @property
    def mean_length(self) -> float:
        """Terms of a text, on average."""
        return max(1.0, self.length / self.size) if self.size else 1.0

    @property
    def mean_grams(self) -> float:
        """Filled hash buckets of a text, on average."""
        return float(self.grams.sum(dtype="int64")) / self.size if self.size else 1.0

    @property
    def centre(self) -> Array:
        """The mean of the texts' vectors, less what too few of them say; empty if they have none."""
        return self.vectors / (self.size + PRIOR)

    def add(self, vectors: Array, times: int = 1) -> None:
        """Add the vectors of texts, or take them away."""
        added = times * vectors.sum(axis=0, dtype="<f8")
        self.vectors = self.vectors + added if len(self.vectors) else added

    def count(self, features: Features, times: int = 1) -> None:
        """Add a text, or take it away."""
        self.size += times
        self.length += times * features.length
        self.tokens[features.tokens] += times
        self.grams += times * np.unpackbits(features.grams).astype("<i4")

    def count_packed(self, packed: Sequence[bytes], times: int = 1) -> None:
        """Add many texts by their packed features, or take them away."""
        head = heads(packed)
        self.size += times * len(packed)
        self.length += times * int(column(packed, head, "counts").sum(dtype="int64"))
        # Each token stands once in the features of a text.
        counts = np.bincount(column(packed, head, "tokens"), minlength=len(self.tokens))[: len(self.tokens)]
        self.tokens += (times * counts).astype("<i4")
        filled = np.unpackbits(column(packed, head, "grams").reshape(len(packed), -1), axis=1)
        self.grams += times * filled.sum(axis=0, dtype="<i4")

    def token_rarity(self, tokens: Array) -> Array:
        """The idf of each of these tokens of the static model."""
        return rarity(self.tokens[tokens] + prior_tokens()[tokens], self.size)

    def gram_rarity(self, places: Array) -> Array:
        """The idf of each of these hash buckets of character n-grams."""
        return rarity(self.grams[places], self.size)


class Texts(Tally):
    """A corpus in memory: texts that are ranked once and not kept."""

    def __init__(self, found: Iterable[tuple[Features, Mapping[int, str]]]) -> None:
        super().__init__()
        self._counts: dict[int, int] = {}
        self._words: dict[int, str] = {}
        for features, words in found:
            self.count(features)
            self._words |= words
            for term in features.terms.tolist():
                self._counts[term] = self._counts.get(term, 0) + 1

    def term_rarity(self, terms: Array) -> Array:
        """The idf of each term."""
        return rarity(np.array([self._counts.get(term, 0) for term in terms.tolist()]), self.size)

    def kin(self, terms: Array, known: Kinship) -> Array:
        """The number that a word of each of these terms is known by there."""
        different, place = np.unique(terms, return_inverse=True)
        return np.array(known.numbers([self._words.get(term, "") for term in different.tolist()]))[place]


def rarity(counts: Array, size: int) -> Array:
    """The idf of things that are in so many of the texts."""
    found: Array = np.log1p((size + PRIOR - np.minimum(counts, size + PRIOR) + 0.5) / (counts + 0.5))
    return found.astype("float32")


@cache
def prior_tokens() -> Array:
    """The assumed document frequency of each token: that of stop words is above 0."""
    model = static_model()
    if model is None:
        return np.zeros(0, dtype="<i4")
    forms = [form for word in sorted(STOP_WORDS) for form in (word, word.capitalize())]
    prior = np.zeros(len(model.vectors), dtype="<i4")
    prior[np.unique(np.concatenate(model.token_ids(forms)))] = PRIOR
    return prior
