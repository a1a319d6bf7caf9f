"""The order of memories: relevance × recency × agreement of spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langgraph_scrum_master.model import HIGH_AGREEMENT, Dropped, RetrievedContext
from langgraph_scrum_master.rank.recency import RecencyWeights, get_recency_factor
from langgraph_scrum_master.rank.spaces import SPACES
from langgraph_scrum_master.retrieval.dedupe import dropped

VERY_HIGH_AGREEMENT = 5.0

_AGREES = {space.code: (space.weight, space.agrees) for space in SPACES}


def diversity_bonus(weighted_agreement: float) -> float:
    """The factor for memories on which several spaces agree."""
    if weighted_agreement >= VERY_HIGH_AGREEMENT:
        return 1.5
    return 1.2 if weighted_agreement >= HIGH_AGREEMENT else 1.0


def summed_relevance(strengths: Mapping[str, float]) -> float:
    """The weighted sum of how far each strength exceeds the threshold of its space."""
    total = 0.0
    for code, strength in strengths.items():
        weight, agrees = _AGREES.get(code, (0.0, 0.0))
        if strength > agrees:
            total += weight * (strength - agrees)
    return total


def priority(relevance: float, recency_factor: float, weighted_agreement: float) -> float:
    """The sort key of a memory."""
    return relevance * recency_factor * diversity_bonus(weighted_agreement)


def prioritized(
    contexts: Sequence[RetrievedContext], bar: float, now: float, weights: RecencyWeights
) -> tuple[list[tuple[float, RetrievedContext]], list[Dropped]]:
    """The memories that reach the bar and have a priority above 0, in order; and the dropped ones.

    If the store reports no strengths, its score is the relevance.
    """
    ranked = [(_priority(context, now, weights), context) for context in contexts if context.relevance_score >= bar]
    good = sorted((pair for pair in ranked if pair[0] > 0), key=lambda pair: (-pair[0], pair[1].key))
    kept = {context.key for _, context in good}
    return good, [dropped(context, "below_bar") for context in contexts if context.key not in kept]


def _priority(context: RetrievedContext, now: float, weights: RecencyWeights) -> float:
    relevance = summed_relevance(context.strengths) if context.strengths else context.relevance_score
    return priority(relevance, get_recency_factor(context.created_at, now, weights), context.weighted_agreement)
