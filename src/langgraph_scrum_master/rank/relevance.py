"""How well a text serves a query, as one absolute number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import exp, log

from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.embedders import LOOKED_AT, embedder_for
from langgraph_scrum_master.text.terms import stem, words

MEANING = 0.4
"""The share of evidence that the cosine of the vectors gives; the covered words of the query give the rest."""

EARNS_ITS_TOKENS = 0.42
"""The evidence at which an item is worth its tokens: there the score is 0.7."""

STEEPNESS = 8.0

UNRELATED, KIN = 0.15, 0.6
"""Cosines of two words between which one counts more and more as holding the other."""

_PRIOR = 20
"""Texts in which no word is taken to stand, so that in a small memory each word still counts."""

_AT_BAR = log(0.7 / 0.3)


def relevance(query: str, texts: Sequence[str], embedder: Embedder) -> list[float]:
    """A score from 0 to 1 for each text."""
    return scores(query, texts, cosines(query, texts, embedder))


def cosines(query: str, texts: Sequence[str], embedder: Embedder) -> list[float]:
    """How near each text is to the query, for an embedder of unit vectors."""
    if not texts:
        return []
    import numpy as np

    vectors = np.asarray(embedder.embed_documents(list(texts)))
    near: list[float] = (vectors @ np.asarray(embedder.embed_query(query))).tolist()
    return near


def scores(query: str, texts: Sequence[str], cosines: Sequence[float]) -> list[float]:
    """The same where the cosines are known already."""
    covered = coverage(query, texts)
    return [
        _calibrated(MEANING * max(0.0, near) + (1 - MEANING) * held)
        for near, held in zip(cosines, covered, strict=True)
    ]


def coverage(query: str, texts: Sequence[str]) -> list[float]:
    """The share of the query's words that each text holds, or holds the kin of; rare words count for more."""
    wanted = {stem(word): word for word in words(query)}
    if not wanted or not texts:
        return [0.0] * len(texts)
    held = [{stem(word): word for word in words(text[:LOOKED_AT])} for text in texts]
    near = _nearness(list(wanted.values()), sorted({word for text in held for word in text.values()}))
    weight = _rarity(wanted, held)
    whole = sum(weight.values())
    return [
        sum(weight[term] * _match(term, word, text, near) for term, word in wanted.items()) / whole for text in held
    ]


def _match(term: str, word: str, text: dict[str, str], near: Callable[[str, str], float]) -> float:
    if term in text:
        return 1.0
    best = max((near(word, other) for other in text.values()), default=0.0)
    return min(1.0, max(0.0, (best - UNRELATED) / (KIN - UNRELATED)))


def _nearness(asked: list[str], known: list[str]) -> Callable[[str, str], float]:
    import numpy as np

    vector = embedder_for("static").embed_documents
    if not known:
        return lambda _word, _other: 0.0
    table = np.asarray(vector(asked)) @ np.asarray(vector(known)).T
    rows = {word: table[i].tolist() for i, word in enumerate(asked)}
    column = {word: i for i, word in enumerate(known)}
    return lambda word, other: rows[word][column[other]]


def _rarity(wanted: Iterable[str], held: Sequence[dict[str, str]]) -> dict[str, float]:
    total = len(held) + _PRIOR
    counts = {term: sum(term in text for text in held) for term in wanted}
    return {term: log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in counts.items()}


def _calibrated(evidence: float) -> float:
    if evidence <= 0:
        return 0.0
    return 1 / (1 + exp(-_AT_BAR - STEEPNESS * (evidence - EARNS_ITS_TOKENS)))
