"""Boosts the scores of chunks by recency and by the entities they mention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp

from langgraph_scrum_master.dialogue.knowledge.documents import SearchResult
from langgraph_scrum_master.dialogue.model import ResolvedEntity
from langgraph_scrum_master.dialogue.settings import RAGConfig
from langgraph_scrum_master.model import instant
from langgraph_scrum_master.text.spelling import spelled

_DAY = 86_400
"""Seconds."""

_DECAY_DAYS = 365
"""Days after which the recency boost has fallen to 1/e."""

RECENCY_BOOST, ENTITY_BOOST = 0.2, 0.3
"""Maximum boosts, multiplied by their weights."""


def apply_boosts(
    results: Sequence[SearchResult], entities: Sequence[ResolvedEntity], now: float, config: RAGConfig
) -> list[SearchResult]:
    """Add both boosts to the scores, which may then exceed 1; best first."""
    names = list({spelled(each.canonical_name): _names(each) for each in entities}.values())
    boosted = [
        replace(
            each,
            score=each.score
            + config.recency_weight * _recency(each.date, now) * RECENCY_BOOST
            + config.entity_weight * _entity_share(each, names) * ENTITY_BOOST,
        )
        for each in results
    ]
    return sorted(boosted, key=lambda each: -each.score)


def _recency(date: str, now: float) -> float:
    """1 for today, 0.37 after a year, 0 without a date."""
    days = max(0, (now - instant(date)) // _DAY) if date else float("inf")
    return exp(-days / _DECAY_DAYS)


def _entity_share(result: SearchResult, names: Sequence[set[str]]) -> float:
    """The share of the entities that the chunk or its title mentions."""
    text = spelled(f"{result.title}\n{result.content}")
    return sum(any(name in text for name in each) for each in names) / len(names) if names else 0.0


def _names(entity: ResolvedEntity) -> set[str]:
    return {spelled(name) for name in (entity.canonical_name, entity.mention) if name.strip()}
