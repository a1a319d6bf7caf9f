"""Prominence of lessons, independent of the session: observations, confidence and recency."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph_scrum_master.briefing.bank import CATEGORIES, Lesson

OBSERVATION_WEIGHT, CONFIDENCE_WEIGHT, _RECENCY_WEIGHT = 0.5, 0.3, 0.2
"""The weights of observations, confidence and recency."""

_LEVELS = {"high": 3, "medium": 2, "low": 1}


def compute_prominence(entries: Sequence[Lesson]) -> dict[str, float]:
    """The prominence of each entry by its hash, from 0 to 1."""
    most = max((entry.observation_count for entry in entries), default=0) or 1
    newest = max(len(entries) - 1, 1)
    return {
        entry.content_hash: entry.observation_count / most * OBSERVATION_WEIGHT
        + _LEVELS[entry.confidence] / max(_LEVELS.values()) * CONFIDENCE_WEIGHT
        + rank / newest * _RECENCY_WEIGHT
        for rank, entry in enumerate(by_recency(entries))
    }


def by_recency(entries: Sequence[Lesson]) -> list[Lesson]:
    """The entries, oldest first: global ones by date, local ones by their position in the file.

    Dates and positions cannot be compared, so both stores are spread evenly from oldest to newest.
    """
    local = sorted((each for each in entries if each.source == "local"), key=_by_position)
    shared = sorted((each for each in entries if each.source == "global"), key=_by_date)
    spread = [
        (index / max(len(store) - 1, 1), is_local, entry)
        for is_local, store in enumerate((shared, local))
        for index, entry in enumerate(store)
    ]
    return [entry for _, _, entry in sorted(spread, key=lambda each: each[:2])]


def _by_position(entry: Lesson) -> tuple[int, int, str]:
    return entry.position, CATEGORIES.index(entry.category), entry.content_hash


def _by_date(entry: Lesson) -> tuple[str, int, int, str]:
    return entry.last_observed, *_by_position(entry)
