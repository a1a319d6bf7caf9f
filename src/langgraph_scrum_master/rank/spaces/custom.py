"""Adapter for user-defined spaces."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.recipe import CustomSpace
from langgraph_scrum_master.rank.spaces.space import Space


def custom_space(given: CustomSpace) -> Space:
    """The user's space with its results checked. It has no thresholds; only its weight counts."""

    def strengths(query: RankQuery, candidates: Candidates) -> Array:
        return _check_strengths(given.code, given.strengths(query, candidates), len(candidates))

    speaks: Callable[[RankQuery], bool] = getattr(given, "speaks", lambda _query: True)
    return Space(
        name=f"{given.code} {given.name}",
        category="semantic",
        agrees=1.0,
        diverges=0.0,
        strengths=strengths,
        speaks=speaks,
        own_weight=float(given.weight),
    )


def _check_strengths(code: str, output: object, count: int) -> Array:
    try:
        strengths = np.asarray(output, dtype="float64")
    except (TypeError, ValueError):
        strengths = np.full(1, np.nan)
    if strengths.shape != (count,) or not np.isfinite(strengths).all():
        raise ConfigError(
            f"the space {code} must return a finite number for each of {count} candidates, got {output!r:.200}"
        )
    return np.clip(strengths, 0, 1)
