"""A similarity space: one way in which a text can be similar to a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, Category, RankTuning

Strengths: TypeAlias = Callable[[RankQuery, Candidates], Array]
"""From 0 to 1 for each candidate: how similar to the query it is in this space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """One way in which a text can be similar to a query, with its thresholds."""

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
    """The share of its weight that is left where no candidate has the query's words: a few shared by chance would
    mislead."""
    own_weight: float | None = None
    """Its weight if that is not its category's."""
    digits: int = 3
    """Decimals of its strength in results."""

    @property
    def code(self) -> str:
        """Its short name, such as E1."""
        return self.name.split()[0]

    @property
    def weight(self) -> float:
        """Its weight in the agreement by default."""
        return self.weight_in(DEFAULT_TUNING)

    def weight_in(self, tuning: RankTuning) -> float:
        """Its weight in the agreement."""
        return tuning.weight(self.category) if self.own_weight is None else self.own_weight
