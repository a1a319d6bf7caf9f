"""The weight of a text by its age."""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.settings import check_settings, number_between, setting
from langgraph_scrum_master.model import instant

_HOUR, _DAY = 3_600.0, 86_400.0

_AHEAD = 300.0
"""Tolerated clock difference in seconds. A memory from further in the future counts as one without a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecencyWeights(Plain):
    """Weight of a memory by its age."""

    very_recent: float = setting(1.3, number_between(0, 100))
    """Less than an hour."""
    recent: float = setting(1.2, number_between(0, 100))
    """Less than a day."""
    this_week: float = setting(1.1, number_between(0, 100))
    """Less than 7 days."""
    this_month: float = setting(1.0, number_between(0, 100))
    """Less than 30 days."""
    older: float = setting(0.9, number_between(0, 100))
    """Less than 90 days."""
    stale: float = setting(0.8, number_between(0, 100))
    """90 days or more."""

    def __post_init__(self) -> None:
        check_settings(self)


class RecencyFactor(Enum):
    """Age classes; the value is the upper bound in seconds."""

    VERY_RECENT = _HOUR
    RECENT = _DAY
    THIS_WEEK = 7 * _DAY
    THIS_MONTH = 30 * _DAY
    OLDER = 90 * _DAY
    STALE = float("inf")

    @classmethod
    def of(cls, age: float) -> RecencyFactor:
        """The class of an age in seconds."""
        return _FACTORS[bisect_right(_AGES, age)] if age == age else cls.STALE


_DEFAULT_WEIGHTS = RecencyWeights()
_FACTORS = [*RecencyFactor]
_AGES = [factor.value for factor in _FACTORS[:-1]]


def get_recency_factor(
    created_at: datetime | str, now: float | None = None, weights: RecencyWeights = _DEFAULT_WEIGHTS
) -> float:
    """The factor for a memory's age; 1 if its time is unknown. Naive times are taken as UTC."""
    created = instant(created_at.isoformat() if isinstance(created_at, datetime) else created_at)
    if created == float("-inf"):
        return 1.0
    age = (time.time() if now is None else now) - created
    if age < -_AHEAD:
        return 1.0
    return float(getattr(weights, RecencyFactor.of(age).name.lower()))
