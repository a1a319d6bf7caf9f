"""How much a text counts by its age."""

from __future__ import annotations

import time
from bisect import bisect_right
from datetime import datetime
from enum import Enum

from langgraph_scrum_master.config import RecencyWeights
from langgraph_scrum_master.model import instant

_HOUR, _DAY = 3_600.0, 86_400.0

_AHEAD = 300.0
"""Seconds by which clocks may differ: a memory from later on has no time to speak of."""


class RecencyFactor(Enum):
    """How old a memory is, by the age in seconds that it stays below."""

    VERY_RECENT = _HOUR
    RECENT = _DAY
    THIS_WEEK = 7 * _DAY
    THIS_MONTH = 30 * _DAY
    OLDER = 90 * _DAY
    STALE = float("inf")

    @classmethod
    def of(cls, age: float) -> RecencyFactor:
        """The first that the age in seconds is below."""
        return _FACTORS[bisect_right(_AGES, age)] if age == age else cls.STALE


_USUAL = RecencyWeights()
_FACTORS = [*RecencyFactor]
_AGES = [factor.value for factor in _FACTORS[:-1]]


def get_recency_factor(created_at: datetime | str, now: float | None = None, weights: RecencyWeights = _USUAL) -> float:
    """How much more or less a memory counts by its age; 1 where its time is not known. A naive time is taken as UTC."""
    created = instant(created_at.isoformat() if isinstance(created_at, datetime) else created_at)
    if created == float("-inf"):
        return 1.0
    age = (time.time() if now is None else now) - created
    if age < -_AHEAD:
        return 1.0
    return float(getattr(weights, RecencyFactor.of(age).name.lower()))
