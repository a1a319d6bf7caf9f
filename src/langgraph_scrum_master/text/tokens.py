"""How many tokens a text has, estimated without a tokenizer.

Texts are cut as current tokenizers cut them before they look anything up (words with what stands right before them,
digits by threes, punctuation, blanks), and each piece counts about what such pieces have on average in o200k:
`benchmarks/calibrate_tokens.py` prints that.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import ceil

_PIECES = re.compile(
    r"[\t -/:-@\[-`{-~]?(?:[A-Z]*[a-z]+|[A-Z]+)"  # a word
    r"|[\t -/:-@\[-`{-~]?[^\W\d_a-zA-Z]+"  # a word in another script
    r"|\d{1,3}"
    r"| ?(?:[^\s\w]|_)+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?=\s)|\s+"
)
_SCRIPTS = (
    (0x0250, 1.0),  # Latin letters with marks, which stand alone here
    (0x0530, 0.3),  # Greek and Cyrillic
    (0x0780, 0.38),  # Hebrew and Arabic
    (0x3040, 0.6),  # scripts of India and South-East Asia, and others
    (0x3100, 0.8),  # kana
    (0xA000, 0.75),  # Han
    (0xAC00, 1.0),
    (0xD7B0, 0.75),  # Hangul
    (0x10000, 1.0),
)
"""Tokens of a letter, up to this code point."""

TOKEN_MARGIN = 1.02
"""A budget is hard: rather too many than too few."""

_RARE = 2.0
"""Tokens of a letter or sign beyond those, such as an emoji."""


def estimate_tokens(text: str) -> int:
    """About as many tokens as current tokenizers make of the text, rather more than fewer."""
    return ceil(TOKEN_MARGIN * sum(map(_tokens, _PIECES.findall(text))))


@lru_cache(maxsize=65_536)
def _tokens(piece: str) -> float:
    if piece.isdecimal() or piece.isspace():
        return 1.0
    if piece[-1].isalnum() and not piece[-1].isascii():
        return max(1.0, sum(_letter(letter) for letter in piece if not letter.isascii()))
    if not any(map(str.isalpha, piece)):
        return _signs(piece.strip())
    return _word(piece)


def _word(piece: str) -> float:
    length, capitals = len(piece), sum(map(str.isupper, piece))
    whole = 1.1 if length <= 8 else 1.35 if length <= 12 else 1.6 if length <= 15 else length / 5
    return max(whole, capitals / 3.8)


def _signs(piece: str) -> float:
    plain = sum(sign.isascii() for sign in piece)
    return max(1.0, plain / 2.4) * (plain > 0) + sum(_letter(sign) for sign in piece if not sign.isascii())


def _letter(letter: str) -> float:
    point = ord(letter)
    return next((tokens for end, tokens in _SCRIPTS if point < end), _RARE)
