"""E8: the same records: stories, decisions, requirements."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.asked import Asked, Candidates
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(asked: Asked, candidates: Candidates) -> Array:
    """The share of the records named in the query that the text names, or is."""
    wanted = asked.features.references
    if asked.features.own:
        wanted = np.append(wanted, np.array([asked.features.own], dtype=wanted.dtype))
    named = candidates.references.held(wanted, np.ones(len(wanted)))
    own = np.isin(candidates.own, wanted)
    return np.minimum(1.0, named / len(wanted) + own)


def speaks(asked: Asked) -> bool:
    """Whether it names records."""
    return len(asked.features.references) > 0 or asked.features.own != 0


SPACE = Space(name="E8 graph", category="relational", agrees=0.50, diverges=0.05, strengths=strengths, speaks=speaks)
