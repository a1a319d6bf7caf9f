"""E10: the same meaning, in the light of its neighbours."""

from __future__ import annotations

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.semantic import likeness
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """The cosine, in the static model where there is one, with the text's vector after its neighbours' were added."""
    return likeness(cosines(candidates.contexts, asked.meaning), asked.tuning)


def speaks(asked: RankQuery) -> bool:
    """Whether it could be embedded, which the static model never fails to do."""
    return len(asked.meaning) > 0


SPACE = Space(
    name="E10 contextual",
    category="semantic",
    agrees=0.38,
    diverges=0.13,
    strengths=strengths,
    speaks=speaks,
    unheard=0.0,
)
