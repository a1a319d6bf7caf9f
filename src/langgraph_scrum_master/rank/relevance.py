"""How well texts serve a query: the weighted strengths, with the support of neighbours and citations, as a score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np

from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.corpus import Texts
from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import Array, features_of, vocabulary
from langgraph_scrum_master.rank.match import Match
from langgraph_scrum_master.rank.query import (
    Candidate,
    Candidates,
    RankQuery,
    document_vectors,
    meaning_vectors,
    packed_vector,
    unit_rows,
)
from langgraph_scrum_master.rank.spaces import SPACES, TIMELESS, WORDS, Space
from langgraph_scrum_master.rank.spaces.graph import others
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, SCORE_AT_BAR, RankTuning

_AT_BAR = log(SCORE_AT_BAR / 0.3)
_CHARACTERS_PER_TOKEN = 4

CONTEXT = ((1, 0.5), (2, 0.25))
"""How much of a neighbour's vector is added to a text's, by distance in the session. By hand. Stored vectors depend on
it.
"""


class Agreement(NamedTuple):
    """How texts agree with a query in all spaces."""

    total: Array
    """Of each text."""
    whole: float
    """What it could be for this query."""
    strengths: dict[Space, Array]
    """Of all spaces that had something to say, also of those without weight."""
    tuning: RankTuning = DEFAULT_TUNING

    @property
    def weighted(self) -> dict[Space, Array]:
        """The strengths of the spaces that have a weight."""
        return {space: each for space, each in self.strengths.items() if space.weight_in(self.tuning)}

    def matches(self, reached: Array, order: Sequence[int]) -> list[Match]:
        """How well texts serve, in this order, given the agreement that each has reached in the end."""
        own = np.stack(list(self.weighted.values()), axis=1)[order].astype("float64")
        together = (own @ [space.weight_in(self.tuning) for space in self.weighted]).round(3).tolist()
        shares = (reached[order] / self.whole).tolist()
        return [
            Match(calibrated(share, self.tuning), strengths, agreement)
            for share, strengths, agreement in zip(shares, self.reported(order), together, strict=True)
        ]

    def reported(self, order: Sequence[int]) -> list[dict[str, float]]:
        """The strengths of each text by the code of the space, in this order, rounded."""
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
    """How well each of these texts serves, which are all there are; texts of a session stand in order.

    `linked` names what else each refers to, `keys` what each is kept under. The temporal spaces are left out: the times
    of the texts are not known here.
    """
    if not texts or not query.strip():
        return [Match(0.0)] * len(texts)
    features = features_of(texts, linked, keys)
    corpus = Texts(zip(features, map(vocabulary, texts), strict=True))
    vectors = document_vectors(texts, corpus, embedder)
    places = [(session, i) for i, session in enumerate(sessions or [""] * len(texts))]
    meanings = vectors if embedder is static_model() else meaning_vectors(texts, corpus, embedder)
    contexts = in_context(meanings, places)
    found = [
        Candidate(
            features=each.pack(),
            vector=packed_vector(vector),
            context=packed_vector(context),
            session=session,
            position=position,
        )
        for each, vector, context, (session, position) in zip(features, vectors, contexts, places, strict=True)
    ]
    candidates = Candidates(found, texts=lambda: texts)
    agreed = agreement(RankQuery(query, corpus, embedder, tuning=tuning), candidates, TIMELESS)
    return agreed.matches(supported(agreed.total, agreed.whole, candidates, tuning), range(len(texts)))


def agreement(
    asked: RankQuery, candidates: Candidates, spaces: Iterable[Space] = SPACES, sizes: Sequence[int] | None = None
) -> Agreement:
    """The strengths of all spaces, their weighted sum, and the maximum of that for this query.

    At most 8.5 by default. A space that the query says nothing for, such as E11 where it names nobody, does not count.
    `sizes` gives how many texts are from each of several places: what stands out does so among those of its place.
    """
    tuning = asked.tuning
    strengths = {space: space.strengths(asked, candidates) for space in spaces if space.speaks(asked)}
    weights = {space: weight for space in strengths if (weight := space.weight_in(tuning))}
    sizes = sizes or [len(candidates)]
    heard = np.repeat([_heard(part, tuning) for part in _parts(strengths.get(WORDS), sizes)], sizes)
    total = np.sum(
        [weight * np.maximum(heard, space.unheard) * strengths[space] for space, weight in weights.items()], axis=0
    )
    if asked.centre is not None and SPACES[0] in strengths:
        total = total + tuning.stands_out * np.concatenate(
            [_ahead(part) for part in _parts(strengths[SPACES[0]], sizes)]
        )
    if asked.families:
        total = np.where(others(asked, candidates), tuning.other_record * total, total)
    return Agreement(total, sum(weights.values()), strengths, tuning)


def _parts(strengths: Array | None, sizes: Sequence[int]) -> list[Array]:
    if strengths is None:
        return [np.zeros(0)] * len(sizes)
    return np.split(strengths, np.cumsum(sizes)[:-1]) if len(sizes) > 1 else [strengths]


def _ahead(strengths: Array) -> Array:
    """How far the strongest is ahead of the next; nothing for the others."""
    second = np.partition(strengths, -2)[-2] if len(strengths) > 1 else 0.0
    return np.maximum(0, strengths - second)


def _heard(strengths: Array, tuning: RankTuning) -> float:
    """From 0 to 1: whether the text that comes nearest to the query's words has any of them to speak of."""
    if not len(strengths) or static_model() is None:
        return 1.0
    return min(1.0, max(0.0, (float(strengths.max()) - tuning.no_words) / (tuning.has_words - tuning.no_words)))


def supported(own: Array, whole: float, candidates: Candidates, tuning: RankTuning = DEFAULT_TUNING) -> Array:
    """The agreement with that of neighbours in the session, and of the best texts that refer to it."""
    total = _with_neighbours(own, whole, candidates, tuning)
    return total + _citations(total, candidates, tuning)


def fair(total: Array, candidates: Candidates, tuning: RankTuning = DEFAULT_TUNING) -> Array:
    """The same, with less for texts of a session that has had its share among better ones."""
    shared = total.copy()
    tokens, sessions = candidates.sizes / _CHARACTERS_PER_TOKEN, candidates.sessions
    crowded = np.bincount(sessions + 1, weights=tokens) > tuning.fair_share
    crowded[0] = False
    used: dict[int, float] = {}
    order = np.argsort(-total, kind="stable")
    for i in order[crowded[sessions[order] + 1]].tolist():
        session, size = int(sessions[i]), float(tokens[i])
        if used.get(session) and used[session] + size > tuning.fair_share:
            shared[i] *= tuning.crowded
        else:
            used[session] = used.get(session, 0.0) + size
    return shared


def calibrated(share: float, tuning: RankTuning = DEFAULT_TUNING) -> float:
    """The agreement, as a share of what it could be, as a score from 0 to 1."""
    return 1 / (1 + exp(-_AT_BAR - tuning.steepness * (share - tuning.relevance_bar))) if share > 0 else 0.0


def raised(score: float, by: float, tuning: RankTuning = DEFAULT_TUNING) -> float:
    """The score if the agreement were greater by this share of what it could be; what has none stays without."""
    return 1 / (1 + (1 / score - 1) * exp(-tuning.steepness * by)) if score > 0 else 0.0


def in_context(vectors: Array, places: Sequence[tuple[str, int]]) -> Array:
    """Each vector with its neighbours' added, as unit vectors."""
    at = {place: i for i, place in enumerate(places) if place[0]}
    added = vectors.astype("float32").copy()
    for i, (session, position) in enumerate(places):
        for off, share in CONTEXT if session else ():
            for neighbour in (at.get((session, position - off)), at.get((session, position + off))):
                if neighbour is not None:
                    added[i] += share * vectors[neighbour]
    return unit_rows(added)


def _with_neighbours(own: Array, whole: float, candidates: Candidates, tuning: RankTuning) -> Array:
    sessions = candidates.sessions
    if (sessions < 0).all():
        return own
    place = sessions * _FAR + candidates.positions
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    needs = np.minimum(1.0, tuning.short_text / np.maximum(1, candidates.sizes)) * (sessions >= 0)
    total, support = own.copy(), own * np.minimum(1, own / whole / tuning.strong_neighbour) ** 2
    for off, share in tuning.neighbours:
        for wanted in (place - off, place + off):
            at = order[np.minimum(np.searchsorted(ordered, wanted), len(order) - 1)]
            total += needs * share * np.where(place[at] == wanted, support[at], 0.0)
    return total


_FAR = 1 << 40


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
