"""Scores of texts for a query: weighted strengths, plus the support of neighbours and citations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np

from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.corpus import TextCorpus
from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import Array, features_of, vocabulary
from langgraph_scrum_master.rank.match import Match
from langgraph_scrum_master.rank.query import (
    Candidates,
    RankQuery,
    document_vectors,
    meaning_vectors,
    packed_vector,
    unit_rows,
)
from langgraph_scrum_master.rank.spaces import SPACES, TIMELESS, WORDS, Space
from langgraph_scrum_master.rank.spaces.graph import other_records
from langgraph_scrum_master.rank.table import Candidate
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, SCORE_AT_BAR, RankTuning

_AT_BAR = log(SCORE_AT_BAR / 0.3)
_CHARACTERS_PER_TOKEN = 4

CONTEXT = ((1, 0.5), (2, 0.25))
"""The share of a neighbour's vector in a context vector, by distance in the session. By hand. Stored vectors depend on
it.
"""


class Agreement(NamedTuple):
    """The agreement of texts with a query over all spaces."""

    total: Array
    """The agreement of each text."""
    maximum: float
    """The highest agreement possible for this query."""
    strengths: dict[Space, Array]
    """The strengths in all spaces that apply to the query, including those without weight."""
    tuning: RankTuning = DEFAULT_TUNING

    @property
    def weighted(self) -> dict[Space, Array]:
        """The strengths of the spaces that have a weight."""
        return {space: each for space, each in self.strengths.items() if space.weight_in(self.tuning)}

    def matches(self, total: Array, order: Sequence[int]) -> list[Match]:
        """The matches of the texts in this order, scored by their final agreement."""
        own = np.stack(list(self.weighted.values()), axis=1)[order].astype("float64")
        agreements = (own @ [space.weight_in(self.tuning) for space in self.weighted]).round(3).tolist()
        shares = (total[order] / self.maximum).tolist()
        return [
            Match(calibrated(share, self.tuning), strengths, agreement)
            for share, strengths, agreement in zip(shares, self.rounded_strengths(order), agreements, strict=True)
        ]

    def rounded_strengths(self, order: Sequence[int]) -> list[dict[str, float]]:
        """The strengths of each text by the code of the space, rounded, in this order."""
        codes = [space.code for space in self.strengths]
        columns = [
            strength[order].astype("float64").round(space.digits).tolist() for space, strength in self.strengths.items()
        ]
        return [dict(zip(codes, row, strict=True)) for row in zip(*columns, strict=True)]


def relevance(
    query: str,
    texts: Sequence[str],
    embedder: Embedder,
    sessions: Sequence[str] | None = None,
    linked: Sequence[Sequence[str]] | None = None,
    keys: Sequence[str] | None = None,
    tuning: RankTuning = DEFAULT_TUNING,
) -> list[Match]:
    """The match of each text, with these texts as the whole corpus. Texts of a session must be in order.

    `linked` holds further references of each text, `keys` the key of each. The temporal spaces are left out, because
    the times of the texts are not known.
    """
    if not texts or not query.strip():
        return [Match(0.0)] * len(texts)
    features = features_of(texts, linked, keys)
    corpus = TextCorpus(zip(features, map(vocabulary, texts), strict=True))
    vectors = document_vectors(texts, corpus, embedder)
    positions = [(session, i) for i, session in enumerate(sessions or [""] * len(texts))]
    meanings = vectors if embedder is static_model() else meaning_vectors(texts, corpus, embedder)
    contexts = context_vectors(meanings, positions)
    rows = [
        Candidate(
            features=each.pack(),
            vector=packed_vector(vector),
            context=packed_vector(context),
            session=session,
            position=position,
        )
        for each, vector, context, (session, position) in zip(features, vectors, contexts, positions, strict=True)
    ]
    candidates = Candidates(rows, texts=lambda: texts)
    agreed = agreement(RankQuery(query, corpus, embedder, tuning=tuning), candidates, TIMELESS)
    return agreed.matches(with_support(agreed.total, agreed.maximum, candidates, tuning), range(len(texts)))


def agreement(
    query: RankQuery, candidates: Candidates, spaces: Iterable[Space] = SPACES, sizes: Sequence[int] | None = None
) -> Agreement:
    """The strengths of all spaces, their weighted sum, and the maximum of that for this query.

    At most 8.5 by default. A space that does not apply to the query, such as E11 without a name in it, does not count.
    `sizes` gives the number of candidates per shelf: the lead of the nearest vector is measured within its shelf.
    """
    tuning = query.tuning
    strengths = {space: space.strengths(query, candidates) for space in spaces if space.speaks(query)}
    weights = {space: weight for space in strengths if (weight := space.weight_in(tuning))}
    sizes = sizes or [len(candidates)]
    overlap = np.repeat([_word_overlap(part, tuning) for part in _parts(strengths.get(WORDS), sizes)], sizes)
    total = np.sum(
        [
            weight * np.maximum(overlap, space.weight_without_words) * strengths[space]
            for space, weight in weights.items()
        ],
        axis=0,
    )
    if query.centre is not None and SPACES[0] in strengths:
        total = total + tuning.stands_out * np.concatenate(
            [_lead(part) for part in _parts(strengths[SPACES[0]], sizes)]
        )
    if query.families:
        total = np.where(other_records(query, candidates), tuning.other_record * total, total)
    return Agreement(total, sum(weights.values()), strengths, tuning)


def _parts(strengths: Array | None, sizes: Sequence[int]) -> list[Array]:
    if strengths is None:
        return [np.zeros(0)] * len(sizes)
    return np.split(strengths, np.cumsum(sizes)[:-1]) if len(sizes) > 1 else [strengths]


def _lead(strengths: Array) -> Array:
    """The lead of the strongest over the next one; 0 for all others."""
    second = np.partition(strengths, -2)[-2] if len(strengths) > 1 else 0.0
    return np.maximum(0, strengths - second)


def _word_overlap(strengths: Array, tuning: RankTuning) -> float:
    """From 0, no candidate has the query's words or related words, to 1, at least one does."""
    if not len(strengths) or static_model() is None:
        return 1.0
    return min(1.0, max(0.0, (float(strengths.max()) - tuning.no_words) / (tuning.has_words - tuning.no_words)))


def with_support(own: Array, maximum: float, candidates: Candidates, tuning: RankTuning = DEFAULT_TUNING) -> Array:
    """The agreement, plus support from session neighbours and from the best texts that cite the text."""
    total = _with_neighbours(own, maximum, candidates, tuning)
    return total + _citations(total, candidates, tuning)


def apply_fair_share(total: Array, candidates: Candidates, tuning: RankTuning = DEFAULT_TUNING) -> Array:
    """The agreement, reduced for texts of a session whose better texts have used up its share of tokens."""
    adjusted = total.copy()
    tokens, sessions = candidates.sizes / _CHARACTERS_PER_TOKEN, candidates.sessions
    crowded = np.bincount(sessions + 1, weights=tokens) > tuning.fair_share
    crowded[0] = False
    used: dict[int, float] = {}
    order = np.argsort(-total, kind="stable")
    for i in order[crowded[sessions[order] + 1]].tolist():
        session, size = int(sessions[i]), float(tokens[i])
        if used.get(session) and used[session] + size > tuning.fair_share:
            adjusted[i] *= tuning.crowded
        else:
            used[session] = used.get(session, 0.0) + size
    return adjusted


def calibrated(share: float, tuning: RankTuning = DEFAULT_TUNING) -> float:
    """The score for an agreement, given as a share of its maximum."""
    return 1 / (1 + exp(-_AT_BAR - tuning.steepness * (share - tuning.relevance_bar))) if share > 0 else 0.0


def raised(score: float, by: float, tuning: RankTuning = DEFAULT_TUNING) -> float:
    """The score after the agreement grows by this share of its maximum; a score of 0 stays 0."""
    return 1 / (1 + (1 / score - 1) * exp(-tuning.steepness * by)) if score > 0 else 0.0


def context_vectors(vectors: Array, positions: Sequence[tuple[str, int]]) -> Array:
    """Each vector with those of its session neighbours added, as unit vectors.

    `positions` holds the session and the position in it of each.
    """
    index = {at: i for i, at in enumerate(positions) if at[0]}
    added = vectors.astype("float32").copy()
    for i, (session, position) in enumerate(positions):
        for off, share in CONTEXT if session else ():
            for neighbour in (index.get((session, position - off)), index.get((session, position + off))):
                if neighbour is not None:
                    added[i] += share * vectors[neighbour]
    return unit_rows(added)


def _with_neighbours(own: Array, maximum: float, candidates: Candidates, tuning: RankTuning) -> Array:
    sessions = candidates.sessions
    if (sessions < 0).all():
        return own
    position = sessions * _SESSION_STRIDE + candidates.positions
    order = np.argsort(position, kind="stable")
    ordered = position[order]
    receives = np.minimum(1.0, tuning.short_text / np.maximum(1, candidates.sizes)) * (sessions >= 0)
    total, support = own.copy(), own * np.minimum(1, own / maximum / tuning.strong_neighbour) ** 2
    for off, share in tuning.neighbours:
        for wanted in (position - off, position + off):
            at = order[np.minimum(np.searchsorted(ordered, wanted), len(order) - 1)]
            total += receives * share * np.where(position[at] == wanted, support[at], 0.0)
    return total


_SESSION_STRIDE = 1 << 40
"""Larger than any position, so that neighbours never cross sessions."""


def _citations(total: Array, candidates: Candidates, tuning: RankTuning) -> Array:
    added = np.zeros_like(total)
    citing, cited = candidates.references.owner, candidates.references.flat.astype("int64")
    if not len(cited):
        return added
    best = np.zeros(len(total), dtype=bool)
    best[np.argsort(-total, kind="stable")[: tuning.citing]] = True
    several = np.bincount(citing, minlength=len(total))
    followed = best[citing]
    by_name: dict[int, float] = {}
    for i, name in zip(citing[followed].tolist(), cited[followed].tolist(), strict=True):
        by_name[name] = by_name.get(name, 0.0) + tuning.cited * float(total[i]) / float(several[i]) ** 0.5
    for names in (candidates.own, np.where(candidates.aliases == candidates.own, 0, candidates.aliases)):
        for i in np.flatnonzero(np.isin(names, list(by_name))).tolist() if by_name else ():
            added[i] += by_name[int(names[i])]
    return added
