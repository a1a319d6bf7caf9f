"""E4: where in its session."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """1 for the last of a session's candidates, less for each that came after."""
    last: dict[str, int] = {}
    for candidate in candidates.found:
        last[candidate.session] = max(candidate.position, last.get(candidate.session, 0))
    behind = [last[candidate.session] - candidate.position for candidate in candidates.found]
    return 1 / (1 + np.array(behind, dtype="float32"))


SPACE = Space(name="E4 positional", category="temporal", agrees=0.70, diverges=0.30, strengths=strengths)
