"""E5: cause and effect, with a direction."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.semantic import strengths as meaning
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """The strength in E1, times a factor for stating the cause or effect that the query asks for, or its reverse."""
    stated, tuning = candidates.causal, query.tuning
    direction = np.where(stated & query.causal, tuning.causal_match, np.where(stated, tuning.causal_mismatch, 1.0))
    return np.clip(meaning(query, candidates) * direction, 0, 1)


def speaks(query: RankQuery) -> bool:
    """Whether the query asks for a cause or an effect."""
    return query.causal != 0 and query.embedded


SPACE = Space(name="E5 causal", category="semantic", agrees=0.34, diverges=0.12, strengths=strengths, speaks=speaks)
