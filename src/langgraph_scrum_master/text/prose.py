"""The prose of a message, without code and quotations."""

from __future__ import annotations

import re

from langgraph_scrum_master._internal.patterns import lazy_pattern

_NOT_PROSE = (
    lazy_pattern(r"(?P<fence>```|~~~).*?(?:(?P=fence)|\Z)", re.S),
    lazy_pattern(r"`[^`\n]*`"),
    lazy_pattern(r"https?://\S+|www\.\S+"),
    lazy_pattern(r"^[ \t]*>.*$", re.M),
    lazy_pattern(r"^[ \t]*\|.*\|[ \t]*$", re.M),
    lazy_pattern(r"^Traceback \(most recent call last\):.*?(?=\n\n|\Z)", re.S | re.M),
    lazy_pattern(r"[\"“„«][^\"”“»\n]{0,400}[\"”»]"),
    lazy_pattern(r"(?<![\w'])'[^'\n]{3,200}'(?![\w'])"),
)
_SENTENCE = lazy_pattern(r"(?<=[.!?])\s+(?=[\"'(\[*_]?[A-Z0-9]|@\w)|\n+|(?<=[。？！])")
_MARKUP = lazy_pattern(r"^[\s#*\-•\d.)]+|\*{1,3}|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)")

_MAX_CHARACTERS = 12_000
"""The maximum number of characters of a message, half from its start and half from its end."""


def prose(text: str) -> str:
    """The text without code, links, quotations, tables and tracebacks. Very long texts keep their start and end."""
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[: _MAX_CHARACTERS // 2]}\n{text[-_MAX_CHARACTERS // 2 :]}"
    for pattern in _NOT_PROSE:
        text = pattern.sub(" ", text)
    return text


def sentences(text: str) -> list[str]:
    """The sentences and list items of a text, without their markup."""
    return [bare for piece in _SENTENCE.split(text) if (bare := _MARKUP.sub("", piece).strip())]
