"""Near-duplicate detection with word shingles."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

from langgraph_scrum_master.text.prose import sentences
from langgraph_scrum_master.text.terms import STOP_WORDS, numbers

SHINGLE = 3
"""Words per shingle."""

_SAME = 0.9
"""The minimum share of a text's shingles that the other has, by hand."""

NEGATIONS = frozenset({"no", "not", "never", "cannot", "without", "nor", "neither", "none", "nobody", "nothing", "t"})
"""Words that reverse a statement. "don't" is tokenized into `don` and `t`."""

WORDS_PER_ERROR = 8
"""Duplicates may differ by one typo per this many words."""

MISTYPED = 5
"""The minimum length of a word for a one-letter difference to count as a typo."""

MARKS = 4
"""The number of longest words by which candidates are looked up."""

_IGNORED = STOP_WORDS - NEGATIONS

_WORDS = re.compile(r"\w+")
_NAMES = re.compile(r"(?<![.!?\n] )(?<!^)(?<![.!?\n])\b[A-Z]\w*|\b\w*(?:\d|_|[a-z][A-Z])\w*", re.M)


class CombinedTexts:
    """Texts that together may contain another one."""

    __slots__ = ("_numbers", "_sentences", "_shingles")

    def __init__(self, *texts: str) -> None:
        self._shingles: set[tuple[str, ...]] = set()
        self._numbers: set[str] = set()
        self._sentences: set[tuple[str, ...]] = set()
        for text in texts:
            self._shingles.update(_shingles(_words(text)))
            self._numbers.update(numbers(text))
            self._sentences.update(tuple(_words(sentence)) for sentence in sentences(text))

    def contain(self, text: str) -> bool:
        """Whether they contain all sentences of the text, nearly verbatim and with all numbers."""
        parts = sentences(text)
        # Very short parts such as headings count only if there is nothing else.
        checked = [part for part in parts if len(_words(part)) > SHINGLE or numbers(part)] or parts
        return all(map(self._contain_sentence, checked))

    def _contain_sentence(self, text: str) -> bool:
        words = _words(text)
        if not words:
            return True
        if not numbers(text) <= self._numbers:
            return False
        if len(words) <= SHINGLE:
            # So few words occur in longer texts by chance: they must be a sentence.
            return tuple(words) in self._sentences
        shingles = _shingles(words)
        return sum(shingle in self._shingles for shingle in shingles) >= _SAME * len(shingles)


class SaidTexts:
    """A set of texts without near-duplicates."""

    __slots__ = ("_bags", "_first", "_further", "_marked", "_texts", "_wordings", "_words")

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._words: list[list[str]] = []
        self._wordings: set[tuple[str, ...]] = set()
        # Most shingles occur in one text only, so that further ones are stored separately.
        self._first: dict[tuple[str, ...], int] = {}
        self._further: dict[tuple[str, ...], list[int]] = {}
        self._bags: list[frozenset[str]] = []
        # Texts by their longest words, most of which a near-duplicate shares.
        self._marked: dict[str, list[int]] = {}

    def add(self, text: str) -> bool:
        """Add the text unless it is a near-duplicate. Returns whether it was added."""
        words = _words(text)
        # Fast path: most duplicates are exact.
        if tuple(words) in self._wordings:
            return False
        shingles = set(_shingles(words))
        known = shingles & self._first.keys()
        bag = frozenset(words) - _IGNORED
        if self._contains(words, shingles, known) or self._has(text, bag):
            return False
        index = len(self._texts)
        self._bags.append(bag)
        for word in _marks(bag):
            self._marked.setdefault(word, []).append(index)
        self._first.update(dict.fromkeys(shingles - known, index))
        for shingle in known:
            self._further.setdefault(shingle, []).append(index)
        self._texts.append(text)
        self._words.append(words)
        self._wordings.add(tuple(words))
        return True

    def _contains(self, words: list[str], shingles: set[tuple[str, ...]], known: set[tuple[str, ...]]) -> bool:
        if not words:
            return True
        if len(words) <= SHINGLE:
            return any(words == _words(sentence) for text in self._texts for sentence in sentences(text))
        needed = _SAME * len(shingles)
        if len(known) < needed:
            return False
        shared = Counter(self._first[shingle] for shingle in known)
        shared.update(chain.from_iterable(self._further.get(shingle, ()) for shingle in known))
        return any(
            count >= needed and _adds_nothing(frozenset(words), frozenset(self._words[index]))
            for index, count in shared.items()
        )

    def _has(self, text: str, bag: frozenset[str]) -> bool:
        """Whether a text has the same words in any order, except for typos."""
        if len(bag) <= SHINGLE or not self._marked:
            return False
        candidates = {index for word in _marks(bag) for index in self._marked.get(word, ())}
        return any(
            _alike(bag, self._bags[index]) and _names(text) == _names(self._texts[index]) for index in candidates
        )


def _marks(bag: frozenset[str]) -> list[str]:
    return sorted(bag, key=lambda word: (-len(word), word))[:MARKS]


def _names(text: str) -> frozenset[str]:
    """Numbers and capitalised words. Texts that differ in one are no duplicates."""
    return frozenset(word.lower() for word in _NAMES.findall(text)) | numbers(text)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two texts have the same words, except for typos."""
    if len(one) != len(other) or len(mine := one - other) > len(one) // WORDS_PER_ERROR:
        return False
    return all(map(_mistyped, sorted(mine), sorted(other - one)))


def _mistyped(one: str, other: str) -> bool:
    """Whether two words differ by one letter or a transposition."""
    if min(len(one), len(other)) < MISTYPED or one[0] != other[0] or not (one + other).isalpha():
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    one, other = one[start:], other[start:]
    return (
        one[1:] == other[1:]
        or one[1:] == other
        or one == other[1:]
        or (one[:2] == other[1::-1] and one[2:] == other[2:])
    )


class ExactTexts:
    """A set of texts that ignores case and punctuation."""

    __slots__ = ("_texts",)

    def __init__(self, *texts: str) -> None:
        self._texts = {tuple(_words(text)) for text in texts}

    def __contains__(self, text: str) -> bool:
        return tuple(_words(text)) in self._texts


def _adds_nothing(words: frozenset[str], known: frozenset[str]) -> bool:
    """Whether only stop words are new, and the negations are the same."""
    return words - known <= STOP_WORDS - NEGATIONS and words & NEGATIONS == known & NEGATIONS


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())


def _shingles(words: list[str]) -> list[tuple[str, ...]]:
    return list(zip(*(words[i:] for i in range(SHINGLE)), strict=False))
