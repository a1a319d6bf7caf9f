"""A similarity space: one way in which a text can be similar to a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, Category, RankTuning

Strengths: TypeAlias = Callable[[RankQuery, Candidates], Array]
"""The similarity of each candidate with the query, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """One way in which a text can be similar to a query, with its thresholds."""

    name: str
    category: Category
    agrees: float
    """The strength from which the space counts the text as relevant."""
    diverges: float
    """The strength below which the space counts the text as unrelated."""
    strengths: Strengths
    speaks: Callable[[RankQuery], bool] = lambda _query: True
    """Whether the space applies to the query."""
    weight_without_words: float = 1.0
    """The share of its weight if no candidate has the query's words: the few shared ones would be shared by chance."""
    own_weight: float | None = None
    """Its weight, if it differs from that of its category."""
    digits: int = 3
    """Decimal places of its strength in results."""

    @property
    def code(self) -> str:
        """Its short name, such as E1."""
        return self.name.split()[0]

    @property
    def weight(self) -> float:
        """Its weight with the default tuning."""
        return self.weight_in(DEFAULT_TUNING)

    def weight_in(self, tuning: RankTuning) -> float:
        """Its weight in the agreement with this tuning."""
        return tuning.weight(self.category) if self.own_weight is None else self.own_weight
