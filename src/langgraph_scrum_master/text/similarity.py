"""Whether one text says what another already says."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

from langgraph_scrum_master.text.prose import sentences
from langgraph_scrum_master.text.terms import STOP_WORDS, numbers

SHINGLE = 3
"""Words in a row that are compared."""

SAME = 0.9
"""The share of a text's shingles that must stand in the other."""

NEGATIONS = frozenset({"no", "not", "never", "cannot", "without", "nor", "neither", "none", "nobody", "nothing", "t"})
"""Words that turn what is said round; "don't" and the like end in a `t` of their own."""

_WORDS = re.compile(r"\w+")


class Seen:
    """Texts against which others are compared; what they say together counts."""

    __slots__ = ("_numbers", "_sentences", "_shingles")

    def __init__(self, *said: str) -> None:
        self._shingles: set[tuple[str, ...]] = set()
        self._numbers: set[str] = set()
        self._sentences: set[tuple[str, ...]] = set()
        for text in said:
            self._shingles.update(_shingles(_words(text)))
            self._numbers.update(numbers(text))
            self._sentences.update(tuple(_words(sentence)) for sentence in sentences(text))

    def says(self, text: str) -> bool:
        """Whether the text is said already, nearly word for word and with all its numbers."""
        words = _words(text)
        if not words:
            return True
        if not numbers(text) <= self._numbers:
            return False
        if len(words) <= SHINGLE:
            # So few words stand by chance in a longer text: they must be a sentence of their own.
            return tuple(words) in self._sentences
        shingles = _shingles(words)
        return sum(shingle in self._shingles for shingle in shingles) >= SAME * len(shingles)


class Shelf:
    """Texts that are kept apart: whether any single one of them says what another does."""

    __slots__ = ("_first", "_further", "_texts", "_wordings", "_words")

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._words: list[list[str]] = []
        self._wordings: set[tuple[str, ...]] = set()
        # By shingle the first text that has it, and further ones apart: most have only one.
        self._first: dict[tuple[str, ...], int] = {}
        self._further: dict[tuple[str, ...], list[int]] = {}

    def add(self, text: str) -> bool:
        """Put the text on it, unless one that is there says it already; whether it was put there."""
        words = _words(text)
        # As most that are said twice are, and quickly told.
        if tuple(words) in self._wordings:
            return False
        shingles = set(_shingles(words))
        known = shingles & self._first.keys()
        if self._says(words, shingles, known):
            return False
        place = len(self._texts)
        self._first.update(dict.fromkeys(shingles - known, place))
        for shingle in known:
            self._further.setdefault(shingle, []).append(place)
        self._texts.append(text)
        self._words.append(words)
        self._wordings.add(tuple(words))
        return True

    def _says(self, words: list[str], shingles: set[tuple[str, ...]], known: set[tuple[str, ...]]) -> bool:
        if not words:
            return True
        if len(words) <= SHINGLE:
            return any(words == _words(sentence) for text in self._texts for sentence in sentences(text))
        needed = SAME * len(shingles)
        if len(known) < needed:
            return False
        held = Counter(self._first[shingle] for shingle in known)
        held.update(chain.from_iterable(self._further.get(shingle, ()) for shingle in known))
        return any(
            count >= needed and _adds_nothing(frozenset(words), frozenset(self._words[place]))
            for place, count in held.items()
        )


class Whole:
    """Texts that others may be, whatever their punctuation."""

    __slots__ = ("_texts",)

    def __init__(self, *texts: str) -> None:
        self._texts = {tuple(_words(text)) for text in texts}

    def __contains__(self, text: str) -> bool:
        return tuple(_words(text)) in self._texts


def _adds_nothing(said: frozenset[str], known: frozenset[str]) -> bool:
    """Whether the words are all known but for stop words, and none of those that turn a sentence round is lost."""
    return said - known <= STOP_WORDS - NEGATIONS and said & NEGATIONS == known & NEGATIONS


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())


def _shingles(words: list[str]) -> list[tuple[str, ...]]:
    return list(zip(*(words[i:] for i in range(SHINGLE)), strict=False))
