"""The thirteen similarity spaces, one file each, and user-defined spaces."""

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
"""The spaces that need neither times nor positions."""


def spaces_for(recipe: Recipe) -> tuple[Space, ...]:
    """The thirteen spaces, some replaced by models, followed by user-defined spaces."""
    if not recipe.models and not recipe.spaces:
        return SPACES
    built_in = (_with_model(space) if space.code in recipe.models else space for space in SPACES)
    return (*built_in, *map(custom_space, recipe.spaces))


def _with_model(space: Space) -> Space:
    def strengths(query: RankQuery, candidates: Candidates) -> Array:
        return semantic.likeness(cosines(candidates.by_model[space.code], query.by_model[space.code]), query.tuning)

    return replace(space, strengths=strengths, speaks=lambda _query: True, weight_without_words=1.0)


WORDS = late_interaction.SPACE
"""The space that shows whether any candidate has the words of a query, or related words."""

__all__ = ["SPACES", "TIMELESS", "WORDS", "Space", "spaces_for"]
