"""What counts beside a piece's own words: how new it is, and whether it names who is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp

from langgraph_scrum_master.config import RAGConfig
from langgraph_scrum_master.dialogue.knowledge.documents import SearchResult
from langgraph_scrum_master.dialogue.model import ResolvedEntity
from langgraph_scrum_master.model import instant
from langgraph_scrum_master.text.spelling import spelled

_DAY, YEAR = 86_400, 365
RECENCY, OVERLAP = 0.2, 0.3
"""What each adds at most, times its weight."""


def boosted(
    results: Sequence[SearchResult], entities: Sequence[ResolvedEntity], now: float, config: RAGConfig
) -> list[SearchResult]:
    """The pieces with both added to their scores, which may then be above 1, best first."""
    names = list({spelled(each.canonical_name): _names(each) for each in entities}.values())
    found = [
        replace(
            each,
            score=each.score
            + config.recency_weight * _recency(each.date, now) * RECENCY
            + config.entity_weight * _overlap(each, names) * OVERLAP,
        )
        for each in results
    ]
    return sorted(found, key=lambda each: -each.score)


def _recency(date: str, now: float) -> float:
    """1 for today, 0.37 after a year; nothing without a date."""
    days = max(0, (now - instant(date)) // _DAY) if date else float("inf")
    return exp(-days / YEAR)


def _overlap(result: SearchResult, names: Sequence[set[str]]) -> float:
    """The share of the entities that the piece or its title names."""
    said = spelled(f"{result.title}\n{result.content}")
    return sum(any(name in said for name in each) for each in names) / len(names) if names else 0.0


def _names(entity: ResolvedEntity) -> set[str]:
    return {spelled(name) for name in (entity.canonical_name, entity.mention) if name.strip()}
