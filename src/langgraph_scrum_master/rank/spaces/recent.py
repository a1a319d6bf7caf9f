"""E2: how fresh."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space

HALF_LIFE = 7 * 86_400.0
"""Seconds after which a text is half as fresh."""


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """1 for now, half of it for each week since; 0 where no time is known."""
    created = np.array([candidate.created for candidate in candidates.found])
    return np.where(created > 0, freshness(asked.now - created), 0.0)


def freshness(age: Array) -> Array:
    """1 for now, half of it for each week since."""
    return 0.5 ** (np.maximum(0.0, age) / HALF_LIFE)


SPACE = Space(name="E2 recent", category="temporal", agrees=0.70, diverges=0.30, strengths=strengths)
