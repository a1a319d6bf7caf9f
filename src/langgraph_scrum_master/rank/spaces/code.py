"""E7: shared identifiers."""

from __future__ import annotations

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """The share of the query's identifiers, split into their parts, that the text has, by idf."""
    wanted = query.features.identifiers
    weights = query.corpus.term_idf(wanted)
    return candidates.ragged("identifiers").sum_weights(wanted, weights) / float(weights.sum())


def speaks(query: RankQuery) -> bool:
    """Whether the query has identifiers."""
    return len(query.features.identifiers) > 0


SPACE = Space(name="E7 code", category="semantic", agrees=0.50, diverges=0.05, strengths=strengths, speaks=speaks)
