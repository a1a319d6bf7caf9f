"""E8: shared references to records: stories, decisions, requirements."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space

RECORDS = frozenset(
    ("story", "epic", "issue", "task", "ticket", "requirement", "decision", "feature", "pr", "adr", "rfc", "fr", "nfr")
)
"""Kinds of record that every project has."""


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """The share of the records named in the query that the text cites, or is."""
    wanted = _wanted(query)
    named = candidates.references.sum_weights(wanted, np.ones(len(wanted)))
    own = np.isin(candidates.own, wanted) | np.isin(candidates.aliases, wanted)
    return np.minimum(1.0, named / len(wanted) + own)


def other_records(query: RankQuery, candidates: Candidates) -> Array:
    """Which texts are a different record of the kind that the query is about, and do not cite the one it names."""
    kinds = [
        kind
        for kind, name in query.families.items()
        if name in RECORDS or _is_kind(candidates, kind, query.tuning.record_family)
    ]
    of_kind = np.isin(candidates.families, kinds)
    return of_kind & (strengths(query, candidates) == 0) if of_kind.any() else of_kind


def _is_kind(candidates: Candidates, kind: int, least: int) -> bool:
    # SHA-1 and SHA-256 are not records of a project; PAY-1, PAY-2 and PAY-3 are.
    return len(np.unique(candidates.own[candidates.families == kind])) >= least


def _wanted(query: RankQuery) -> Array:
    own = [query.features.own] if query.features.own else []
    return np.append(query.features.references, np.array(own, dtype=query.features.references.dtype))


def speaks(query: RankQuery) -> bool:
    """Whether the query names records."""
    return len(query.features.references) > 0 or query.features.own != 0


SPACE = Space(name="E8 graph", category="relational", agrees=0.50, diverges=0.05, strengths=strengths, speaks=speaks)
