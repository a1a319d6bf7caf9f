"""E3: similar time of day and day of the week."""

from __future__ import annotations

from typing import Any

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space

DAY, WEEK = 86_400.0, 604_800.0


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """The mean of how near the times of day and the days of the week are; 0 for texts without a time."""
    age = query.ages(candidates)
    return np.where(candidates.created > 0, (nearness(age, DAY) + nearness(age, WEEK)) / 2, 0.0)


def nearness(age: Any, period: float) -> Any:
    """How near two times are within the period: 1 for the same phase, 0 for the opposite phase."""
    return (1 + np.cos(2 * np.pi * age / period)) / 2


def speaks(query: RankQuery) -> bool:
    """Whether the time of the query is known."""
    return query.now is not None


SPACE = Space(name="E3 periodic", category="temporal", agrees=0.70, diverges=0.30, strengths=strengths, speaks=speaks)
