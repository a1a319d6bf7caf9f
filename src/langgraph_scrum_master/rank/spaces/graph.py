"""E8: the same records: stories, decisions, requirements."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space

RECORDS = frozenset(
    ("story", "epic", "issue", "task", "ticket", "requirement", "decision", "feature", "pr", "adr", "rfc", "fr", "nfr")
)
"""Kinds of record that every project has."""


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """The share of the records named in the query that the text names, or is."""
    wanted = _wanted(asked)
    named = candidates.references.held(wanted, np.ones(len(wanted)))
    own = np.isin(candidates.own, wanted) | np.isin(candidates.aliases, wanted)
    return np.minimum(1.0, named / len(wanted) + own)


def others(asked: RankQuery, candidates: Candidates) -> Array:
    """Which texts are a record of the kind that the query is about, but another one, and do not name it either."""
    kinds = [
        kind
        for kind, name in asked.families.items()
        if name in RECORDS or _several(candidates, kind, asked.tuning.record_family)
    ]
    of_kind = np.isin(candidates.families, kinds)
    return of_kind & (strengths(asked, candidates) == 0) if of_kind.any() else of_kind


def _several(candidates: Candidates, kind: int, least: int) -> bool:
    # SHA-1 and SHA-256 are no records of a project, PAY-1, PAY-2 and PAY-3 are.
    return len(np.unique(candidates.own[candidates.families == kind])) >= least


def _wanted(asked: RankQuery) -> Array:
    own = [asked.features.own] if asked.features.own else []
    return np.append(asked.features.references, np.array(own, dtype=asked.features.references.dtype))


def speaks(asked: RankQuery) -> bool:
    """Whether it names records."""
    return len(asked.features.references) > 0 or asked.features.own != 0


SPACE = Space(name="E8 graph", category="relational", agrees=0.50, diverges=0.05, strengths=strengths, speaks=speaks)
