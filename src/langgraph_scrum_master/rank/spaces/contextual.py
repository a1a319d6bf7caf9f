"""E10: the same meaning, in the light of its neighbours."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.asked import Asked, Candidates
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(asked: Asked, candidates: Candidates) -> Array:
    """The cosine with the text's vector after its neighbours' were added to it."""
    return np.clip(candidates.contexts @ asked.vector, 0, 1)


SPACE = Space(name="E10 contextual", category="semantic", agrees=0.48, diverges=0.17, strengths=strengths)
