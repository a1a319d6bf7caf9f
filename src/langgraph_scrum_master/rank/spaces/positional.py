"""E4: position from the end of the session."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """1 / (1 + turns after it), up to the last candidate of its session; 0 for texts without a session."""
    sessions, positions = candidates.sessions, candidates.positions
    # The extra last element belongs to texts without a session, whose number is -1.
    last = np.zeros(len(candidates) + 1, dtype="int64")
    np.maximum.at(last, sessions, positions)
    return np.where(sessions >= 0, 1 / (1 + (last[sessions] - positions).astype("float32")), np.float32(0))


SPACE = Space(name="E4 positional", category="temporal", agrees=0.70, diverges=0.30, strengths=strengths)
