"""Which texts answer a need, in the light of what was said around it.

`rank.relevance` finds what belongs to a piece of work, where citations and neighbours count. An answer must be in the
text itself, so that neither counts here. What was said around the need finds the text: most needs say little of what
they are about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import exp

import numpy as np

from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.corpus import Corpus, Texts
from langgraph_scrum_master.rank.features import Array, features_of, vocabulary
from langgraph_scrum_master.rank.match import Match
from langgraph_scrum_master.rank.query import Around, Candidate, Candidates, RankQuery, document_vectors, packed_vector
from langgraph_scrum_master.rank.relevance import Agreement, agreement
from langgraph_scrum_master.rank.spaces import SPACES, TIMELESS, Space, lexical
from langgraph_scrum_master.rank.spaces.graph import others
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, RankTuning


class NeedQuery:
    """A need, by itself and with what was said around it, as compared with the texts of a corpus."""

    def __init__(
        self,
        text: str,
        around: Sequence[Around],
        corpus: Corpus,
        embedder: Embedder | None,
        models: Mapping[str, Embedder] | None = None,
        *,
        now: float | None = None,
        tuning: RankTuning = DEFAULT_TUNING,
    ) -> None:
        query = partial(RankQuery, text, corpus, embedder, now=now, models=models, tuning=tuning)
        self.tuning = tuning
        self.alone = query()
        self.whole = query(around=around) if around else self.alone

    @property
    def both(self) -> tuple[RankQuery, ...]:
        """By itself and with its surroundings, where it has any."""
        return (self.alone, self.whole) if self.whole is not self.alone else (self.alone,)


def answers(needed: NeedQuery, candidates: Candidates, spaces: Sequence[Space] = SPACES) -> list[Match]:
    """How likely each of these texts holds the answer, as a score that is 0.7 where it is worth its tokens."""
    tuning = needed.tuning
    signs, whole = signs_of(needed, candidates, spaces)
    scores = [_scored(each, tuning.answer_shift) for each in (signs @ tuning.answer_weights).tolist()]
    together = np.sum([space.weight_in(tuning) * strength for space, strength in whole.weighted.items()], axis=0)
    reported = whole.reported(range(len(candidates)))
    return [Match(*each) for each in zip(scores, reported, together.round(3).tolist(), strict=True)]


def _scored(log_odds: float, shift: float) -> float:
    """The odds of an answer as a score."""
    return 1 / (1 + exp(-max(-50.0, min(50.0, log_odds + shift))))


def signs_of(needed: NeedQuery, candidates: Candidates, spaces: Sequence[Space]) -> tuple[Array, Agreement]:
    """A row of signals for each text, in the order of `AnswerWeights`, and how the texts agree with the whole."""
    whole = agreement(needed.whole, candidates, spaces)
    alone = agreement(needed.alone, candidates, spaces) if needed.alone is not needed.whole else whole
    nothing = np.zeros(len(candidates))
    words = whole.strengths.get(lexical.SPACE, nothing).astype("float64")
    if needed.alone.families:
        words = np.where(others(needed.alone, candidates), needed.tuning.other_record * words, words)
    ranked = np.sort(words)[::-1]
    best, behind = (ranked[at] if len(ranked) > at else 0.0 for at in (0, needed.tuning.behind))
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
    return signs, whole


def _rarest(corpus: Corpus) -> float:
    """The idf of a word that is in no text."""
    return float(corpus.term_rarity(np.zeros(1, dtype="<u4"))[0])


def answers_among(
    need: str,
    around: Sequence[Around],
    texts: Sequence[str],
    embedder: Embedder,
    tuning: RankTuning = DEFAULT_TUNING,
) -> list[Match]:
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
    needed = NeedQuery(need, around, corpus, embedder, tuning=tuning)
    return answers(needed, Candidates(found, texts=lambda: texts), TIMELESS)
