"""Thirteen ways in which a text can be like a query, one file each."""

from __future__ import annotations

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

WORDS = late_interaction.SPACE
"""The space that tells whether any text has the words of a query, or ones near them."""

__all__ = ["SPACES", "WORDS", "Space"]
