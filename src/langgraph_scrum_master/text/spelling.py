"""Words as they are compared: whatever their case, accents and width, and whatever blanks and hyphens stand between."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple
from unicodedata import normalize

from langgraph_scrum_master.text.trim import UNSPACED

_WORDS = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])[\w\u0300-\u036f])+|[^\w\s]")
_ASCII_WORDS = re.compile(r"\w+|[^\w\s]")
_NOT_SPELLED = re.compile(r"[\u0300-\u036f\ufe00-\ufe0f\u200b-\u200d\u2010-\u2015\s-]")
_APOSTROPHES = str.maketrans("’ʼ‘`", "''''")

_LONGEST = 30
"""Letters of a word that may be misspelled; what is longer is no word."""


class Word(NamedTuple):
    """A word or sign of a text, and where it stands."""

    start: int
    end: int
    folded: str


def words_in(text: str) -> list[Word]:
    """The words and signs of a text, folded, without hyphens; letters of scripts without blanks stand alone."""
    pattern = _ASCII_WORDS if text.isascii() else _WORDS
    found = (Word(*match.span(), fold(match[0])) for match in pattern.finditer(text))
    return [word for word in found if word.folded]


def spelled(text: str) -> str:
    """The words of a text on one line, between blanks: `spelled(name) in spelled(text)` finds whole words only."""
    return f" {' '.join(word.folded for word in words_in(text))} "


@lru_cache(maxsize=65_536)
def fold(word: str) -> str:
    """The word without case, accents and width."""
    plain = word.lower() if word.isascii() else normalize("NFKD", normalize("NFKD", word).casefold())
    return _NOT_SPELLED.sub("", plain.translate(_APOSTROPHES))


class Vocabulary:
    """Words that others may be misspellings of.

    They may differ in one letter from five letters on (one more, less or other, or two swapped), in two from eight on;
    of four letters, two neighbours may be swapped. The first letter must be right, unless it is one of those swapped.
    """

    def __init__(self, words: set[str]) -> None:
        self._words = words
        self._by_cut: dict[str, list[str]] = {}
        for word in sorted(words):
            for cut in _cuts(word):
                self._by_cut.setdefault(cut, []).append(word)

    def near(self, word: str) -> dict[str, int]:
        """The words that this may be meant for, with the number of edits; itself with none."""
        found = {word: 0} if word in self._words else {}
        for cut in _cuts(word):
            for other in self._by_cut.get(cut, ()):
                if other not in found and (edits := _misspelled(word, other)):
                    found[other] = edits
        return found


def _cuts(word: str) -> set[str]:
    """What is left of a word without as many letters as may be wrong: two words that are near have one in common."""
    if not word.isalpha() or len(word) > _LONGEST:
        return set()
    most = 0 if len(word) < 4 else 1 if len(word) < 8 else 2
    kept = (combinations(word, len(word) - left_out) for left_out in range(most + 1) if most)
    return {"".join(letters) for each in kept for letters in each}


def _misspelled(word: str, meant: str) -> int:
    """How many edits lead from one to the other; 0 if more than may be."""
    shorter = min(len(word), len(meant))
    edits = _edits(word, meant)
    swapped = sorted(word) == sorted(meant)
    most = 2 if shorter >= 8 else 1 if shorter >= 5 or (shorter == 4 and swapped) else 0
    begins = word[0] == meant[0] or word[:2] == meant[1::-1]
    return edits if begins and edits <= most else 0


def _edits(one: str, other: str) -> int:
    """Letters to add, leave out or change, or neighbours to swap."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
