"""E11: shared proper names."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """The share of the query's proper names that the text has."""
    wanted = query.features.entities
    return candidates.ragged("entities").sum_weights(wanted, np.ones(len(wanted))) / len(wanted)


def speaks(query: RankQuery) -> bool:
    """Whether the query has proper names."""
    return len(query.features.entities) > 0


SPACE = Space(name="E11 entity", category="relational", agrees=0.99, diverges=0.33, strengths=strengths, speaks=speaks)
