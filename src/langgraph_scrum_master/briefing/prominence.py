"""How much a lesson counts whatever a session is about: how often it was seen, how sure it is, how new."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph_scrum_master.briefing.bank import CATEGORIES, Lesson

OBSERVED, SURE, _RECENT = 0.5, 0.3, 0.2
"""The shares of observations, confidence and recency."""

_LEVELS = {"high": 3, "medium": 2, "low": 1}


def compute_prominence(entries: Sequence[Lesson]) -> dict[str, float]:
    """The prominence of each entry by its hash, from 0 to 1."""
    most = max((entry.observation_count for entry in entries), default=0) or 1
    newest = max(len(entries) - 1, 1)
    return {
        entry.content_hash: entry.observation_count / most * OBSERVED
        + _LEVELS[entry.confidence] / max(_LEVELS.values()) * SURE
        + rank / newest * _RECENT
        for rank, entry in enumerate(by_recency(entries))
    }


def by_recency(entries: Sequence[Lesson]) -> list[Lesson]:
    """The entries, oldest first: those of all projects go by date, the project's own by their place in the file.

    A date and a place cannot be compared: both stores are spread evenly from their oldest to their newest.
    """
    local = sorted((each for each in entries if each.source == "local"), key=_by_place)
    shared = sorted((each for each in entries if each.source == "global"), key=_by_date)
    spread = [
        (place / max(len(store) - 1, 1), own, entry)
        for own, store in enumerate((shared, local))
        for place, entry in enumerate(store)
    ]
    return [entry for _, _, entry in sorted(spread, key=lambda each: each[:2])]


def _by_place(entry: Lesson) -> tuple[int, int, str]:
    return entry.position, CATEGORIES.index(entry.category), entry.content_hash


def _by_date(entry: Lesson) -> tuple[str, int, int, str]:
    return entry.last_observed, *_by_place(entry)
