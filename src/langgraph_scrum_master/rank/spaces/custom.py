"""A space of the user's, as ranking compares it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.recipe import CustomSpace
from langgraph_scrum_master.rank.spaces.space import Space


def custom_space(given: CustomSpace) -> Space:
    """The space of the user's with its results checked. It has no thresholds: only the weight counts."""

    def strengths(asked: RankQuery, candidates: Candidates) -> Array:
        return _checked(given.code, given.strengths(asked, candidates), len(candidates))

    speaks: Callable[[RankQuery], bool] = getattr(given, "speaks", lambda _asked: True)
    return Space(
        name=f"{given.code} {given.name}",
        category="semantic",
        agrees=1.0,
        diverges=0.0,
        strengths=strengths,
        speaks=speaks,
        own_weight=float(given.weight),
    )


def _checked(code: str, made: object, count: int) -> Array:
    try:
        found = np.asarray(made, dtype="float64")
    except (TypeError, ValueError):
        found = np.full(1, np.nan)
    if found.shape != (count,) or not np.isfinite(found).all():
        raise ConfigError(
            f"the space {code} must give a finite number for each of {count} candidates, got {made!r:.200}"
        )
    return np.clip(found, 0, 1)
