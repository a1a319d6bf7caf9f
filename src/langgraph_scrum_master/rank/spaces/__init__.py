"""Thirteen ways in which a text can be like a query, one file each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces import (
    causal,
    code,
    contextual,
    entity,
    graph,
    hyperdimensional,
    keywords,
    late_interaction,
    lexical,
    periodic,
    positional,
    recent,
    semantic,
)
from langgraph_scrum_master.rank.spaces.space import Space

SPACES: tuple[Space, ...] = (
    semantic.SPACE,
    recent.SPACE,
    periodic.SPACE,
    positional.SPACE,
    causal.SPACE,
    lexical.SPACE,
    code.SPACE,
    graph.SPACE,
    hyperdimensional.SPACE,
    contextual.SPACE,
    entity.SPACE,
    late_interaction.SPACE,
    keywords.SPACE,
)
"""E1 to E13, in this order."""


def with_models(codes: Collection[str]) -> tuple[Space, ...]:
    """The spaces, with a model of the user's in the place of these."""
    return tuple(_modelled(space) if space.code in codes else space for space in SPACES)


def _modelled(space: Space) -> Space:
    def strengths(asked: RankQuery, candidates: Candidates) -> Array:
        return semantic.likeness(cosines(candidates.by_model[space.code], asked.by_model[space.code]))

    return replace(space, strengths=strengths, speaks=lambda _asked: True, unheard=1.0)


WORDS = late_interaction.SPACE
"""The space that tells whether any text has the words of a query, or ones near them."""

__all__ = ["SPACES", "WORDS", "Space", "with_models"]
