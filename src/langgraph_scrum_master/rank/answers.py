"""Ranking of texts by how likely they answer a need.

`rank.relevance` finds texts that belong to a piece of work, where citations and neighbours count. An answer must be in
the text itself, so neither counts here. The messages around a need are part of the query, because most needs say
little about their topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import exp

import numpy as np

from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.corpus import Corpus, TextCorpus
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.match import Match
from langgraph_scrum_master.rank.prepared import prepared
from langgraph_scrum_master.rank.query import Around, Candidates, RankQuery, document_vectors, packed_vector
from langgraph_scrum_master.rank.relevance import Agreement, agreement
from langgraph_scrum_master.rank.spaces import SPACES, TIMELESS, Space, lexical
from langgraph_scrum_master.rank.spaces.graph import other_records
from langgraph_scrum_master.rank.table import Candidate
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, RankTuning


class NeedQuery:
    """A need as two queries: alone, and together with the messages around it."""

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
    def queries(self) -> tuple[RankQuery, ...]:
        """The need alone and, if there are messages around it, together with them."""
        return (self.alone, self.whole) if self.whole is not self.alone else (self.alone,)


def answers(query: NeedQuery, candidates: Candidates, spaces: Sequence[Space] = SPACES) -> list[Match]:
    """The match of each text: its score is the calibrated probability that it holds the answer."""
    tuning = query.tuning
    signs, whole = signs_of(query, candidates, spaces)
    scores = [_score(each, tuning.answer_shift) for each in (signs @ tuning.answer_weights).tolist()]
    agreements = np.sum([space.weight_in(tuning) * strength for space, strength in whole.weighted.items()], axis=0)
    strengths = whole.rounded_strengths(range(len(candidates)))
    return [Match(*each) for each in zip(scores, strengths, agreements.round(3).tolist(), strict=True)]


def _score(log_odds: float, shift: float) -> float:
    """The score for the log odds of an answer."""
    return 1 / (1 + exp(-max(-50.0, min(50.0, log_odds + shift))))


def signs_of(query: NeedQuery, candidates: Candidates, spaces: Sequence[Space]) -> tuple[Array, Agreement]:
    """A row of signals per text, in the order of `AnswerWeights`, and the agreement with the whole query."""
    whole = agreement(query.whole, candidates, spaces)
    alone = agreement(query.alone, candidates, spaces) if query.alone is not query.whole else whole
    words = whole.strengths.get(lexical.SPACE, np.zeros(len(candidates))).astype("float64")
    if query.alone.families:
        words = np.where(other_records(query.alone, candidates), query.tuning.other_record * words, words)
    ranked = np.sort(words)[::-1]
    best, behind = (ranked[at] if len(ranked) > at else 0.0 for at in (0, query.tuning.behind))
    signs = np.stack(
        [
            np.ones(len(candidates)),
            np.log1p(words * float(query.whole.term_weights.sum()) / _highest_idf(query.whole.corpus)),
            np.maximum(0, words - behind) / np.maximum(words, 1e-9),
            words / max(best, 1e-9),
            alone.total / max(alone.maximum, 1e-9),
        ],
        axis=1,
    )
    return signs, whole


def _highest_idf(corpus: Corpus) -> float:
    """The idf of a word that occurs in no text."""
    return float(corpus.term_idf(np.zeros(1, dtype="<u4"))[0])


def answers_among(
    need: str,
    around: Sequence[Around],
    texts: Sequence[str],
    embedder: Embedder,
    tuning: RankTuning = DEFAULT_TUNING,
) -> list[Match]:
    """The match of each text for a need, with these texts as the whole corpus."""
    if not texts or not need.strip():
        return [Match(0.0)] * len(texts)
    read = prepared(texts)
    corpus = TextCorpus((each.features, each.words) for each in read)
    vectors = document_vectors(texts, corpus, embedder, [each.tokens for each in read])
    packed = [packed_vector(vector) for vector in vectors]
    rows = [
        Candidate(features=each.packed, vector=vector, context=vector)
        for each, vector in zip(read, packed, strict=True)
    ]
    query = NeedQuery(need, around, corpus, embedder, tuning=tuning)
    return answers(query, Candidates(rows, texts=lambda: texts), TIMELESS)
