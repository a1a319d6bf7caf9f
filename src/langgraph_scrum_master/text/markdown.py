"""Texts of others within Markdown, so that they cannot form headings or end a block."""

from __future__ import annotations

import re

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master.text.sanitize import one_line

_HEADING_TAG = lazy_pattern(r"<(?=/?h[1-6]\b)", re.I)
_BLOCK = lazy_pattern(
    r"(?P<number>\d{1,9}(?=[.)](?:\s|\Z)))"
    r"|(?=[#>]|[-+*](?:\s|\Z)|=+\s*\Z|-+\s*\Z|(?:[*_]\s*+){3,}\Z|`{3}|~{3}|<[A-Za-z/!?]|\[[^\]\n]{1,200}\]:)"
)
_BACKTICKS = lazy_pattern("`+")


def inline(text: str) -> str:
    """The text as data within a line."""
    return _HEADING_TAG.sub(r"\\<", one_line(text))


def line_start(text: str) -> str:
    """The text as data at the start of a line, with what would start a block escaped."""
    line = inline(text)
    match = _BLOCK.match(line)
    if match is None:
        return line
    number = match["number"] or ""
    return rf"{number}\{line[len(number) :]}"


def code_span(text: str) -> str:
    """The text as code within a line. Markdown has no escape for backticks in code."""
    plain = one_line(text).replace("`", "'")
    return f"`{plain}`"


def code_block(text: str, language: str) -> str:
    """The lines between fences that are longer than any in them. The text must be escaped as data."""
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}{one_line(language).replace('`', '')}\n{text}\n{fence}"
