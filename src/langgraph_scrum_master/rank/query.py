"""The two sides of a comparison: the query and the candidates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from langgraph_scrum_master._internal.caches import text_cache
from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master.errors import EmbeddingError
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.corpus import Corpus, TokenWeights
from langgraph_scrum_master.rank.embedders import StaticEmbedder, is_sentence_model, static_model
from langgraph_scrum_master.rank.features import (
    ALIAS,
    CAUSAL,
    FAMILY,
    FILLED,
    OWN,
    SIZE,
    Array,
    Features,
    features_of,
    number,
    static_tokens,
    vocabulary,
)
from langgraph_scrum_master.rank.table import Candidate, CandidateTable
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, RankTuning
from langgraph_scrum_master.text.references import besides, family, references
from langgraph_scrum_master.text.terms import words

_CACHED_QUERIES = 64
"""Queries whose vectors are cached: the same query goes to several memories."""

_CACHED_CHARACTERS = 1_000_000
"""Characters of the queries whose analysis is cached."""

_ASKS_CAUSE = re.compile(r"\b(?:why|what (?:caused|made)|reasons?|root cause|because of what)\b", re.I)
_ASKS_EFFECT = re.compile(r"\b(?:what (?:happens|happened)|effects?|impact|consequences?|lead to|result in)\b", re.I)


class RankQuery:
    """A query with its features weighted by the idf of a corpus. Without an embedder it has no vector."""

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
        analysis = _analyse("\n".join(part for part, _ in parts))
        self.features = analysis.features
        self.corpus = corpus
        self.now = now
        """Seconds since the epoch; None if the time of the query is unknown."""
        self.tuning = tuning
        self._weights = _part_weights(parts) if around else None
        self.vector = self._vector(parts, analysis, embedder)
        self.embedded = embedder is not None
        model = static_model() or embedder
        self.centre = corpus.centre if embedder is not None and is_sentence_model(embedder) else None
        """The mean vector of the corpus, for sentence models; the static model weights tokens by idf instead."""
        self.meaning = self.vector if model is embedder else self._vector(parts, analysis, model)
        self.term_weights = corpus.term_idf(self.features.terms)
        if self._weights:
            self.term_weights = self.term_weights * _weights_of(self.features.terms, self._weights.terms)
        self.families = _analyse(text).subject(tuning.few_words)
        self.by_model = {space: self._vector(parts, analysis, model) for space, model in (models or {}).items()}
        """Its vectors by the models that replace spaces."""
        self.causal = analysis.causal
        self._vocabulary = analysis.vocabulary

    @cached_property
    def words(self) -> tuple[dict[int, str], Array]:
        """The words with the highest idf, by term, and their weights."""
        heaviest = np.argsort(-self.term_weights, kind="stable")[: self.tuning.query_terms]
        terms = self.features.terms[heaviest].tolist()
        return {term: self._vocabulary[term] for term in terms}, self.term_weights[heaviest]

    @cached_property
    def tokens(self) -> tuple[Array, Array]:
        """The tokens with the highest idf, and their weights."""
        weights = self.corpus.token_idf(self.features.tokens)
        if self._weights:
            weights = weights * _weights_of(self.features.tokens, self._weights.tokens)
        heaviest = np.argsort(-weights, kind="stable")[: self.tuning.query_terms]
        return self.features.tokens[heaviest], weights[heaviest]

    def ages(self, candidates: Candidates) -> Array:
        """The age of each candidate in seconds; counted from the epoch if its time is unknown."""
        return (self.now or 0.0) - candidates.created

    def _vector(self, parts: Sequence[Around], analysis: QueryAnalysis, embedder: Embedder | None) -> Array:
        """The vector of all parts, weighted."""
        if embedder is None:
            return np.zeros(0, dtype="float32")
        if self._weights is None:
            return _query_vector(parts[0][0], self.corpus, embedder)
        if isinstance(embedder, StaticEmbedder) and embedder is static_model():
            idf = self.corpus.token_idf(analysis.tokens)
            return embedder.mean(analysis.tokens, idf * _weights_of(analysis.tokens, self._weights.tokens))
        # A model may be slow or charge per call: embed the query and the joined context once each.
        context = "\n".join(part for part, _ in parts[1:])
        mean = sum(weight for _, weight in parts[1:]) / max(1, len(parts) - 1)
        vectors = [
            _query_vector(parts[0][0], self.corpus, embedder),
            mean * _query_vector(context, self.corpus, embedder),
        ]
        return unit_rows(np.sum(vectors, axis=0)[None, :])[0].astype("float32")


Around: TypeAlias = tuple[str, float]
"""A message around a query, and its weight relative to the query."""


class _PartWeights(NamedTuple):
    """The weight of each term and token: the highest weight of the parts that contain it."""

    terms: dict[int, float]
    tokens: dict[int, float]


def _part_weights(parts: Sequence[Around]) -> _PartWeights:
    weights = _PartWeights({}, {})
    for text, weight in parts:
        analysis = _analyse(text)
        for by_number, numbers in zip(weights, (analysis.features.terms, analysis.tokens), strict=True):
            for each in numbers.tolist():
                by_number[each] = max(weight, by_number.get(each, 0.0))
    return weights


def _weights_of(numbers: Array, weights: Mapping[int, float]) -> Array:
    return np.array([weights.get(number, 0.0) for number in numbers.tolist()], dtype="float32")


class QueryAnalysis(NamedTuple):
    """The features of a query's text, independent of the corpus."""

    features: Features
    vocabulary: Mapping[int, str]
    """Its words, by term."""
    tokens: Array
    """The static model's tokens; empty without the model."""
    families: Mapping[int, str]
    """The kinds of record that it names."""
    besides: int
    """Words other than those names."""
    causal: int
    """1 if it asks for a cause, 2 if it asks for an effect, else 0."""

    def subject(self, few_words: int) -> Mapping[int, str]:
        """The kinds of record that the query is about: those it names, if it has few other words."""
        return self.families if self.besides <= few_words else {}


@text_cache(_CACHED_CHARACTERS)
def _analyse(text: str) -> QueryAnalysis:
    named, tokens = references(text), static_tokens([text])
    return QueryAnalysis(
        features=features_of([text], tokens=tokens)[0],
        vocabulary=vocabulary(text),
        tokens=tokens[0],
        families={number(family(name)): family(name) for name in named},
        besides=len(words(besides(text))) if named else 0,
        causal=1 if _ASKS_CAUSE.search(text) else 2 if _ASKS_EFFECT.search(text) else 0,
    )


class Candidates:
    """The texts to be ranked, in columns, so that a space compares all of them at once."""

    def __init__(self, rows: Sequence[Candidate], texts: Callable[[], Sequence[str]] | None = None) -> None:
        table = CandidateTable()
        if rows:
            table.append([*zip(*rows, strict=True)])
        self._select([(table, np.arange(len(rows)))], {}, texts)

    @classmethod
    def of(
        cls,
        parts: Sequence[tuple[CandidateTable, Array]],
        by_model: Mapping[str, Array] | None = None,
        texts: Callable[[], Sequence[str]] | None = None,
    ) -> Candidates:
        """These rows of the tables of some shelves.

        Sessions of the same name in two of them are different sessions. `by_model` holds a vector for each row, by the
        models that replace spaces.
        """
        candidates = object.__new__(cls)
        candidates._select(parts, by_model or {}, texts)
        return candidates

    def _select(
        self,
        parts: Sequence[tuple[CandidateTable, Array]],
        by_model: Mapping[str, Array],
        texts: Callable[[], Sequence[str]] | None,
    ) -> None:
        self._parts = [(table, rows) for table, rows in parts if len(rows)]
        self._size = sum(len(rows) for _, rows in parts)
        self._load_texts = texts
        self.by_model = by_model
        """Their vectors, a row each, by the models that replace spaces."""

    def __len__(self) -> int:
        return self._size

    @cached_property
    def texts(self) -> Sequence[str]:
        """The text of each, read on first use: the built-in spaces do not need it."""
        if self._load_texts is None:
            raise LookupError("these candidates have no texts")
        return self._load_texts()

    def with_all_terms(self, terms: Array) -> list[int]:
        """The texts that have all of these terms, by index."""
        shared = self.terms.owner[np.isin(self.terms.flat, terms)]
        return np.flatnonzero(np.bincount(shared, minlength=len(self)) == len(terms)).tolist()

    @cached_property
    def created(self) -> Array:
        """The time of each in seconds since the epoch; 0 if it is unknown."""
        return self._gather("created")

    @cached_property
    def positions(self) -> Array:
        """The position of each in its session."""
        return self._gather("positions")

    @property
    def own(self) -> Array:
        """The name by which others cite each, or 0."""
        return self._heads[:, OWN]

    @property
    def aliases(self) -> Array:
        """The key of each, or 0."""
        return self._heads[:, ALIAS]

    @property
    def families(self) -> Array:
        """The kind of record of each, or 0."""
        return self._heads[:, FAMILY]

    @property
    def causal(self) -> Array:
        """Whether each states a cause (1), an effect (2), or both (3)."""
        return self._heads[:, CAUSAL]

    @cached_property
    def sessions(self) -> Array:
        """The session of each, numbered; -1 without a session."""
        of_part = [table.gather("sessions", rows) for table, rows in self._parts]
        if not of_part:
            return np.zeros(0, dtype="int64")
        numbers = np.concatenate([np.where(part < 0, -1, part + (i << 32)) for i, part in enumerate(of_part)])
        distinct, index = np.unique(numbers, return_inverse=True)
        return index - 1 if distinct[0] < 0 else index

    @property
    def sizes(self) -> Array:
        """The length of each in characters."""
        return self._heads[:, SIZE]

    @cached_property
    def vectors(self) -> Array:
        """The vectors, a row each."""
        return _single_precision(self._gather("vectors"))

    @cached_property
    def contexts(self) -> Array:
        """The context vectors, a row each."""
        return _single_precision(self._gather("contexts"))

    @cached_property
    def terms(self) -> Ragged:
        """The terms of each."""
        return self.ragged("terms")

    @cached_property
    def counts(self) -> Array:
        """The term frequencies, aligned with `terms.flat`."""
        return self.ragged("counts").flat.astype("float32")

    @cached_property
    def lengths(self) -> Array:
        """Terms per text, repetitions included."""
        return np.bincount(self.terms.owner, weights=self.counts, minlength=len(self))

    @cached_property
    def tokens(self) -> Ragged:
        """The tokens of each."""
        return self.ragged("tokens")

    @property
    def filled(self) -> Array:
        """Hash buckets that the character n-grams of each occupy."""
        return self._heads[:, FILLED]

    def occupies(self, buckets: Array) -> Array:
        """Whether each text occupies each of these hash buckets."""
        grams = _joined([table.gather_bytes("grams", rows, buckets // 8) for table, rows in self._parts])
        return (grams & (128 >> (buckets % 8)).astype("u1")) > 0

    @cached_property
    def references(self) -> Ragged:
        """The names that each cites or is linked with."""
        named, links = self.ragged("references"), self.ragged("links")
        return named.with_others(links) if len(links.flat) else named

    def ragged(self, name: str) -> Ragged:
        """A feature with any number of values per text."""
        flats, sizes = zip(*(table.gather_ragged(name, rows) for table, rows in self._parts), strict=True)
        return Ragged(_joined(flats), _joined(sizes))

    @cached_property
    def _heads(self) -> Array:
        return self._gather("heads")

    def _gather(self, name: str) -> Array:
        return _joined([table.gather(name, rows) for table, rows in self._parts])


def _joined(parts: Sequence[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class Ragged:
    """A ragged array: lists of different lengths, concatenated."""

    def __init__(self, flat: Array, lengths: Array) -> None:
        self.flat = flat
        self._lengths = lengths

    @cached_property
    def owner(self) -> Array:
        """The list that each value belongs to."""
        return np.repeat(np.arange(len(self._lengths)), self._lengths)

    def with_others(self, others: Ragged) -> Ragged:
        """The lists with more values each."""
        both = [np.stack([each.owner, each.flat.astype("int64")]) for each in (self, others)]
        # Without duplicates, grouped by list.
        owner, flat = np.unique(np.concatenate(both, axis=1), axis=1)
        return Ragged(flat.astype(self.flat.dtype), np.bincount(owner, minlength=len(self._lengths)))

    def sum_weights(self, wanted: Array, weights: Array, per_item: Array | None = None) -> Array:
        """For each list, the summed weights of the wanted values in it."""
        order = np.argsort(wanted, kind="stable")
        index = np.minimum(np.searchsorted(wanted[order], self.flat), max(0, len(wanted) - 1))
        hit = wanted[order][index] == self.flat if len(wanted) else np.zeros(len(self.flat), bool)
        share = weights[order][index[hit]] * (1.0 if per_item is None else per_item[hit])
        return np.bincount(self.owner[hit], weights=share, minlength=len(self._lengths))

    def max_per_list(self, table: Array) -> Array:
        """The maximum over the columns of each list, in a table with one column per value of `flat`."""
        filled = self._lengths > 0
        best = np.zeros((table.shape[0], len(self._lengths)), dtype="float32")
        if filled.any() and table.shape[0]:
            starts = (np.cumsum(self._lengths) - self._lengths)[filled]
            best[:, filled] = np.maximum.reduceat(table, starts, axis=1)
        return best


def _query_vector(text: str, corpus: Corpus, embedder: Embedder | None) -> Array:
    if embedder is None:
        return np.zeros(0, dtype="float32")
    if isinstance(embedder, StaticEmbedder):
        ids = _analyse(text).tokens if embedder is static_model() else embedder.token_ids([text])[0]
        return embedder.mean(ids, corpus.token_idf(ids))
    return _cached_query_vector(text, embedder)


def _cached_query_vector(text: str, embedder: Embedder) -> Array:
    """The vector of a query, cached: a model may be slow or charge per call."""
    # Keyed by id, because many models are not hashable. The cached model keeps its id from being reused.
    key = (id(embedder), digest(text))
    if (cached := _vectors.get(key)) is None:
        cached = _vectors[key] = embedder, _check_vectors(lambda: [embedder.embed_query(text)], 1)[0]
        for oldest in list(_vectors)[:-_CACHED_QUERIES]:
            _vectors.pop(oldest, None)
    return cached[1]


_vectors: dict[tuple[int, str], tuple[Embedder, Array]] = {}


def document_vectors(
    texts: Sequence[str], corpus: TokenWeights, embedder: Embedder, tokens: Sequence[Array] | None = None
) -> Array:
    """A unit vector for each text; with the static model, tokens are weighted by the current idf."""
    if isinstance(embedder, StaticEmbedder):
        ids = embedder.token_ids(texts) if tokens is None else tokens
        return np.stack([embedder.mean(each, corpus.token_idf(each)) for each in ids])
    return unit_vectors(texts, embedder)


def unit_vectors(texts: Sequence[str], embedder: Embedder) -> Array:
    """A unit vector for each text, from the embedder alone."""
    return _check_vectors(lambda: embedder.embed_documents(list(texts)), len(texts))


def _check_vectors(embed: Callable[[], object], count: int) -> Array:
    try:
        output = embed()
    # Models of other libraries may raise anything.
    except BaseException as raised:
        error = recordable(raised)
        raise EmbeddingError(f"{type(error).__name__}: {error}") from error
    try:
        vectors = np.asarray(output, dtype="float64")
    except (TypeError, ValueError):
        vectors = np.zeros(0)
    if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
        raise EmbeddingError(
            f"the embedder must return one vector of finite numbers per text, all of one length, got {vectors.shape} "
            f"for {count} texts"
        )
    return unit_rows(vectors).astype("float32")


def meaning_vectors(
    texts: Sequence[str], corpus: TokenWeights, embedder: Embedder, tokens: Sequence[Array] | None = None
) -> Array:
    """The same with the static model, or with the embedder if there is none."""
    return document_vectors(texts, corpus, static_model() or embedder, tokens)


def unit_rows(vectors: Array) -> Array:
    """The rows scaled to unit length."""
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    return vectors / np.maximum(lengths, 1e-9)


def packed_vector(vector: Array) -> bytes:
    """The vector as half-precision bytes."""
    return vector.astype("<f2").tobytes()


def _single_precision(half: Array) -> Array:
    """The bits of half-precision numbers as single precision.

    Shifts the bits into place and corrects the exponent, which is several times faster than `astype`. Exact for all
    finite numbers.
    """
    bits = half.astype("<i4")
    bits <<= 13
    bits &= _SIGN_AND_HALF
    numbers = bits.view("<f4")
    numbers *= _EXPONENT_BIAS
    return numbers


_SIGN_AND_HALF = np.int32(-0x7000_2000)
"""The bits that the sign, exponent and fraction of a half-precision number have after the shift: 0x8fffe000."""

_EXPONENT_BIAS = np.float32(2.0**112)
"""The difference between the exponent biases of single and half precision."""
