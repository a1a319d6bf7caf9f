"""E11: the same people and things."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """The share of the names in the query that the text has."""
    wanted = asked.features.entities
    return candidates.ragged("entities").held(wanted, np.ones(len(wanted))) / len(wanted)


def speaks(asked: RankQuery) -> bool:
    """Whether it names anybody or anything."""
    return len(asked.features.entities) > 0


SPACE = Space(name="E11 entity", category="relational", agrees=0.99, diverges=0.33, strengths=strengths, speaks=speaks)
