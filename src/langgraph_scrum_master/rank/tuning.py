"""The parameters of ranking.

The docstring of each field says where its value comes from: a script in `benchmarks/` that prints or checks it, or "by
hand". Three groups of numbers are not here:

- what stored features depend on: the sizes in `rank/features.py` and `rank/embedders.py`, the prior of
  `rank/corpus.py`, and the context window of `rank/relevance.py`
- what readers of strengths rely on: `agrees`, `diverges` and `weight_without_words` of each space, in its file, and the
  half-life of E2, which prompts use to say what is recent
- limits of caches and of matrix products, which change no result
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import isfinite, log
from typing import Literal, NamedTuple, TypeAlias

from langgraph_scrum_master.errors import ConfigError

Category: TypeAlias = Literal["semantic", "relational", "structural", "temporal"]
"""The kind of similarity that a space measures; it decides the weight of the space."""

SCORE_AT_BAR = 0.7
"""The score of a text that is just worth its tokens."""


class AnswerWeights(NamedTuple):
    """The weight of each signal in the log odds that a text holds the answer.

    Fitted and printed by `benchmarks/calibrate_answers.py`.
    """

    always: float = 0.0
    """The constant."""
    words: float = 0.0
    """Logarithm of BM25 for the need and the messages around it, in units of the idf of an unseen word. Not a share of
    the maximum, because messages contain many other words."""
    ahead: float = 0.0
    """The share by which BM25 exceeds that of the text at rank `RankTuning.behind`."""
    of_best: float = 0.0
    """BM25 as a share of the best text's."""
    need: float = 0.0
    """The agreement of all spaces with the need alone, as a share of its maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTuning:
    """Weights, thresholds and shares of ranking, for `ChromaMemory(tuning=RankTuning(...))`."""

    semantic_weight: float = 1.0
    """Weight of the semantic spaces. By hand; `benchmarks/recall.py` checks it."""
    relational_weight: float = 0.5
    """Weight of the relational spaces. By hand; `benchmarks/recall.py` checks it."""
    structural_weight: float = 0.5
    """Weight of the structural space. By hand; `benchmarks/recall.py` checks it."""
    temporal_weight: float = 0.0
    """Weight of the temporal spaces. By hand: time says when a text was written, not what it is about."""

    relevance_bar: float = 0.22
    """The agreement, as a share of its maximum for the query, that scores 0.7. `benchmarks/calibrate.py` prints what
    several values let through."""
    steepness: float = 9.0
    """The slope of the logistic curve from agreement to score. By hand."""

    no_words: float = 0.2
    """The best E12 strength up to which no candidate counts as having the query's words. By hand."""
    has_words: float = 0.3
    """The best E12 strength from which one does. By hand."""
    stands_out: float = 3.6
    """The factor for the lead of the nearest vector over the next one, with sentence embedders only. By hand;
    `benchmarks/bench_paraphrases.py` checks it."""
    other_record: float = 0.25
    """The factor for a record if the query is about another record of its kind. By hand."""
    few_words: int = 2
    """A query that names a record is about that record if it has at most this many other words. By hand."""
    record_family: int = 3
    """Names with the same prefix that make an unknown prefix a kind of record: SHA-1 and SHA-256 do not. By hand."""

    neighbours: tuple[tuple[int, float], ...] = ((1, 0.3), (2, 0.2))
    """The share of a neighbour's agreement that supports a text, by distance in the session. By hand;
    `benchmarks/recall.py` checks it."""
    strong_neighbour: float = 0.5
    """The share of its maximum from which a neighbour's agreement supports fully; the support of weaker ones grows with
    the cube. By hand; `benchmarks/recall.py` checks it."""
    short_text: int = 250
    """Characters up to which a text gets its neighbours' full support; longer texts get less. By hand."""
    supporters: int = 12
    """The number of best first candidates whose neighbours become candidates too. By hand."""
    citing: int = 30
    """The number of best texts whose references are followed. By hand."""
    cited: float = 0.6
    """The share of a text's agreement that goes to the records it cites, divided by the root of their number. By hand;
    `benchmarks/recall.py` checks it."""
    fair_share: int = 400
    """Tokens of one session or document, about, after which others come first. By hand; `benchmarks/recall.py` checks
    it."""
    crowded: float = 0.5
    """The factor for a text whose session or document has used up its share. By hand; `benchmarks/recall.py` checks
    it."""

    answer_weights: AnswerWeights = field(
        default=AnswerWeights(always=-7.18, words=2.61, ahead=1.86, of_best=2.49, need=3.19)
    )
    """The weights of the signals for an answer. `benchmarks/calibrate_answers.py` prints them."""
    answer_bar: float = 0.24
    """The probability of an answer that scores 0.7. `benchmarks/calibrate_answers.py` prints what several values let
    through."""
    behind: int = 5
    """The rank, from 0, of the text that `AnswerWeights.ahead` compares with. By hand."""

    unrelated: float = 0.1
    """E1, E5, E10: the cosine of unrelated texts, strength 0. By hand."""
    same: float = 0.7
    """E1, E5, E10: the cosine of texts that say the same, strength 1. By hand."""
    causal_match: float = 1.2
    """E5: the factor for a text that states the cause or effect that the query asks for. By hand."""
    causal_mismatch: float = 0.8
    """E5: the factor for a text that states only the reverse. By hand."""
    bm25_k1: float = 1.2
    """E6: saturation of repeated terms in BM25. The usual value."""
    bm25_b: float = 0.75
    """E6: length normalisation in BM25. The usual value."""
    length_floor: float = 0.25
    """E9: the part of the length normalisation that does not depend on the length. By hand."""
    by_chance: float = 0.2
    """E12: MaxSim of unrelated texts, strength 0. By hand."""
    query_terms: int = 48
    """E12, E13: terms and tokens of a query that are compared, those with the highest idf. By hand, for speed."""
    unrelated_words: float = 0.15
    """E13: the cosine of two unrelated words, likeness 0. By hand."""
    related_words: float = 0.60
    """E13: the cosine from which one word counts as the other, likeness 1. By hand."""
    least_related: float = 0.25
    """E13: cosines up to this value count as 0. By hand."""

    def __post_init__(self) -> None:
        for name in _SHARES:
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(f"{name} must be between 0 and 1, got {getattr(self, name)!r}")
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int | float) and not (isfinite(value) and value >= 0):
                raise ConfigError(f"{each.name} must be a finite number of at least 0, got {value!r}")
        for low, high in _RANGES:
            if not getattr(self, low) < getattr(self, high):
                raise ConfigError(f"{low} must be below {high}, got {getattr(self, low)!r} and {getattr(self, high)!r}")

    def weight(self, category: Category) -> float:
        """The weight of the spaces of a category."""
        return float(getattr(self, f"{category}_weight"))

    @property
    def answer_shift(self) -> float:
        """The shift of the log odds that makes `answer_bar` score 0.7."""
        return log(SCORE_AT_BAR / 0.3) - log(self.answer_bar / (1 - self.answer_bar))


_SHARES = ("relevance_bar", "answer_bar", "strong_neighbour")
_RANGES = (("no_words", "has_words"), ("unrelated", "same"), ("unrelated_words", "related_words"))

DEFAULT_TUNING = RankTuning()
"""The default parameters."""
