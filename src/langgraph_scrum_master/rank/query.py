"""The two sides of a comparison: what is asked, and the texts that may serve it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from langgraph_scrum_master.errors import EmbeddingError
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.corpus import Corpus, TokenWeights
from langgraph_scrum_master.rank.embedders import StaticEmbedder, of_sentences, static_model
from langgraph_scrum_master.rank.features import (
    ALIAS,
    CAUSAL,
    FAMILY,
    FILLED,
    OWN,
    SIZE,
    Array,
    Features,
    column,
    features_of,
    heads,
    lengths,
    number,
    vocabulary,
)
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, RankTuning
from langgraph_scrum_master.text.references import besides, family, references
from langgraph_scrum_master.text.terms import words

_REMEMBERED = 64
"""Queries of which is kept what they were compared by, for those who ask the same elsewhere."""

_ASKS_CAUSE = re.compile(r"\b(?:why|what (?:caused|made)|reasons?|root cause|because of what)\b", re.I)
_ASKS_EFFECT = re.compile(r"\b(?:what (?:happens|happened)|effects?|impact|consequences?|lead to|result in)\b", re.I)


class RankQuery:
    """A query, with how much each part of it counts in this corpus; without an embedder, its words alone."""

    def __init__(
        self,
        text: str,
        corpus: Corpus,
        embedder: Embedder | None,
        *,
        now: float | None = None,
        models: Mapping[str, Embedder] | None = None,
        around: Sequence[Around] = (),
        tuning: RankTuning = DEFAULT_TUNING,
    ) -> None:
        self.text = text
        parts = [(text, 1.0), *around]
        wording = _wording("\n".join(part for part, _ in parts))
        self.features = wording.features
        self.corpus = corpus
        self.now = now
        """Seconds since the epoch; None if the time of the query is unknown."""
        self.tuning = tuning
        self._weights = _part_weights(parts) if around else None
        self.vector = self._vector(parts, wording, embedder)
        self.embedded = embedder is not None
        model = static_model() or embedder
        self.centre = corpus.centre if embedder is not None and of_sentences(embedder) else None
        """The mean vector of the memory, for sentence models; the static model weights tokens by idf instead."""
        self.meaning = self.vector if model is embedder else self._vector(parts, wording, model)
        self.term_weights = corpus.term_rarity(self.features.terms)
        if self._weights:
            self.term_weights = self.term_weights * _weights_of(self.features.terms, self._weights.terms)
        self.families = _wording(text).subject(tuning.few_words)
        self.by_model = {space: self._vector(parts, wording, model) for space, model in (models or {}).items()}
        """Its vectors by the models that were put in the place of spaces."""
        self.causal = wording.causal
        self._vocabulary = wording.vocabulary

    @cached_property
    def words(self) -> tuple[dict[int, str], Array]:
        """The words with the highest idf, by the number of their term, and the weight of each."""
        rarest = np.argsort(-self.term_weights, kind="stable")[: self.tuning.query_terms]
        terms = self.features.terms[rarest].tolist()
        return {term: self._vocabulary[term] for term in terms}, self.term_weights[rarest]

    @cached_property
    def tokens(self) -> tuple[Array, Array]:
        """The tokens with the highest idf, and the weight of each."""
        weights = self.corpus.token_rarity(self.features.tokens)
        if self._weights:
            weights = weights * _weights_of(self.features.tokens, self._weights.tokens)
        rarest = np.argsort(-weights, kind="stable")[: self.tuning.query_terms]
        return self.features.tokens[rarest], weights[rarest]

    def ages(self, candidates: Candidates) -> Array:
        """Seconds since each candidate was made; since the epoch where a time is unknown."""
        return (self.now or 0.0) - candidates.created

    def _vector(self, parts: Sequence[Around], wording: Wording, embedder: Embedder | None) -> Array:
        """The vector of the whole, each part by its weight."""
        if embedder is None:
            return np.zeros(0, dtype="float32")
        if self._weights is None:
            return _query_vector(parts[0][0], self.corpus, embedder)
        if isinstance(embedder, StaticEmbedder) and embedder is static_model():
            rarity = self.corpus.token_rarity(wording.tokens)
            return embedder.mean(wording.tokens, rarity * _weights_of(wording.tokens, self._weights.tokens))
        # A model may be slow, or be paid for: the need, and all that was said around it, once each.
        said = "\n".join(part for part, _ in parts[1:])
        mean = sum(weight for _, weight in parts[1:]) / max(1, len(parts) - 1)
        vectors = [_query_vector(parts[0][0], self.corpus, embedder), mean * _query_vector(said, self.corpus, embedder)]
        return unit_rows(np.sum(vectors, axis=0)[None, :])[0].astype("float32")


Around: TypeAlias = tuple[str, float]
"""What was said around a query, and how much that counts: 1 as much as the query itself."""


class _PartWeights(NamedTuple):
    """The weight of each term and each token, by the part of the query that it is in."""

    terms: dict[int, float]
    tokens: dict[int, float]


def _part_weights(parts: Sequence[Around]) -> _PartWeights:
    found = _PartWeights({}, {})
    for text, weight in parts:
        wording = _wording(text)
        for mine, numbers in zip(found, (wording.features.terms, wording.tokens), strict=True):
            for each in numbers.tolist():
                mine[each] = max(weight, mine.get(each, 0.0))
    return found


def _weights_of(numbers: Array, weights: Mapping[int, float]) -> Array:
    return np.array([weights.get(number, 0.0) for number in numbers.tolist()], dtype="float32")


class Wording(NamedTuple):
    """What a query says, whatever it is compared with."""

    features: Features
    vocabulary: Mapping[int, str]
    """Its words by the numbers of their terms."""
    tokens: Array
    """Those of the static model, where there is one."""
    families: Mapping[int, str]
    """The kinds of record that it names."""
    besides: int
    """Words beside those names."""
    causal: int
    """1 if it asks for a cause, 2 if for an effect."""

    def subject(self, few_words: int) -> Mapping[int, str]:
        """The kinds of record that it is about: those that it names, if it says little else."""
        return self.families if self.besides <= few_words else {}


# The same query is asked of several memories, and of one in several ways.
@lru_cache(_REMEMBERED)
def _wording(text: str) -> Wording:
    named, model = references(text), static_model()
    return Wording(
        features=features_of([text])[0],
        vocabulary=vocabulary(text),
        tokens=model.token_ids([text])[0] if model else np.zeros(0, dtype="<u2"),
        families={number(family(name)): family(name) for name in named},
        besides=len(words(besides(text))) if named else 0,
        causal=1 if _ASKS_CAUSE.search(text) else 2 if _ASKS_EFFECT.search(text) else 0,
    )


class Candidate(NamedTuple):
    """A text that may serve the query, with its time and place in a session; features and vectors as bytes."""

    features: bytes
    vector: bytes
    context: bytes
    """Its vector in the light of its neighbours'."""
    session: str = ""
    position: int = 0
    created: float = 0.0
    links: bytes = b""
    """What relationships link it with."""


class Candidates:
    """Texts side by side, so that a space compares all of them at once."""

    def __init__(
        self,
        found: Sequence[Candidate],
        by_model: Mapping[str, Array] | None = None,
        places: Sequence[int] | None = None,
        texts: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        self.found = found
        self._load_texts = texts
        self._places = places or [0] * len(found)
        """Which of several memories each is from: a session of one is none of another."""
        self.by_model = by_model or {}
        """Their vectors, a row each, by the models that were put in the place of spaces."""
        self._packed = [candidate.features for candidate in found]
        self._heads = heads(self._packed)

    def __len__(self) -> int:
        return len(self.found)

    @cached_property
    def texts(self) -> Sequence[str]:
        """The text of each, which is read when it is first used: the built-in spaces need none."""
        if self._load_texts is None:
            raise LookupError("these candidates have no texts")
        return self._load_texts()

    @cached_property
    def created(self) -> Array:
        """When each was made, in seconds since the epoch; 0 where that is unknown."""
        return np.array([candidate.created for candidate in self.found], dtype="float64")

    @cached_property
    def positions(self) -> Array:
        """The place of each in its session."""
        return np.array([candidate.position for candidate in self.found], dtype="int64")

    @property
    def own(self) -> Array:
        """What each is referred to by, or 0."""
        return self._heads[:, OWN]

    @property
    def aliases(self) -> Array:
        """What each is kept under, or 0."""
        return self._heads[:, ALIAS]

    @property
    def families(self) -> Array:
        """What kind of record each is, or 0."""
        return self._heads[:, FAMILY]

    @property
    def causal(self) -> Array:
        """Whether each gives a cause (1), an effect (2), or both (3)."""
        return self._heads[:, CAUSAL]

    @cached_property
    def sessions(self) -> Array:
        """The session of each by number; -1 for those that are in none."""
        numbers: dict[tuple[int, str], int] = {}
        found = [
            numbers.setdefault((place, candidate.session), len(numbers)) if candidate.session else -1
            for place, candidate in zip(self._places, self.found, strict=True)
        ]
        return np.array(found, dtype="int64")

    @property
    def sizes(self) -> Array:
        """Characters of each."""
        return self._heads[:, SIZE]

    @cached_property
    def vectors(self) -> Array:
        """A row each."""
        return _rows([candidate.vector for candidate in self.found])

    @cached_property
    def contexts(self) -> Array:
        """A row each."""
        return _rows([candidate.context for candidate in self.found])

    @cached_property
    def terms(self) -> Ragged:
        """The terms of each."""
        return self.ragged("terms")

    @cached_property
    def counts(self) -> Array:
        """The frequency of each of the terms in its text, all in one array."""
        return column(self._packed, self._heads, "counts").astype("float32")

    @cached_property
    def lengths(self) -> Array:
        """Terms of each, repeated ones included."""
        return np.bincount(self.terms.owner, weights=self.counts, minlength=len(self))

    @cached_property
    def tokens(self) -> Ragged:
        """The tokens of each."""
        return self.ragged("tokens")

    @property
    def filled(self) -> Array:
        """Hash buckets that the character n-grams of each fill."""
        return self._heads[:, FILLED]

    def fills(self, places: Array) -> Array:
        """Whether each fills each of these hash buckets."""
        grams = column(self._packed, self._heads, "grams").reshape(len(self), -1)
        return (grams[:, places // 8] & (128 >> (places % 8)).astype("u1")) > 0

    @cached_property
    def references(self) -> Ragged:
        """What each refers to, or is linked with."""
        named = self.ragged("references")
        links = b"".join([candidate.links for candidate in self.found])
        return named.with_others(links, [len(candidate.links) for candidate in self.found]) if links else named

    def ragged(self, name: str) -> Ragged:
        """Another such feature of each."""
        return Ragged(column(self._packed, self._heads, name), lengths(self._heads, name))


class Ragged:
    """Lists of different lengths in a row."""

    def __init__(self, flat: Array, lengths: Array) -> None:
        self.flat = flat
        self._lengths = lengths

    @cached_property
    def owner(self) -> Array:
        """Whose each is."""
        return np.repeat(np.arange(len(self._lengths)), self._lengths)

    def with_others(self, packed: bytes, sizes: Sequence[int]) -> Ragged:
        """The lists with more in each, given in a row of bytes, with how many bytes are whose."""
        others = Ragged(np.frombuffer(packed, dtype=self.flat.dtype), np.array(sizes) // self.flat.itemsize)
        both = [np.stack([each.owner, each.flat.astype("int64")]) for each in (self, others)]
        # Each once, those of one list together.
        owner, flat = np.unique(np.concatenate(both, axis=1), axis=1)
        return Ragged(flat.astype(self.flat.dtype), np.bincount(owner, minlength=len(sizes)))

    def held(self, wanted: Array, weights: Array, per_item: Array | None = None) -> Array:
        """The weights of the wanted that each list holds, added up."""
        order = np.argsort(wanted, kind="stable")
        place = np.minimum(np.searchsorted(wanted[order], self.flat), max(0, len(wanted) - 1))
        hit = wanted[order][place] == self.flat if len(wanted) else np.zeros(len(self.flat), bool)
        share = weights[order][place[hit]] * (1.0 if per_item is None else per_item[hit])
        return np.bincount(self.owner[hit], weights=share, minlength=len(self._lengths))

    def best(self, likeness: Array) -> Array:
        """Of a table with a column for each in the row, the largest for each list."""
        filled = self._lengths > 0
        best = np.zeros((likeness.shape[0], len(self._lengths)), dtype="float32")
        if filled.any() and likeness.shape[0]:
            starts = (np.cumsum(self._lengths) - self._lengths)[filled]
            best[:, filled] = np.maximum.reduceat(likeness, starts, axis=1)
        return best


def _query_vector(text: str, corpus: Corpus, embedder: Embedder | None) -> Array:
    if embedder is None:
        return np.zeros(0, dtype="float32")
    if isinstance(embedder, StaticEmbedder):
        ids = _wording(text).tokens if embedder is static_model() else embedder.token_ids([text])[0]
        return embedder.mean(ids, corpus.token_rarity(ids))
    return _remembered(text, embedder)


def _remembered(text: str, embedder: Embedder) -> Array:
    """The vector of a query, made once: a model may take long, and be paid for."""
    # By its id, for many models cannot be hashed; the model is kept, so that no other gets the same.
    key = (id(embedder), text)
    if (known := _vectors.get(key)) is None:
        known = _vectors[key] = embedder, _checked(lambda: [embedder.embed_query(text)], 1)[0]
        for oldest in list(_vectors)[:-_REMEMBERED]:
            _vectors.pop(oldest, None)
    return known[1]


_vectors: dict[tuple[int, str], tuple[Embedder, Array]] = {}


def document_vectors(
    texts: Sequence[str], corpus: TokenWeights, embedder: Embedder, tokens: Sequence[Array] | None = None
) -> Array:
    """A unit vector for each text, with its tokens weighted as they count now (`tokens` of the static model)."""
    if isinstance(embedder, StaticEmbedder):
        ids = embedder.token_ids(texts) if tokens is None else tokens
        return np.stack([embedder.mean(each, corpus.token_rarity(each)) for each in ids])
    return unit_vectors(texts, embedder)


def unit_vectors(texts: Sequence[str], embedder: Embedder) -> Array:
    """A unit vector for each text, as the embedder makes it."""
    return _checked(lambda: embedder.embed_documents(list(texts)), len(texts))


def _checked(make: Callable[[], object], count: int) -> Array:
    try:
        made = make()
    # Whatever a model raises, from whatever library.
    except Exception as error:
        raise EmbeddingError(f"{type(error).__name__}: {error}") from error
    try:
        vectors = np.asarray(made, dtype="float64")
    except (TypeError, ValueError):
        vectors = np.zeros(0)
    if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
        raise EmbeddingError(
            f"the embedder must give one vector of finite numbers per text, all of one length, got {vectors.shape} for "
            f"{count} texts"
        )
    return unit_rows(vectors).astype("float32")


def meaning_vectors(
    texts: Sequence[str], corpus: TokenWeights, embedder: Embedder, tokens: Sequence[Array] | None = None
) -> Array:
    """The same by the static model, with tokens weighted by idf, where there is one."""
    return document_vectors(texts, corpus, static_model() or embedder, tokens)


def unit_rows(vectors: Array) -> Array:
    """The vectors, each of length one."""
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    return vectors / np.maximum(lengths, 1e-9)


def packed_vector(vector: Array) -> bytes:
    """A vector as a candidate has it."""
    return vector.astype("<f2").tobytes()


def _rows(vectors: Sequence[bytes]) -> Array:
    # Looked up: that takes half as long as converting.
    return _HALVES.take(np.frombuffer(b"".join(vectors), dtype="<u2").reshape(len(vectors), -1))


_HALVES = np.arange(1 << 16, dtype="<u2").view("<f2").astype("float32")
"""Every number of half precision."""
