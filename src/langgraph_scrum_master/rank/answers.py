"""Which texts answer a need, in the light of what was said around it.

`rank.relevance` tells what belongs to a piece of work: what it refers to and what stands beside it counts there. An
answer must stand in the text itself, so that none of this counts here. What was said around the need finds the text:
most needs say little of what they are about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np

from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.corpus import Corpus, Texts
from langgraph_scrum_master.rank.features import Array, features_of, vocabulary
from langgraph_scrum_master.rank.match import Match
from langgraph_scrum_master.rank.query import Around, Candidate, Candidates, RankQuery, document_vectors, packed_vector
from langgraph_scrum_master.rank.relevance import ANOTHER, agreement
from langgraph_scrum_master.rank.spaces import SPACES, Space, lexical
from langgraph_scrum_master.rank.spaces.graph import others

BEHIND = 5
"""How far ahead of the text at this place a text is tells whether it stands out."""


class AnswerWeights(NamedTuple):
    """What each sign counts in log odds that a text holds the answer: `benchmarks/calibrate_answers.py` prints them."""

    always: float = 0.0
    words: float = 0.0
    """The words of the need and of what was said around it that the text has, by BM25, counted in words that no text
    has, as a logarithm: not as a share, for talk has many other words."""
    ahead: float = 0.0
    """The share by which that is more than the sixth best text's."""
    of_best: float = 0.0
    """That as a share of the best text's."""
    need: float = 0.0
    """The agreement of all spaces with the need alone, as a share of what it could be."""


_WEIGHTS = AnswerWeights(always=-7.18, words=2.61, ahead=1.86, of_best=2.49, need=3.19)

ANSWER_BAR = 0.24
"""The probability from which a text is worth its tokens: score 0.7."""

_AT_BAR = log(0.7 / 0.3) - log(ANSWER_BAR / (1 - ANSWER_BAR))


class NeedQuery:
    """A need, by itself and with what was said around it, as compared with the texts of a corpus."""

    def __init__(
        self,
        text: str,
        around: Sequence[Around],
        corpus: Corpus,
        embedder: Embedder | None,
        models: Mapping[str, Embedder] | None = None,
    ) -> None:
        self.alone = RankQuery(text, corpus, embedder, models=models)
        self.whole = RankQuery(text, corpus, embedder, models=models, around=around) if around else self.alone

    @property
    def both(self) -> tuple[RankQuery, ...]:
        """By itself and with its surroundings, where it has any."""
        return (self.alone, self.whole) if self.whole is not self.alone else (self.alone,)


def answers(needed: NeedQuery, candidates: Candidates, spaces: Sequence[Space] = SPACES) -> list[Match]:
    """How likely each of these texts holds the answer, as a score that is 0.7 where it is worth its tokens."""
    signs, strengths, agreed = signs_of(needed, candidates, spaces)
    codes = [space.code for space in strengths]
    own = np.stack(list(strengths.values()), axis=1).astype("float64").round(3).tolist()
    scores = [_scored(each) for each in (signs @ _WEIGHTS).tolist()]
    return [
        Match(score, dict(zip(codes, each, strict=True)), together)
        for score, each, together in zip(scores, own, agreed.round(3).tolist(), strict=True)
    ]


def _scored(log_odds: float) -> float:
    """The odds of an answer as a score."""
    return 1 / (1 + exp(-max(-50.0, min(50.0, log_odds + _AT_BAR))))


def signs_of(
    needed: NeedQuery, candidates: Candidates, spaces: Sequence[Space]
) -> tuple[Array, dict[Space, Array], Array]:
    """A row of signs for each text, in the order of `Weights`; its strengths, and those together."""
    whole = agreement(needed.whole, candidates, spaces)
    alone = agreement(needed.alone, candidates, spaces) if needed.alone is not needed.whole else whole
    nothing = np.zeros(len(candidates))
    words = whole.strengths.get(lexical.SPACE, nothing).astype("float64")
    if needed.alone.families:
        words = np.where(others(needed.alone, candidates), ANOTHER * words, words)
    ranked = np.sort(words)[::-1]
    best, behind = (ranked[0], ranked[BEHIND] if len(ranked) > BEHIND else 0.0) if len(ranked) else (0.0, 0.0)
    signs = np.stack(
        [
            np.ones(len(candidates)),
            np.log1p(words * float(needed.whole.term_weights.sum()) / _rarest(needed.whole.corpus)),
            np.maximum(0, words - behind) / np.maximum(words, 1e-9),
            words / max(best, 1e-9),
            alone.total / max(alone.whole, 1e-9),
        ],
        axis=1,
    )
    together = np.sum([space.weight * strength for space, strength in whole.strengths.items()], axis=0)
    return signs, whole.strengths, together


def _rarest(corpus: Corpus) -> float:
    """What a word counts that stands in no text."""
    return float(corpus.term_rarity(np.zeros(1, dtype="<u4"))[0])


def answers_among(need: str, around: Sequence[Around], texts: Sequence[str], embedder: Embedder) -> list[Match]:
    """The same of texts that are all there are."""
    if not texts or not need.strip():
        return [Match(0.0)] * len(texts)
    features = features_of(texts)
    corpus = Texts(zip(features, map(vocabulary, texts), strict=True))
    vectors = document_vectors(texts, corpus, embedder)
    packed = [packed_vector(vector) for vector in vectors]
    found = [
        Candidate(features=each.pack(), vector=vector, context=vector)
        for each, vector in zip(features, packed, strict=True)
    ]
    return answers(NeedQuery(need, around, corpus, embedder), Candidates(found))
