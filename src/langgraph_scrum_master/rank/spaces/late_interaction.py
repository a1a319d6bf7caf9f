"""E12: late interaction (MaxSim): the nearest token for each token."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines, distinct_numbers, table
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """The mean over the query's tokens, by idf, of the cosine with the nearest token of the text."""
    model = static_model()
    tokens, weights = asked.tokens if model else (np.zeros(0), np.zeros(0))
    if model is None or not weights.sum() or not len(candidates.tokens.flat):
        return np.zeros(len(candidates), dtype="float32")
    different, place = distinct_numbers(candidates.tokens.flat, len(model.vectors))
    likeness = table(model.unit_vectors(tokens), model.unit_vectors(different)).take(place, axis=1)
    nearest = cosines(np.maximum(0, candidates.tokens.best(likeness)).T, weights) / weights.sum()
    chance = asked.tuning.by_chance
    return np.clip((nearest - chance) / (1 - chance), 0, 1)


SPACE = Space(
    name="E12 late interaction", category="semantic", agrees=0.31, diverges=0.16, strengths=strengths, unheard=0.25
)
