"""Which memories come first: relevance × recency × how many spaces agree."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum

from langgraph_scrum_master.config import RecencyWeights
from langgraph_scrum_master.model import HIGH_AGREEMENT, Dropped, RetrievedContext, instant
from langgraph_scrum_master.rank.dedupe import dropped
from langgraph_scrum_master.rank.spaces import SPACES

HOUR, DAY = 3_600.0, 86_400.0

VERY_HIGH_AGREEMENT = 5.0

AHEAD = 300.0
"""Seconds by which clocks may differ: a memory from later on has no time to speak of."""

_AGREES = {space.code: (space.weight, space.agrees) for space in SPACES}


class RecencyFactor(Enum):
    """How old a memory is, by the age in seconds that it stays below."""

    VERY_RECENT = HOUR
    RECENT = DAY
    THIS_WEEK = 7 * DAY
    THIS_MONTH = 30 * DAY
    OLDER = 90 * DAY
    STALE = float("inf")

    @classmethod
    def of(cls, age: float) -> RecencyFactor:
        """The first that the age in seconds is below."""
        return _FACTORS[bisect_right(_AGES, age)] if age == age else cls.STALE


USUAL = RecencyWeights()
_FACTORS = [*RecencyFactor]
_AGES = [factor.value for factor in _FACTORS[:-1]]


def get_recency_factor(created_at: datetime | str, now: float | None = None, weights: RecencyWeights = USUAL) -> float:
    """How much more or less a memory counts by its age; 1 where its time is not known. A naive time is taken as UTC."""
    created = instant(created_at.isoformat() if isinstance(created_at, datetime) else created_at)
    if created == float("-inf"):
        return 1.0
    age = (time.time() if now is None else now) - created
    if age < -AHEAD:
        return 1.0
    return float(getattr(weights, RecencyFactor.of(age).name.lower()))


def diversity_bonus(weighted_agreement: float) -> float:
    """How much more a memory counts on which several spaces agree."""
    if weighted_agreement >= VERY_HIGH_AGREEMENT:
        return 1.5
    return 1.2 if weighted_agreement >= HIGH_AGREEMENT else 1.0


def summed_relevance(strengths: Mapping[str, float]) -> float:
    """By how much the strengths are above what makes their spaces agree, each by the weight of its space."""
    total = 0.0
    for code, strength in strengths.items():
        weight, agrees = _AGREES.get(code, (0.0, 0.0))
        if strength > agrees:
            total += weight * (strength - agrees)
    return total


def priority(relevance: float, recency_factor: float, weighted_agreement: float) -> float:
    """What memories are ordered by."""
    return relevance * recency_factor * diversity_bonus(weighted_agreement)


def prioritized(
    contexts: Sequence[RetrievedContext], bar: float, now: float, weights: RecencyWeights
) -> tuple[list[tuple[float, RetrievedContext]], list[Dropped]]:
    """The memories in their order, each with its priority, of those that reach the bar and on which some space agrees.

    Where a store does not tell the spaces' strengths, its score is the relevance.
    """
    ranked = [(_priority(context, now, weights), context) for context in contexts if context.relevance_score >= bar]
    good = sorted((pair for pair in ranked if pair[0] > 0), key=lambda pair: (-pair[0], pair[1].key))
    taken = {context.key for _, context in good}
    return good, [dropped(context, "below_bar") for context in contexts if context.key not in taken]


def _priority(context: RetrievedContext, now: float, weights: RecencyWeights) -> float:
    relevance = summed_relevance(context.strengths) if context.strengths else context.relevance_score
    return priority(relevance, get_recency_factor(context.created_at, now, weights), context.weighted_agreement)
