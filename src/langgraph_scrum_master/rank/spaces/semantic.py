"""E1: the same meaning."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.asked import Asked, Candidates
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(asked: Asked, candidates: Candidates) -> Array:
    """The cosine of the vectors, with rare tokens weighing more."""
    return np.clip(candidates.vectors @ asked.vector, 0, 1)


SPACE = Space(name="E1 semantic", category="semantic", agrees=0.46, diverges=0.13, strengths=strengths)
