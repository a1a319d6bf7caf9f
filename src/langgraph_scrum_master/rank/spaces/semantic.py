"""E1: the same meaning."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.asked import Asked, Candidates
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.spaces.space import Space

UNRELATED, SAME = 0.1, 0.7
"""Cosines of texts that have nothing to do with each other, and of those that say the same."""


def strengths(asked: Asked, candidates: Candidates) -> Array:
    """The cosine of the vectors, with rare tokens weighing more."""
    return likeness(candidates.vectors @ asked.vector)


def likeness(cosines: Array) -> Array:
    """The cosines as strengths."""
    return np.clip((cosines - UNRELATED) / (SAME - UNRELATED), 0, 1)


SPACE = Space(name="E1 semantic", category="semantic", agrees=0.31, diverges=0.01, strengths=strengths)
