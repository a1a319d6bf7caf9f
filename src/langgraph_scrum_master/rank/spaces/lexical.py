"""E6: the same words."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space

K1, B = 1.2, 0.75
"""BM25: how soon a repeated word counts no more, and how much a long text is held against it."""


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """BM25 as a share of what a text with all the words would have: an absolute number."""
    whole = float(asked.term_weights.sum())
    if not whole:
        return np.zeros(len(candidates), dtype="float32")
    length = K1 * (1 - B + B * candidates.lengths / asked.corpus.mean_length)
    repeated = candidates.counts / (candidates.counts + length[candidates.terms.owner])
    return candidates.terms.held(asked.features.terms, asked.term_weights, repeated) / whole


SPACE = Space(name="E6 lexical", category="semantic", agrees=0.12, diverges=0.05, strengths=strengths, unheard=0.0)
