"""Estimates the number of tokens without a tokenizer.

The text is pre-tokenized as by current tokenizers: words with the preceding character, groups of three digits,
punctuation, whitespace. Each piece costs about the average of such pieces in o200k, which
`benchmarks/calibrate_tokens.py` prints.
"""

from __future__ import annotations

from math import ceil

from langgraph_scrum_master._internal.caches import text_cache
from langgraph_scrum_master._internal.patterns import lazy_pattern

_PIECES = lazy_pattern(
    r"[\t -/:-@\[-`{-~]?(?:[A-Z]*[a-z]+|[A-Z]+)"  # a word
    r"|[\t -/:-@\[-`{-~]?[^\W\d_a-zA-Z]+"  # a word in another script
    r"|\d{1,3}"
    r"| ?(?:[^\s\w]|_)+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?=\s)|\s+"
)
_SCRIPTS = (
    (0x0250, 1.0),  # accented Latin letters
    (0x0530, 0.3),  # Greek and Cyrillic
    (0x0780, 0.38),  # Hebrew and Arabic
    (0x3040, 0.6),  # scripts of India and South-East Asia, and others
    (0x3100, 0.8),  # kana
    (0xA000, 0.75),  # Han
    (0xAC00, 1.0),
    (0xD7B0, 0.75),  # Hangul
    (0x10000, 1.0),
)
"""Tokens per letter, up to this code point."""

TOKEN_MARGIN = 1.02
"""A safety margin: budgets are hard limits."""

_RARE = 2.0
"""Tokens per character above, such as an emoji."""


def estimate_tokens(text: str) -> int:
    """The estimated number of tokens, rather too high than too low."""
    return ceil(TOKEN_MARGIN * sum(map(_tokens, _PIECES.findall(text))))


@text_cache(500_000)
def _tokens(piece: str) -> float:
    if piece.isdecimal() or piece.isspace():
        return 1.0
    if piece[-1].isalnum() and not piece[-1].isascii():
        return max(1.0, sum(_letter(letter) for letter in piece if not letter.isascii()))
    if not any(map(str.isalpha, piece)):
        return _punctuation(piece.strip())
    return _word(piece)


def _word(piece: str) -> float:
    length, capitals = len(piece), sum(map(str.isupper, piece))
    whole = 1.1 if length <= 8 else 1.35 if length <= 12 else 1.6 if length <= 15 else length / 5
    return max(whole, capitals / 3.8)


def _punctuation(piece: str) -> float:
    plain = sum(mark.isascii() for mark in piece)
    return max(1.0, plain / 2.4) * (plain > 0) + sum(_letter(mark) for mark in piece if not mark.isascii())


def _letter(letter: str) -> float:
    point = ord(letter)
    return next((tokens for end, tokens in _SCRIPTS if point < end), _RARE)
