"""Splits a turn into units: sentences, list items and JSON fields, each with its position."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_MOST = 12_000
"""Characters of a text that are read: half from its start and half from its end."""

_LONGEST = 400
"""Characters of a unit that are read, likewise."""

CODE, _NAME, QUOTE = "\u2402", "\u2403", "\u2404"
"""Placeholders for code blocks and tables, for inline code and links, and for quotations."""

_BLOCKS = re.compile(
    r"(?P<fence>```|~~~).*?(?:(?P=fence)|\Z)"
    r"|^Traceback \(most recent call last\):.*?(?=\n\n|\Z)"
    r"|^[ \t]*\|[^\n]*\|[ \t]*$",
    re.S | re.M,
)
_NAMES = re.compile(r"`[^`\n]*`|https?://\S+|www\.\S+")
_QUOTES = re.compile(
    r"^[ \t]*>[^\n]*$|[\"“„«「][^\"”“»」\n]{0,400}[\"”»」]|(?<![\w'])'[^'\n]{3,200}'(?![\w'])",
    re.M,
)
_OBJECT = re.compile(r"\s*(?:```(?:json)?\s*)?[\[{]")
_FENCED = re.compile(r"\s*```(?:json|ya?ml)\s[^`]*```\s*\Z|\s*```(?:json)?\s*[\[{]")
_FENCE = re.compile(r"\s*```\w*")
_CUT = re.compile(
    r"(?<=[.!?…])[\"')\]*_”]*\s+(?=[\"'(\[*_¿¡“]*[^\Wa-z\d_]|[-*•\d@¿¡\[(]|[\u2403\u2404])"
    r"|(?<=\?)\s+|\n+|(?:\\n)+|(?<=[。？！；।])"
)
_FIELDS = re.compile(r"\"\s*,\s*\"|\"\s*:\s*[\[{]?\s*\"?|[\[{]\s*\"|\"\s*[\]}],?|\"\s*,\s*\n")
_SPACES = re.compile(r"(?<=[\u2402\u2403\u2404]) +")
_WORDS = re.compile(r"[^\W\d_]{2}|[^\W\d_a-zA-Z]|\u2402")


class Unit(NamedTuple):
    """A sentence, a list item or a field."""

    start: int
    end: int
    text: str
    """The text, with one placeholder character for each code block, link and quotation."""


class Units(NamedTuple):
    """The units of a text, in order."""

    items: tuple[Unit, ...]
    is_object: bool
    """Whether the text is a JSON object or list."""


def split_units(text: str) -> Units:
    """The units of a text; for a very long one, those of its start and its end."""
    if len(text) > _MOST:
        first, last = _cut(text[: _MOST // 2]), _cut(text[-_MOST // 2 :])
        offset = len(text) - _MOST // 2
        moved = (Unit(unit.start + offset, unit.end + offset, unit.text) for unit in last.items)
        return Units((*first.items, *moved), first.is_object)
    return _cut(text)


def _cut(text: str) -> Units:
    is_object = bool(_OBJECT.match(text)) and '"' in text
    return Units(tuple(_units(_mask_quoted(text, is_object), is_object)), is_object)


def _mask_quoted(text: str, is_object: bool) -> str:
    """The text with code, links and quotations masked; its length does not change."""
    if "```" in text and _FENCED.match(text) and (fence := _FENCE.match(text)):
        # The whole turn is data, so it is read instead of masked.
        text = " " * fence.end() + text[fence.end() :].replace("```", "   ")
    if "```" in text or "|" in text or "~~~" in text or "Traceback" in text:
        text = _BLOCKS.sub(lambda match: _mask(match, CODE), text)
    if "`" in text or "://" in text or "www." in text:
        text = _NAMES.sub(lambda match: _mask(match, _NAME), text)
    return text if is_object else _QUOTES.sub(lambda match: _mask(match, QUOTE), text)


def _mask(match: re.Match[str], by: str) -> str:
    return by + " " * (match.end() - match.start() - 1)


def _units(text: str, is_object: bool) -> Iterator[Unit]:
    cuts = [match.span() for match in _CUT.finditer(text)]
    if is_object:
        cuts = sorted((*cuts, *(match.span() for match in _FIELDS.finditer(text))))
    at = 0
    for start, end in (*cuts, (len(text), len(text))):
        if start >= at:
            piece = text[at:start]
            if _WORDS.search(piece):
                bare = piece.strip()
                begin = at + piece.index(bare)
                yield Unit(begin, begin + len(bare), _clipped(_SPACES.sub(" ", bare)))
        at = max(at, end)


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} {text[-_LONGEST // 2 :]}"
