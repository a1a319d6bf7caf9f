"""Thirteen similarity spaces, one file each, and those of the user's."""

from __future__ import annotations

from dataclasses import replace

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.recipe import Recipe
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
from langgraph_scrum_master.rank.spaces.custom import custom_space
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

TIMELESS = tuple(space for space in SPACES if space.category != "temporal")
"""Those that need neither times nor positions."""


def spaces_for(recipe: Recipe) -> tuple[Space, ...]:
    """The thirteen spaces, some by a model of the user's, then the user's own."""
    if not recipe.models and not recipe.spaces:
        return SPACES
    built_in = (_modelled(space) if space.code in recipe.models else space for space in SPACES)
    return (*built_in, *map(custom_space, recipe.spaces))


def _modelled(space: Space) -> Space:
    def strengths(asked: RankQuery, candidates: Candidates) -> Array:
        return semantic.likeness(cosines(candidates.by_model[space.code], asked.by_model[space.code]), asked.tuning)

    return replace(space, strengths=strengths, speaks=lambda _asked: True, unheard=1.0)


WORDS = late_interaction.SPACE
"""The space that shows whether any candidate has the words of a query, or ones near them."""

__all__ = ["SPACES", "TIMELESS", "WORDS", "Space", "spaces_for"]
