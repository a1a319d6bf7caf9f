"""E2: how recent, if the time of the query is known."""

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


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """1 for now, half of it for each half-life since; 0 for texts without a time."""
    return np.where(candidates.created > 0, freshness(asked.ages(candidates)), 0.0)


def freshness(age: Any) -> Any:
    """1 for now or later, half of it for each half-life since."""
    return 0.5 ** (np.maximum(0.0, age) / HALF_LIFE)


def speaks(asked: RankQuery) -> bool:
    """Whether the time of the query is known."""
    return asked.now is not None


SPACE = Space(
    name="E2 recent",
    category="temporal",
    agrees=0.70,
    diverges=0.30,
    strengths=strengths,
    speaks=speaks,
    digits=DIGITS,
)
