"""E12: late interaction (MaxSim) over tokens."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines, distinct_values, dot_products
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """MaxSim: the mean over the query's tokens, weighted by idf, of the cosine with the nearest token of the text."""
    model = static_model()
    tokens, weights = query.tokens if model else (np.zeros(0), np.zeros(0))
    if model is None or not weights.sum() or not len(candidates.tokens.flat):
        return np.zeros(len(candidates), dtype="float32")
    distinct, index = distinct_values(candidates.tokens.flat, len(model.vectors))
    likeness = dot_products(model.unit_vectors(tokens), model.unit_vectors(distinct)).take(index, axis=1)
    nearest = cosines(np.maximum(0, candidates.tokens.max_per_list(likeness)).T, weights) / weights.sum()
    chance = query.tuning.by_chance
    return np.clip((nearest - chance) / (1 - chance), 0, 1)


SPACE = Space(
    name="E12 late interaction",
    category="semantic",
    agrees=0.31,
    diverges=0.16,
    strengths=strengths,
    weight_without_words=0.25,
)
