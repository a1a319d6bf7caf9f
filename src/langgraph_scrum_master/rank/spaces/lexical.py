"""E6: the same words, by BM25."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """BM25 as a share of what a text with all the words would have: an absolute number."""
    whole = float(asked.term_weights.sum())
    if not whole:
        return np.zeros(len(candidates), dtype="float32")
    k1, b = asked.tuning.bm25_k1, asked.tuning.bm25_b
    length = k1 * (1 - b + b * candidates.lengths / asked.corpus.mean_length)
    repeated = candidates.counts / (candidates.counts + length[candidates.terms.owner])
    return candidates.terms.held(asked.features.terms, asked.term_weights, repeated) / whole


SPACE = Space(name="E6 lexical", category="semantic", agrees=0.12, diverges=0.05, strengths=strengths, unheard=0.0)
