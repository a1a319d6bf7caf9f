"""Truncates texts at sentence or word boundaries."""

from __future__ import annotations

import re
from collections.abc import Callable

ELLIPSIS = " …"

UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""A character class of scripts without spaces, which can be cut after any letter."""

SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n{2,}")
WORD_END = re.compile(rf"\s+|(?<=[{UNSPACED}])")

LONGEST_WORD = 60
"""Longer runs of characters are no words, and may be cut anywhere."""


def trim(text: str, fits: Callable[[str], bool], ellipsis: str = ELLIPSIS) -> str:
    """The longest prefix that fits, cut at a sentence if that is at least half as long, else at a word.

    A cut text ends in an ellipsis. The result is empty if not even one word fits; only overlong words are cut anywhere.
    `fits` must be monotonic: if it holds for a text, it holds for its prefixes.
    """
    if fits(text):
        return text
    by_word = _longest(text, _cuts(WORD_END, text), fits, ellipsis)
    by_sentence = _longest(text, _cuts(SENTENCE_END, text), fits, ellipsis)
    if not by_word and len(text.split(maxsplit=1)[0] if text.strip() else "") > LONGEST_WORD:
        return _longest(text, list(range(1, len(text))), fits, ellipsis)
    return by_sentence if len(by_sentence) * 2 >= len(by_word) else by_word


def _cuts(boundary: re.Pattern[str], text: str) -> list[int]:
    return [match.start() for match in boundary.finditer(text)]


def _longest(text: str, cuts: list[int], fits: Callable[[str], bool], ellipsis: str) -> str:
    low, high = 0, len(cuts)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(text[: cuts[middle - 1]] + ellipsis):
            low = middle
        else:
            high = middle - 1
    prefix = text[: cuts[low - 1]].rstrip() if low else ""
    return prefix + ellipsis if prefix else ""
