"""Selects the lessons for a session: the best by relevance and prominence, with some of every category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from langgraph_scrum_master.briefing.bank import CATEGORIES, Lesson
from langgraph_scrum_master.briefing.matching import score_relevance
from langgraph_scrum_master.briefing.prominence import compute_prominence

if TYPE_CHECKING:
    from sqlite3 import Connection

_PER_CATEGORY = 3
"""The minimum number of entries per category, if the limit allows it."""

RELEVANCE_WEIGHT = 0.6


def select_entries(
    entries: Sequence[Lesson],
    limit: int,
    context_query: str | None = None,
    connection: Connection | None = None,
    relevance_weight: float = RELEVANCE_WEIGHT,
) -> list[Lesson]:
    """The best distinct entries up to the limit, best first, with their scores.

    Without a query or an index, prominence alone counts.
    """
    relevance: dict[str, float] = {}
    weight, prominence = 0.0, compute_prominence(entries)
    if context_query and connection is not None:
        weight, relevance = relevance_weight, score_relevance(context_query, connection)

    scores = {key: weight * relevance.get(key, 0.0) + (1 - weight) * value for key, value in prominence.items()}

    def best_first(entry: Lesson) -> tuple[float, float, str]:
        # Prominence breaks ties, also if its weight is 0.
        return -scores[entry.content_hash], -prominence[entry.content_hash], entry.content_hash

    chosen = balanced(sorted(entries, key=best_first), limit)
    return [replace(entry, score=scores[entry.content_hash]) for entry in chosen]


def balanced(ranked: Sequence[Lesson], limit: int) -> list[Lesson]:
    """The first entries up to the limit, with at least three per category if the limit allows it."""
    by_category = [[each for each in ranked if each.category == category] for category in CATEGORIES]
    reserved = [each for group in by_category for each in group[:_PER_CATEGORY]]
    if _PER_CATEGORY * sum(map(bool, by_category)) > limit:
        return list(ranked[:limit])
    taken = {each.content_hash for each in reserved}
    others = [each for each in ranked if each.content_hash not in taken][: limit - len(reserved)]
    taken |= {each.content_hash for each in others}
    return [each for each in ranked if each.content_hash in taken]
