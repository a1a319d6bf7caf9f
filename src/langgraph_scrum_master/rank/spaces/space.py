"""What a space is: one way in which a text can be like a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery

Category: TypeAlias = Literal["semantic", "relational", "structural", "temporal"]
"""What kind of likeness it is, which decides how much it counts."""

_WEIGHTS: dict[Category, float] = {"semantic": 1.0, "relational": 0.5, "structural": 0.5, "temporal": 0.0}

Strengths: TypeAlias = Callable[[RankQuery, Candidates], Array]
"""From 0 to 1 for each candidate: how like the query it is in this space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """One way in which a text can be like a query, with how strong it must be to say something."""

    name: str
    category: Category
    agrees: float
    """From here on the space says that the text serves the query."""
    diverges: float
    """Below this it says that the text is about something else."""
    strengths: Strengths
    speaks: Callable[[RankQuery], bool] = lambda _asked: True
    """Whether it has anything to say about the query."""
    unheard: float = 1.0
    """What is left of it where no text has the query's words: a few shared by chance would lead astray then."""

    @property
    def code(self) -> str:
        """What it is called for short, such as E1."""
        return self.name.split()[0]

    @property
    def weight(self) -> float:
        """How much it counts."""
        return _WEIGHTS[self.category]
