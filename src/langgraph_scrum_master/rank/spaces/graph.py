"""E8: the same records: stories, decisions, requirements."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.asked import Asked, Candidates
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(asked: Asked, candidates: Candidates) -> Array:
    """The share of the records named in the query that the text names, or is."""
    wanted = _wanted(asked)
    named = candidates.references.held(wanted, np.ones(len(wanted)))
    own = np.isin(candidates.own, wanted)
    return np.minimum(1.0, named / len(wanted) + own)


def others(asked: Asked, candidates: Candidates) -> Array:
    """Which texts are a record of a kind that the query names, but another one, and do not name it either."""
    of_kind = np.isin(candidates.families, asked.families)
    return of_kind & (strengths(asked, candidates) == 0) if of_kind.any() else of_kind


def _wanted(asked: Asked) -> Array:
    own = [asked.features.own] if asked.features.own else []
    return np.append(asked.features.references, np.array(own, dtype=asked.features.references.dtype))


def speaks(asked: Asked) -> bool:
    """Whether it names records."""
    return len(asked.features.references) > 0 or asked.features.own != 0


SPACE = Space(name="E8 graph", category="relational", agrees=0.50, diverges=0.05, strengths=strengths, speaks=speaks)
