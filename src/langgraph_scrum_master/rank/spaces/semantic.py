"""E1: the same meaning."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank import products
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery, unit_rows
from langgraph_scrum_master.rank.spaces.space import Space
from langgraph_scrum_master.rank.tuning import RankTuning


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """The cosine of the vectors; of sentence models, after the mean vector of the memory was subtracted."""
    vectors, wanted = candidates.vectors, asked.vector
    if asked.centre is not None and len(asked.centre):
        centre = asked.centre.astype("float32")
        vectors, wanted = unit_rows(vectors - centre), unit_rows((wanted - centre)[None, :])[0]
    return likeness(products.cosines(vectors, wanted), asked.tuning)


def likeness(cosines: Array, tuning: RankTuning) -> Array:
    """The cosines as strengths: from 0 for unrelated texts to 1 for those that say the same."""
    return np.clip((cosines - tuning.unrelated) / (tuning.same - tuning.unrelated), 0, 1)


def speaks(asked: RankQuery) -> bool:
    """Whether it could be embedded."""
    return asked.embedded


SPACE = Space(name="E1 semantic", category="semantic", agrees=0.31, diverges=0.12, strengths=strengths, speaks=speaks)
