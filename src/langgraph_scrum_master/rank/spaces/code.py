"""E7: the same identifiers."""

from __future__ import annotations

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """The share of the query's identifiers, split into their parts, that the text has."""
    wanted = asked.features.identifiers
    weights = asked.corpus.term_rarity(wanted)
    return candidates.ragged("identifiers").held(wanted, weights) / float(weights.sum())


def speaks(asked: RankQuery) -> bool:
    """Whether it has identifiers."""
    return len(asked.features.identifiers) > 0


SPACE = Space(name="E7 code", category="semantic", agrees=0.50, diverges=0.05, strengths=strengths, speaks=speaks)
