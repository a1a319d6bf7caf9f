"""Whether one text says what another already says."""

from __future__ import annotations

import re

from langgraph_scrum_master.text.prose import sentences
from langgraph_scrum_master.text.terms import numbers

SHINGLE = 3
"""Words in a row that are compared."""

SAME = 0.9
"""The share of a text's shingles that must stand in the other."""

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


class Whole:
    """Texts that others may be, whatever their punctuation."""

    __slots__ = ("_texts",)

    def __init__(self, *texts: str) -> None:
        self._texts = {tuple(_words(text)) for text in texts}

    def __contains__(self, text: str) -> bool:
        return tuple(_words(text)) in self._texts


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())


def _shingles(words: list[str]) -> list[tuple[str, ...]]:
    return list(zip(*(words[i:] for i in range(SHINGLE)), strict=False))
