"""E10: similar meaning in context, with the vectors of session neighbours added."""

from __future__ import annotations

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.semantic import likeness
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """The cosine of the query with the text's context vector, in the static model if there is one."""
    return likeness(cosines(candidates.contexts, query.meaning), query.tuning)


def speaks(query: RankQuery) -> bool:
    """Whether the query has a vector; with the static model it always has."""
    return len(query.meaning) > 0


SPACE = Space(
    name="E10 contextual",
    category="semantic",
    agrees=0.38,
    diverges=0.13,
    strengths=strengths,
    speaks=speaks,
    weight_without_words=0.0,
)
