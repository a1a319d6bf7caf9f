"""E5: cause and effect, which have a direction."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.semantic import strengths as meaning
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """The strength in E1, by whether the text gives the cause or the effect that is asked for."""
    told, tuning = candidates.causal, asked.tuning
    direction = np.where(told & asked.causal, tuning.causal_match, np.where(told, tuning.causal_mismatch, 1.0))
    return np.clip(meaning(asked, candidates) * direction, 0, 1)


def speaks(asked: RankQuery) -> bool:
    """Whether it asks for a cause or an effect."""
    return asked.causal != 0 and asked.embedded


SPACE = Space(name="E5 causal", category="semantic", agrees=0.34, diverges=0.12, strengths=strengths, speaks=speaks)
