"""The features of a text, computed when it is stored and stored with it.

The sizes here are not part of `RankTuning`, because stored features depend on them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

from langgraph_scrum_master._internal.caches import text_cache
from langgraph_scrum_master.rank.embedders import EMBEDDED_CHARACTERS, static_model
from langgraph_scrum_master.text.references import (
    canonical,
    containers,
    family,
    identifiers,
    own_reference,
    proper_names,
    references,
)
from langgraph_scrum_master.text.terms import stem, words

Array: TypeAlias = "np.ndarray[Any, Any]"

NGRAM = 4
"""Characters of an n-gram. By hand."""

BUCKETS = 4_096
"""Hash buckets for character n-grams. By hand."""

MOST_TOKENS = 256
"""Distinct tokens stored per text. By hand."""

MOST_COUNTED = 255
"""The highest term frequency that fits into a byte."""

_STATES_CAUSE = re.compile(r"\b(?:because|due to|caused by|root cause|the reason|owing to|thanks to)\b", re.I)
_STATES_EFFECT = re.compile(
    r"\b(?:led to|leads? to|therefore|as a result|results? in|resulted in|consequently|so that|causes)\b", re.I
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Features:
    """The features of a text. Words and names are stored as their CRC-32."""

    terms: Array
    counts: Array
    """The frequency of each of the terms."""
    tokens: Array
    """The distinct tokens of the static model."""
    grams: Array
    """The hash buckets of its character n-grams, as a bit set."""
    entities: Array
    identifiers: Array
    references: Array
    own: int
    """The name by which others cite it, from its heading; 0 if it has none."""
    alias: int
    """Its key; 0 if it has none."""
    family: int
    """The kind of record, taken from that name; 0 if it is unknown."""
    causal: int
    """1 if it states a cause, 2 if an effect, 3 if both."""
    size: int
    """Characters."""

    @property
    def length(self) -> int:
        """Terms, repetitions included."""
        return int(self.counts.sum())

    @property
    def filled(self) -> int:
        """Hash buckets that its character n-grams occupy."""
        return int(np.unpackbits(self.grams).sum())

    def pack(self) -> bytes:
        """The features as bytes."""
        parts = [getattr(self, name).astype(kind).tobytes() for name, kind in _PARTS]
        fixed = (self.own, self.alias, self.family, self.causal, self.size, self.filled)
        head = np.array([*fixed, *map(len, parts)], dtype="<u4")
        return b"".join((head.tobytes(), *parts))

    @classmethod
    def unpack(cls, packed: bytes) -> Features:
        """The features that `pack` serialised."""
        (head,) = heads([packed])
        parts = {name: column([packed], head[None, :], name) for name, _ in _PARTS}
        own, alias, family, causal, size = head[:5].tolist()
        return cls(**parts, own=own, alias=alias, family=family, causal=causal, size=size)


OWN, ALIAS, FAMILY, CAUSAL, SIZE, FILLED = range(6)
"""Columns of `heads`."""


def heads(packed: Sequence[bytes]) -> Array:
    """The header of each packed text, a row each: names, family, causality, size, and the length of each part."""
    joined = b"".join([each[: 4 * _HEAD] for each in packed])
    return np.frombuffer(joined, dtype="<u4").reshape(len(packed), _HEAD).astype("int64")


def column(packed: Sequence[bytes], head: Array, name: str) -> Array:
    """One part of all packed texts, concatenated; `lengths` gives the number of items per text."""
    i = _NAMES.index(name)
    starts = 4 * _HEAD + head[:, _FIXED : _FIXED + i].sum(axis=1)
    ends = starts + head[:, _FIXED + i]
    joined = b"".join(
        [each[start:end] for each, start, end in zip(packed, starts.tolist(), ends.tolist(), strict=True)]
    )
    return np.frombuffer(joined, dtype=_PARTS[i][1])


def lengths(head: Array, name: str) -> Array:
    """Items of a part, per text."""
    i = _NAMES.index(name)
    return head[:, _FIXED + i] // np.dtype(_PARTS[i][1]).itemsize


_PARTS = (
    ("terms", "<u4"),
    ("counts", "u1"),
    ("tokens", "<u2"),
    ("grams", "u1"),
    ("entities", "<u4"),
    ("identifiers", "<u4"),
    ("references", "<u4"),
)
_NAMES = [name for name, _ in _PARTS]
RAGGED = tuple(name for name in _NAMES if name != "grams")
"""The parts with any number of values per text."""
_FIXED = 6
_HEAD = _FIXED + len(_PARTS)


def number(name: str) -> int:
    """The CRC-32 of a word or a name."""
    return crc32(name.encode(errors="surrogatepass"))


def vocabulary(text: str) -> dict[int, str]:
    """The words of a text, by the number of their stem."""
    return {number(stem(word)): word for word in reversed(words(text[:EMBEDDED_CHARACTERS]))}


def static_tokens(texts: Sequence[str]) -> list[Array]:
    """The static model's tokens of each text; none if the model is not installed."""
    model = static_model()
    return model.token_ids(texts) if model else [np.zeros(0, "<u2")] * len(texts)


def features_of(
    texts: Sequence[str],
    linked: Sequence[Sequence[str]] | None = None,
    keys: Sequence[str] | None = None,
    tokens: Sequence[Array] | None = None,
) -> list[Features]:
    """The features of each text.

    `linked` holds further references of each text, `keys` the key of each, `tokens` the static model's tokens.
    """
    cut = [text[:EMBEDDED_CHARACTERS] for text in texts]
    tokens = static_tokens(cut) if tokens is None else tokens
    return [
        _features(text, len(full), ids, linked[i] if linked else (), keys[i] if keys else "")
        for i, (text, full, ids) in enumerate(zip(cut, texts, tokens, strict=True))
    ]


def _features(text: str, size: int, tokens: Array, linked: Sequence[str], key: str) -> Features:
    stems = Counter(stem(word) for word in words(text))
    own, alias = own_reference(text), canonical(key)
    kind = family(own) or family(alias)
    parents = (*containers(own), *containers(alias))
    cited = {number(name) for name in (*references(text), *linked, *parents)} - {number(own), number(alias)}
    return Features(
        terms=_numbers(stems),
        counts=np.array([min(MOST_COUNTED, count) for count in stems.values()], dtype="u1"),
        tokens=np.unique(tokens)[:MOST_TOKENS],
        grams=_grams(stems),
        entities=_numbers(proper_names(text)),
        identifiers=_numbers(stem(part) for part in identifiers(text)),
        references=np.array(sorted(cited), dtype="<u4"),
        own=number(own) if own else 0,
        alias=number(alias) if alias else 0,
        family=number(kind) if kind else 0,
        causal=bool(_STATES_CAUSE.search(text)) + 2 * bool(_STATES_EFFECT.search(text)),
        size=size,
    )


def _numbers(names: Any) -> Array:
    return np.array([number(name) for name in dict.fromkeys(names)], dtype="<u4")


def _grams(stems: Sequence[str] | Counter[str]) -> Array:
    occupied = np.zeros(BUCKETS, dtype=bool)
    occupied[[bucket for word in stems for bucket in _buckets(word)]] = True
    return np.packbits(occupied)


@text_cache(500_000)
def _buckets(word: str) -> tuple[int, ...]:
    framed = f"<{word}>"
    return tuple(number(framed[i : i + NGRAM]) % BUCKETS for i in range(max(1, len(framed) - NGRAM + 1)))
