"""Which lessons a session gets: the best by relevance and prominence, and some of every category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from langgraph_scrum_master.briefing.bank import CATEGORIES, Lesson
from langgraph_scrum_master.briefing.matching import score_relevance
from langgraph_scrum_master.briefing.prominence import compute_prominence

if TYPE_CHECKING:
    from sqlite3 import Connection

_LEAST = 3
"""Entries of each category that has any, where the limit allows as many."""

RELEVANCE_WEIGHT = 0.6


def select_entries(
    entries: Sequence[Lesson],
    limit: int,
    context_query: str | None = None,
    connection: Connection | None = None,
    relevance_weight: float = RELEVANCE_WEIGHT,
) -> list[Lesson]:
    """At most so many of distinct entries, the best first, each with its score.

    Without a query or an index they go by prominence alone.
    """
    relevance: dict[str, float] = {}
    weight, prominence = 0.0, compute_prominence(entries)
    if context_query and connection is not None:
        weight, relevance = relevance_weight, score_relevance(context_query, connection)

    scores = {key: weight * relevance.get(key, 0.0) + (1 - weight) * value for key, value in prominence.items()}

    def best_first(entry: Lesson) -> tuple[float, float, str]:
        # Where relevance alone counts, prominence still decides between equals.
        return -scores[entry.content_hash], -prominence[entry.content_hash], entry.content_hash

    chosen = balanced(sorted(entries, key=best_first), limit)
    return [replace(entry, score=scores[entry.content_hash]) for entry in chosen]


def balanced(ranked: Sequence[Lesson], limit: int) -> list[Lesson]:
    """The first ones up to the limit, but of each category the first three, if all categories' three fit."""
    by_category = [[each for each in ranked if each.category == category] for category in CATEGORIES]
    owed = [each for some in by_category for each in some[:_LEAST]]
    if _LEAST * sum(map(bool, by_category)) > limit:
        return list(ranked[:limit])
    taken = {each.content_hash for each in owed}
    others = [each for each in ranked if each.content_hash not in taken][: limit - len(owed)]
    taken |= {each.content_hash for each in others}
    return [each for each in ranked if each.content_hash in taken]
