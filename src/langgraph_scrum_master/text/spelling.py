"""Normalises words for comparison, and finds misspellings."""

from __future__ import annotations

import re
from itertools import combinations
from typing import NamedTuple
from unicodedata import normalize

from langgraph_scrum_master._internal.caches import text_cache
from langgraph_scrum_master.text.trim import UNSPACED

_WORDS = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])[\w\u0300-\u036f])+|[^\w\s]")
_ASCII_WORDS = re.compile(r"\w+|[^\w\s]")
_NOT_SPELLED = re.compile(r"[\u0300-\u036f\ufe00-\ufe0f\u200b-\u200d\u2010-\u2015\s-]")
_APOSTROPHES = str.maketrans("’ʼ‘`", "''''")

_LONGEST = 30
"""The maximum length of a word that is checked for misspellings."""


class Word(NamedTuple):
    """A word or punctuation mark, with its offsets."""

    start: int
    end: int
    folded: str


def words_in(text: str) -> list[Word]:
    """The folded words and punctuation marks of a text. In scripts without spaces, each letter is a word."""
    pattern = _ASCII_WORDS if text.isascii() else _WORDS
    words = (Word(*match.span(), fold(match[0])) for match in pattern.finditer(text))
    return [word for word in words if word.folded]


def spelled(text: str) -> str:
    """The folded words between spaces, so that `spelled(name) in spelled(text)` matches whole words only."""
    return f" {' '.join(word.folded for word in words_in(text))} "


@text_cache(500_000)
def fold(word: str) -> str:
    """The word without case, accents, hyphens and character width."""
    plain = word.lower() if word.isascii() else normalize("NFKD", normalize("NFKD", word).casefold())
    return _NOT_SPELLED.sub("", plain.translate(_APOSTROPHES))


class Vocabulary:
    """Known words, to look up misspellings in.

    One edit is allowed from five letters, two from eight, and a transposition from four. An edit inserts, deletes or
    replaces a letter, or transposes two neighbours. The first letter must match, unless it is transposed.
    """

    def __init__(self, words: set[str]) -> None:
        self._words = words
        self._by_deletion: dict[str, list[str]] = {}
        for word in sorted(words):
            for cut in _deletions(word):
                self._by_deletion.setdefault(cut, []).append(word)

    def near(self, word: str) -> dict[str, int]:
        """The known words that this may be a misspelling of, with the number of edits."""
        nearby = {word: 0} if word in self._words else {}
        for cut in _deletions(word):
            for other in self._by_deletion.get(cut, ()):
                if other not in nearby and (edits := _misspelled(word, other)):
                    nearby[other] = edits
        return nearby


def _deletions(word: str) -> set[str]:
    """The word with up to the allowed number of letters deleted. Similar words share one of these."""
    if not word.isalpha() or len(word) > _LONGEST:
        return set()
    most = 0 if len(word) < 4 else 1 if len(word) < 8 else 2
    remaining = (combinations(word, len(word) - deleted) for deleted in range(most + 1) if most)
    return {"".join(letters) for each in remaining for letters in each}


def _misspelled(word: str, meant: str) -> int:
    """The number of edits between the words; 0 if it is not allowed."""
    shorter = min(len(word), len(meant))
    edits = _edits(word, meant)
    swapped = sorted(word) == sorted(meant)
    most = 2 if shorter >= 8 else 1 if shorter >= 5 or (shorter == 4 and swapped) else 0
    begins = word[0] == meant[0] or word[:2] == meant[1::-1]
    return edits if begins and edits <= most else 0


def _edits(one: str, other: str) -> int:
    """The optimal string alignment distance."""
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
