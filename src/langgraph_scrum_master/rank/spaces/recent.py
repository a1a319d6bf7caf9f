"""E2: recency."""

from __future__ import annotations

from typing import Any

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space

HALF_LIFE = 7 * 86_400.0
"""Seconds after which a text is half as recent. By hand."""

DIGITS = 6
"""Decimals of the strength: an hour changes the third one."""


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """1 for now, halved per half-life of age; 0 for texts without a time."""
    return np.where(candidates.created > 0, freshness(query.ages(candidates)), 0.0)


def freshness(age: Any) -> Any:
    """1 for an age of 0 or less, halved per half-life."""
    return 0.5 ** (np.maximum(0.0, age) / HALF_LIFE)


def speaks(query: RankQuery) -> bool:
    """Whether the time of the query is known."""
    return query.now is not None


SPACE = Space(
    name="E2 recent",
    category="temporal",
    agrees=0.70,
    diverges=0.30,
    strengths=strengths,
    speaks=speaks,
    digits=DIGITS,
)
