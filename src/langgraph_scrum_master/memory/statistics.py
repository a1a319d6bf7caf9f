"""Corpus statistics of a shelf: document frequencies of terms, tokens and character n-grams, and the mean vector.

They are derived from the records. A snapshot of them is saved now and then; records that were written since are
counted when the snapshot is loaded, so that a write does not have to rewrite the counts.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from langgraph_scrum_master.memory.database import Counted, DerivedError
from langgraph_scrum_master.memory.records import SEARCHED
from langgraph_scrum_master.rank.corpus import PRIOR, CorpusCounts, idf, prior_tokens
from langgraph_scrum_master.rank.features import Array, column, heads, lengths
from langgraph_scrum_master.rank.word_vectors import WordVectors

SAVED_EVERY = 2_048
"""Records after which the statistics are saved again. By hand: more make opening slower, fewer make writing slower."""

_VERSION = 1

Words = Callable[[Sequence[int]], Mapping[int, str]]
"""Reads the texts of records, by their ids, and gives the words in them by their term."""


class _Recent(NamedTuple):
    """A term whose count has changed since the snapshot."""

    change: int
    record: int
    """A record that has the term, whose text tells the word; 0 if none has."""


_UNCHANGED = _Recent(0, 0)


class _Base(NamedTuple):
    """The terms of the snapshot in ascending order, with their counts and words."""

    terms: Array
    counts: Array
    words: list[str]

    def counts_of(self, terms: Array) -> Array:
        """The count of each term, 0 if it is not there."""
        places = self._places(terms)
        return np.where(places >= 0, self.counts[places], 0) if len(self.counts) else np.zeros(len(terms), "<i4")

    def words_of(self, terms: Sequence[int]) -> list[str]:
        """The word of each term, an empty text if it is not there."""
        places = self._places(np.array(terms, dtype="<u4")).tolist()
        return [self.words[place] if place >= 0 else "" for place in places]

    def _places(self, terms: Array) -> Array:
        if not len(self.terms):
            return np.full(len(terms), -1)
        place = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        return np.where(self.terms[place] == terms, place, -1)


class Statistics(CorpusCounts):
    """The statistics of one shelf, kept up to date record by record."""

    def __init__(self, words: Words) -> None:
        super().__init__()
        self.kinds: Counter[str] = Counter()
        self.watermark = 0
        """The id of the last record that is counted."""
        self.saved = 0
        """The id of the last record that is counted in the saved snapshot."""
        self._words_of = words
        self._base = _Base(np.zeros(0, "<u4"), np.zeros(0, "<i4"), [])
        self._recent: dict[int, _Recent] = {}
        self._term_rows = _NO_ROWS

    def count_records(self, records: Sequence[Counted], times: int = 1) -> None:
        """Count records, or with `times=-1` no longer count them."""
        for kind, many in Counter(record.kind for record in records).items():
            self.kinds[kind] += times * many
        if times > 0:
            self.watermark = max(self.watermark, *(record.id for record in records))
        # Relationships are not searched: their words must not make other words less rare.
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
        """The number of records that have each term."""
        found, recent = self._base.counts_of(terms), self._recent
        if recent:
            found = found + [recent.get(term, _UNCHANGED).change for term in terms.tolist()]
        return found

    def term_idf(self, terms: Array) -> Array:
        """The inverse document frequency of each term."""
        return idf(self.term_counts(terms), self.size)

    def word_rows(self, terms: Array, known: WordVectors) -> Array:
        """The row of each term's word in `known`."""
        # In a variable: another thread may count a record meanwhile.
        rows = self._term_rows if self._term_rows.known is known else _NO_ROWS._replace(known=known)
        numbers = rows.numbers(terms)
        if (numbers < 0).any():
            missing = np.unique(terms[numbers < 0])
            self._term_rows = rows = rows.plus(missing, np.array(known.rows(self.words(missing.tolist()))))
            numbers = rows.numbers(terms)
        return numbers

    def words(self, terms: Sequence[int]) -> list[str]:
        """A word for each term; an empty text for a term that no record has."""
        found, recent = self._base.words_of(terms), self._recent
        wanted = {
            recent[term].record for term, word in zip(terms, found, strict=True) if not word and term in recent
        } - {0}
        if wanted:
            read = self._words_of(sorted(wanted))
            found = [word or read.get(term, "") for term, word in zip(terms, found, strict=True)]
        return found

    def same_terms(self, other: Statistics) -> bool:
        """Whether the other counts the same terms as often."""
        every = [np.append(each._base.terms, np.array(list(each._recent), dtype="<u4")) for each in (self, other)]
        terms = np.union1d(*every)
        return bool((self.term_counts(terms) == other.term_counts(terms)).all())

    def counts_terms(self, counts: Mapping[int, int]) -> bool:
        """Whether exactly these terms are counted, each so often."""
        own = np.append(self._base.terms, np.array(list(self._recent), dtype="<u4"))
        terms = np.union1d(own, np.array(list(counts), dtype="<u4"))
        return bool(self.term_counts(terms).tolist() == [counts.get(term, 0) for term in terms.tolist()])

    def snapshot(self) -> bytes:
        """All of it as bytes. Terms that no record has any more, and their words, are left out."""
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
        """Take over what `snapshot` gave."""
        try:
            self._load(packed)
        # Whatever is wrong with the bytes.
        except Exception as error:
            raise DerivedError(f"the statistics cannot be read: {type(error).__name__}") from error

    def _load(self, packed: bytes) -> None:
        head, _, rest = zlib.decompress(packed).partition(b"\n")
        about: dict[str, Any] = json.loads(head)
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

    def _fold(self) -> None:
        """Make what has changed a part of the sorted arrays."""
        if not self._recent:
            return
        changed = sorted(self._recent)
        every = np.union1d(self._base.terms, np.array(changed, dtype="<u4"))
        counts = self.term_counts(every)
        kept = every[counts > 0]
        folded = _Base(kept, counts[counts > 0].astype("<i4"), self.words(kept.tolist()))
        self._base, self._recent, self._term_rows = folded, {}, _NO_ROWS


class _TermRows(NamedTuple):
    """Terms whose words were looked up, in order, and the rows of these words."""

    known: WordVectors | None
    terms: Array
    rows: Array

    def numbers(self, terms: Array) -> Array:
        """The row of each term; -1 if it was not looked up."""
        if not len(self.terms):
            return np.full(len(terms), -1)
        place = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        return np.where(self.terms[place] == terms, self.rows[place], -1)

    def plus(self, terms: Array, rows: Array) -> _TermRows:
        """With these as well."""
        every = np.append(self.terms, terms)
        order = np.argsort(every)
        return _TermRows(self.known, every[order], np.append(self.rows, rows)[order])


_NO_ROWS = _TermRows(None, np.zeros(0, "<u4"), np.zeros(0, "int64"))


class MergedStatistics:
    """The statistics of several shelves as one corpus."""

    def __init__(self, several: Iterable[Statistics]) -> None:
        self._several = list(several)
        self._size = sum(each.size for each in self._several)

    @property
    def mean_length(self) -> float:
        """Terms of a record, on average."""
        return self._mean([each.mean_length for each in self._several])

    @property
    def mean_grams(self) -> float:
        """Hash buckets of character n-grams that a record fills, on average."""
        return self._mean([each.mean_grams for each in self._several])

    @property
    def centre(self) -> Array:
        """The mean vector, shrunk towards zero where there are few records."""
        added: Array = np.sum([each.vectors for each in self._several], axis=0)
        return added / (self._size + PRIOR)

    def token_idf(self, tokens: Array) -> Array:
        """The inverse document frequency of each token."""
        counts = np.sum([each.tokens[tokens] for each in self._several], axis=0)
        return idf(counts + prior_tokens()[tokens], self._size)

    def gram_idf(self, places: Array) -> Array:
        """The inverse document frequency of each hash bucket."""
        return idf(np.sum([each.grams[places] for each in self._several], axis=0), self._size)

    def term_idf(self, terms: Array) -> Array:
        """The inverse document frequency of each term."""
        return idf(np.sum([each.term_counts(terms) for each in self._several], axis=0), self._size)

    def word_rows(self, terms: Array, known: WordVectors) -> Array:
        """The row of each term's word in `known`, from the first shelf that has one."""
        found = self._several[0].word_rows(terms, known)
        for each in self._several[1:]:
            missing = found == known.unknown_row
            if missing.any():
                found[missing] = each.word_rows(terms[missing], known)
        return found

    def _mean(self, each: Sequence[float]) -> float:
        return sum(mean * one.size for mean, one in zip(each, self._several, strict=True)) / max(1, self._size)
