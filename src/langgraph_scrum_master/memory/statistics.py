"""Corpus statistics of a shelf: document frequencies of terms, tokens and character n-grams, and the mean vector.

They are derived from the records. A snapshot is saved from time to time; newer records are counted after it is loaded,
so that a write does not have to rewrite the counts.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.memory.database import DerivedError, FeatureRow
from langgraph_scrum_master.memory.records import SEARCHED
from langgraph_scrum_master.rank.corpus import PRIOR, CorpusCounts, idf, prior_tokens
from langgraph_scrum_master.rank.features import Array, column, heads, lengths
from langgraph_scrum_master.rank.word_vectors import WordVectors

SAVED_EVERY = 2_048
"""Records between two snapshots. By hand: more make opening slower, fewer make writing slower."""

_VERSION = 1

Words = Callable[[Sequence[int]], Mapping[int, str]]
"""Reads the texts of records and returns their words, by term."""


class _Recent(NamedTuple):
    """The change of a term's count since the snapshot."""

    change: int
    record: int
    """A record that contains the term, to look up the word; 0 if there is none."""


_UNCHANGED = _Recent(0, 0)


class _Base(NamedTuple):
    """The terms of the snapshot, sorted, with their counts and words."""

    terms: Array
    counts: Array
    words: list[str]

    def counts_of(self, terms: Array) -> Array:
        """The count of each term; 0 if it is missing."""
        index = self._index(terms)
        return np.where(index >= 0, self.counts[index], 0) if len(self.counts) else np.zeros(len(terms), "<i4")

    def words_of(self, terms: Sequence[int]) -> list[str]:
        """The word of each term; empty if it is missing."""
        index = self._index(np.array(terms, dtype="<u4")).tolist()
        return [self.words[i] if i >= 0 else "" for i in index]

    def _index(self, terms: Array) -> Array:
        if not len(self.terms):
            return np.full(len(terms), -1)
        index = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        return np.where(self.terms[index] == terms, index, -1)


class Statistics(CorpusCounts):
    """The corpus statistics of one shelf, updated record by record."""

    def __init__(self, words: Words) -> None:
        super().__init__()
        self.kinds: Counter[str] = Counter()
        self.watermark = 0
        """The last record id that is counted."""
        self.saved = 0
        """The last record id in the saved snapshot."""
        self._words_of = words
        self._base = _Base(np.zeros(0, "<u4"), np.zeros(0, "<i4"), [])
        self._recent: dict[int, _Recent] = {}
        self._term_rows = _NO_ROWS

    def count_records(self, records: Sequence[FeatureRow], times: int = 1) -> None:
        """Add records; `times=-1` subtracts them."""
        for kind, count in Counter(record.kind for record in records).items():
            self.kinds[kind] += times * count
        if times > 0:
            self.watermark = max(self.watermark, *(record.id for record in records))
        # Relationships are not searched, so their words must not change idf.
        searched = [record for record in records if record.kind in SEARCHED]
        if not searched:
            return
        packed = [record.features for record in searched]
        self.count_packed(packed, times)
        self.add(
            np.frombuffer(b"".join([record.vector for record in searched]), "<f2").reshape(len(searched), -1), times
        )
        head = heads(packed)
        owners = np.repeat(np.array([record.id for record in searched]), lengths(head, "terms"))
        terms, first, counts = np.unique(column(packed, head, "terms"), return_index=True, return_counts=True)
        for term, owner, count in zip(terms.tolist(), owners[first].tolist(), counts.tolist(), strict=True):
            known = self._recent.get(term, _UNCHANGED)
            self._recent[term] = _Recent(known.change + times * count, known.record or (owner if times > 0 else 0))

    def term_counts(self, terms: Array) -> Array:
        """The document frequency of each term."""
        found, recent = self._base.counts_of(terms), self._recent
        if recent:
            found = found + [recent.get(term, _UNCHANGED).change for term in terms.tolist()]
        return found

    def term_idf(self, terms: Array) -> Array:
        """The idf of each term."""
        return idf(self.term_counts(terms), self.size)

    def word_rows(self, terms: Array, vectors: WordVectors) -> Array:
        """The row in `vectors` of a word for each term."""
        # Copied to a local variable, because another thread may replace it.
        rows = self._term_rows if self._term_rows.vectors is vectors else _NO_ROWS._replace(vectors=vectors)
        found = rows.rows_of(terms)
        if (found < 0).any():
            missing = np.unique(terms[found < 0])
            self._term_rows = rows = rows.plus(missing, np.array(vectors.rows(self.words(missing.tolist()))))
            found = rows.rows_of(terms)
        return found

    def words(self, terms: Sequence[int]) -> list[str]:
        """A word for each term; empty if no record has the term."""
        found, recent = self._base.words_of(terms), self._recent
        wanted = {
            recent[term].record for term, word in zip(terms, found, strict=True) if not word and term in recent
        } - {0}
        if wanted:
            read = self._words_of(sorted(wanted))
            found = [word or read.get(term, "") for term, word in zip(terms, found, strict=True)]
        return found

    def same_terms(self, other: Statistics) -> bool:
        """Whether both have the same document frequencies."""
        every = [np.append(each._base.terms, np.array(list(each._recent), dtype="<u4")) for each in (self, other)]
        terms = np.union1d(*every)
        return bool((self.term_counts(terms) == other.term_counts(terms)).all())

    def counts_terms(self, counts: Mapping[int, int]) -> bool:
        """Whether these are exactly the document frequencies."""
        own = np.append(self._base.terms, np.array(list(self._recent), dtype="<u4"))
        terms = np.union1d(own, np.array(list(counts), dtype="<u4"))
        return bool(self.term_counts(terms).tolist() == [counts.get(term, 0) for term in terms.tolist()])

    def snapshot(self) -> bytes:
        """The statistics as bytes, without terms that no record has any more."""
        self._fold()
        head = {
            "version": _VERSION,
            "size": self.size,
            "length": self.length,
            "kinds": {kind: count for kind, count in self.kinds.items() if count},
            "watermark": self.watermark,
            "parts": [len(self._base.terms), len(self.tokens), len(self.grams), len(self.vectors)],
        }
        parts = (
            self._base.terms.astype("<u4").tobytes(),
            self._base.counts.astype("<i4").tobytes(),
            self.tokens.astype("<i4").tobytes(),
            self.grams.astype("<i4").tobytes(),
            self.vectors.astype("<f8").tobytes(),
            "\n".join(self._base.words).encode("utf-8", "surrogatepass"),
        )
        self.saved = self.watermark
        return zlib.compress(json.dumps(head).encode() + b"\n" + b"".join(parts), 1)

    def load(self, packed: bytes) -> None:
        """Load a snapshot. Raises `DerivedError` if it is damaged, and `StoreError` if a newer version wrote it."""
        try:
            newer = self._load(packed)
        # Damaged bytes may raise anything.
        except Exception as error:
            raise DerivedError(f"the statistics cannot be read: {type(error).__name__}") from error
        # Rebuilding them would take from the newer version what it has written.
        if newer:
            raise StoreError(
                f"the statistics were written by a newer version of this package (format {newer}, this one knows "
                f"{_VERSION}): upgrade langgraph-scrum-master to open the memory"
            )

    def _load(self, packed: bytes) -> int:
        """Load a snapshot, or return its version if that is newer."""
        head, _, rest = zlib.decompress(packed).partition(b"\n")
        about: dict[str, Any] = json.loads(head)
        if (version := int(about["version"])) > _VERSION:
            return version
        terms, tokens, grams, vectors = about["parts"]
        sizes = [4 * terms, 4 * terms, 4 * tokens, 4 * grams, 8 * vectors]
        ends = np.cumsum([0, *sizes]).tolist()
        parts = [rest[start:end] for start, end in pairwise(ends)]
        # Another version of the static model has other tokens.
        if tokens == len(self.tokens):
            self.tokens = np.frombuffer(parts[2], "<i4").copy()
        if grams == len(self.grams):
            self.grams = np.frombuffer(parts[3], "<i4").copy()
        self.vectors = np.frombuffer(parts[4], "<f8")
        words = rest[ends[-1] :].decode("utf-8", "surrogatepass")
        self._base = _Base(
            np.frombuffer(parts[0], "<u4"), np.frombuffer(parts[1], "<i4"), words.split("\n") if terms else []
        )
        self.size, self.length = about["size"], about["length"]
        self.kinds = Counter(about["kinds"])
        self.watermark = self.saved = about["watermark"]
        self._recent, self._term_rows = {}, _NO_ROWS
        return 0

    def _fold(self) -> None:
        """Merge the changes into the sorted arrays."""
        if not self._recent:
            return
        changed = sorted(self._recent)
        every = np.union1d(self._base.terms, np.array(changed, dtype="<u4"))
        counts = self.term_counts(every)
        present = every[counts > 0]
        folded = _Base(present, counts[counts > 0].astype("<i4"), self.words(present.tolist()))
        self._base, self._recent, self._term_rows = folded, {}, _NO_ROWS


class _TermRows(NamedTuple):
    """A cache of the word row of each term, sorted by term."""

    vectors: WordVectors | None
    terms: Array
    rows: Array

    def rows_of(self, terms: Array) -> Array:
        """The row of each term; -1 if it is not cached."""
        if not len(self.terms):
            return np.full(len(terms), -1)
        index = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        return np.where(self.terms[index] == terms, self.rows[index], -1)

    def plus(self, terms: Array, rows: Array) -> _TermRows:
        """The cache with these terms added."""
        every = np.append(self.terms, terms)
        order = np.argsort(every)
        return _TermRows(self.vectors, every[order], np.append(self.rows, rows)[order])


_NO_ROWS = _TermRows(None, np.zeros(0, "<u4"), np.zeros(0, "int64"))


class MergedStatistics:
    """The statistics of several shelves as one corpus."""

    def __init__(self, parts: Iterable[Statistics]) -> None:
        self._parts = list(parts)
        self._size = sum(each.size for each in self._parts)

    @property
    def mean_length(self) -> float:
        """Terms per record, on average."""
        return self._mean([each.mean_length for each in self._parts])

    @property
    def mean_grams(self) -> float:
        """Occupied hash buckets per record, on average."""
        return self._mean([each.mean_grams for each in self._parts])

    @property
    def centre(self) -> Array:
        """The mean vector, shrunk towards zero by `PRIOR` empty texts."""
        added: Array = np.sum([each.vectors for each in self._parts], axis=0)
        return added / (self._size + PRIOR)

    def token_idf(self, tokens: Array) -> Array:
        """The idf of each token."""
        counts = np.sum([each.tokens[tokens] for each in self._parts], axis=0)
        return idf(counts + prior_tokens()[tokens], self._size)

    def gram_idf(self, buckets: Array) -> Array:
        """The idf of each hash bucket."""
        return idf(np.sum([each.grams[buckets] for each in self._parts], axis=0), self._size)

    def term_idf(self, terms: Array) -> Array:
        """The idf of each term."""
        return idf(np.sum([each.term_counts(terms) for each in self._parts], axis=0), self._size)

    def word_rows(self, terms: Array, vectors: WordVectors) -> Array:
        """The row in `vectors` of a word for each term, from the first shelf that has one."""
        found = self._parts[0].word_rows(terms, vectors)
        for each in self._parts[1:]:
            missing = found == vectors.unknown_row
            if missing.any():
                found[missing] = each.word_rows(terms[missing], vectors)
        return found

    def _mean(self, each: Sequence[float]) -> float:
        return sum(mean * one.size for mean, one in zip(each, self._parts, strict=True)) / max(1, self._size)
