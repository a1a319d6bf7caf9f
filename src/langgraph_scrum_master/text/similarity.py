"""Whether one text says what another already says."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

from langgraph_scrum_master.text.prose import sentences
from langgraph_scrum_master.text.terms import STOP_WORDS, numbers

SHINGLE = 3
"""Words in a row that are compared."""

_SAME = 0.9
"""The share of a text's shingles that must stand in the other."""

NEGATIONS = frozenset({"no", "not", "never", "cannot", "without", "nor", "neither", "none", "nobody", "nothing", "t"})
"""Words that turn what is said round; "don't" and the like end in a `t` of their own."""

WORDS_PER_ERROR = 8
"""Of so many words one may be mistyped in a text that says the same."""

MISTYPED = 5
"""Letters from which a word that differs by one is taken to be mistyped, and not another word."""

MARKS = 4
"""The longest words of a text, by which others like it are looked for."""

_TELL_NOTHING = STOP_WORDS - NEGATIONS

_WORDS = re.compile(r"\w+")
_NAMES = re.compile(r"(?<![.!?\n] )(?<!^)(?<![.!?\n])\b[A-Z]\w*|\b\w*(?:\d|_|[a-z][A-Z])\w*", re.M)


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
        """Whether all sentences of the text are said already, nearly word for word and with all their numbers."""
        parts = sentences(text)
        # Headings and the like say nothing by themselves, unless there is nothing else.
        told = [part for part in parts if len(_words(part)) > SHINGLE or numbers(part)] or parts
        return all(map(self._says_sentence, told))

    def _says_sentence(self, text: str) -> bool:
        words = _words(text)
        if not words:
            return True
        if not numbers(text) <= self._numbers:
            return False
        if len(words) <= SHINGLE:
            # So few words stand by chance in a longer text: they must be a sentence of their own.
            return tuple(words) in self._sentences
        shingles = _shingles(words)
        return sum(shingle in self._shingles for shingle in shingles) >= _SAME * len(shingles)


class SaidTexts:
    """Texts that are kept apart: whether any single one of them says what another does."""

    __slots__ = ("_bags", "_first", "_further", "_marked", "_texts", "_wordings", "_words")

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._words: list[list[str]] = []
        self._wordings: set[tuple[str, ...]] = set()
        # By shingle the first text that has it, and further ones apart: most have only one.
        self._first: dict[tuple[str, ...], int] = {}
        self._further: dict[tuple[str, ...], list[int]] = {}
        self._bags: list[frozenset[str]] = []
        # By its longest words, of which those of another wording of the same are the same but for one or two.
        self._marked: dict[str, list[int]] = {}

    def add(self, text: str) -> bool:
        """Put the text on it, unless one that is there says it already; whether it was put there."""
        words = _words(text)
        # As most that are said twice are, and quickly told.
        if tuple(words) in self._wordings:
            return False
        shingles = set(_shingles(words))
        known = shingles & self._first.keys()
        bag = frozenset(words) - _TELL_NOTHING
        if self._says(words, shingles, known) or self._has(text, bag):
            return False
        place = len(self._texts)
        self._bags.append(bag)
        for word in _marks(bag):
            self._marked.setdefault(word, []).append(place)
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
        needed = _SAME * len(shingles)
        if len(known) < needed:
            return False
        held = Counter(self._first[shingle] for shingle in known)
        held.update(chain.from_iterable(self._further.get(shingle, ()) for shingle in known))
        return any(
            count >= needed and _adds_nothing(frozenset(words), frozenset(self._words[place]))
            for place, count in held.items()
        )

    def _has(self, text: str, bag: frozenset[str]) -> bool:
        """Whether any text has the same words in whatever order, but for typing errors."""
        if len(bag) <= SHINGLE or not self._marked:
            return False
        likely = {place for word in _marks(bag) for place in self._marked.get(word, ())}
        return any(_alike(bag, self._bags[place]) and _names(text) == _names(self._texts[place]) for place in likely)


def _marks(bag: frozenset[str]) -> list[str]:
    return sorted(bag, key=lambda word: (-len(word), word))[:MARKS]


def _names(text: str) -> frozenset[str]:
    """Numbers, and words that are written as names: two texts that differ in one say different things."""
    return frozenset(word.lower() for word in _NAMES.findall(text)) | numbers(text)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two texts have the same words, but for typing errors."""
    if len(one) != len(other) or len(mine := one - other) > len(one) // WORDS_PER_ERROR:
        return False
    return all(map(_mistyped, sorted(mine), sorted(other - one)))


def _mistyped(one: str, other: str) -> bool:
    """Whether two words differ by one letter, or by two that changed places."""
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
