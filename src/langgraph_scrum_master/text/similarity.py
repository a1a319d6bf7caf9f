"""Whether one text says what another already says."""

from __future__ import annotations

import re

from langgraph_scrum_master.text.terms import numbers

SHINGLE = 3
"""Words in a row that are compared."""

SAME = 0.9
"""The share of a text's shingles that must stand in the other."""

_WORDS = re.compile(r"\w+")


class Seen:
    """Texts against which others are compared; what they say together counts."""

    __slots__ = ("_numbers", "_shingles", "_words")

    def __init__(self) -> None:
        self._shingles: set[tuple[str, ...]] = set()
        self._numbers: set[str] = set()
        self._words: set[str] = set()

    def add(self, text: str) -> None:
        """Remember what the text says."""
        words = _words(text)
        self._shingles.update(_shingles(words))
        self._numbers.update(numbers(text))
        self._words.update(words)

    def says(self, text: str) -> bool:
        """Whether the text is said already, nearly word for word and with all its numbers."""
        words = _words(text)
        if not words:
            return True
        if not numbers(text) <= self._numbers:
            return False
        if len(words) < SHINGLE:
            return self._words.issuperset(words)
        shingles = _shingles(words)
        return sum(shingle in self._shingles for shingle in shingles) >= SAME * len(shingles)


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())


def _shingles(words: list[str]) -> list[tuple[str, ...]]:
    return list(zip(*(words[i:] for i in range(SHINGLE)), strict=False))
