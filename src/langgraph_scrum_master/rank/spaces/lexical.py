"""E6: shared words, by BM25."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """BM25 as a share of the idf sum of all query terms."""
    total = float(query.term_weights.sum())
    if not total:
        return np.zeros(len(candidates), dtype="float32")
    k1, b = query.tuning.bm25_k1, query.tuning.bm25_b
    length = k1 * (1 - b + b * candidates.lengths / query.corpus.mean_length)
    saturated = candidates.counts / (candidates.counts + length[candidates.terms.owner])
    return candidates.terms.sum_weights(query.features.terms, query.term_weights, saturated) / total


SPACE = Space(
    name="E6 lexical", category="semantic", agrees=0.12, diverges=0.05, strengths=strengths, weight_without_words=0.0
)
