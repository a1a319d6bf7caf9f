"""E1: similar meaning, by the cosine of vectors."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank import products
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery, unit_rows
from langgraph_scrum_master.rank.spaces.space import Space
from langgraph_scrum_master.rank.tuning import RankTuning


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """The cosine of the vectors; with sentence models, the mean vector of the corpus is subtracted first."""
    vectors, wanted = candidates.vectors, query.vector
    if query.centre is not None and len(query.centre):
        centre = query.centre.astype("float32")
        vectors, wanted = unit_rows(vectors - centre), unit_rows((wanted - centre)[None, :])[0]
    return likeness(products.cosines(vectors, wanted), query.tuning)


def likeness(cosines: Array, tuning: RankTuning) -> Array:
    """Cosines scaled to strengths: 0 for unrelated texts, 1 for texts that say the same."""
    return np.clip((cosines - tuning.unrelated) / (tuning.same - tuning.unrelated), 0, 1)


def speaks(query: RankQuery) -> bool:
    """Whether the query has a vector."""
    return query.embedded


SPACE = Space(name="E1 semantic", category="semantic", agrees=0.31, diverges=0.12, strengths=strengths, speaks=speaks)
