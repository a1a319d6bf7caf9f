"""E3: the same hour of the day, the same day of the week."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.asked import Asked, Candidates
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.spaces.space import Space

DAY, WEEK = 86_400.0, 604_800.0


def strengths(asked: Asked, candidates: Candidates) -> Array:
    """The mean of how near the hours and how near the weekdays are; 0 where no time is known."""
    created = np.array([candidate.created for candidate in candidates.found])
    near = [(1 + np.cos(2 * np.pi * (asked.now - created) / period)) / 2 for period in (DAY, WEEK)]
    return np.where(created > 0, (near[0] + near[1]) / 2, 0.0)


SPACE = Space(name="E3 periodic", category="temporal", agrees=0.70, diverges=0.30, strengths=strengths)
