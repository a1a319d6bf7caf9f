"""The sections of a document in Markdown or reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n\s*|\Z)", re.S)
"""The front matter of a Markdown file, with the blank lines after it."""

_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*")
_FENCE = re.compile(r"^\s*(```|~~~)")
_LINE = re.compile(r"([=\-~^\"'`:.#*+<>_])\1{2,}")


class Section(NamedTuple):
    """A heading and the text up to the next one, by offsets."""

    title: str
    """Its headings, such as `Shop > Refunds`; empty before the first heading."""
    start: int
    body: int
    end: int


class _Heading(NamedTuple):
    level: int
    title: str
    lines: int


def sections_of(text: str, rst: bool = False) -> list[Section]:
    """All sections, without gaps. Lines in code blocks are no headings."""
    sections, trail = [Section("", 0, 0, 0)], list[tuple[int, str]]()
    lines = re.split(r"(?<=\n)", text)
    styles: list[str] = [] if rst else ["=", "-"]
    start, number, fenced = 0, 0, False
    while number < len(lines):
        fenced ^= bool(_FENCE.match(lines[number])) and not rst
        heading = None if fenced else _heading(lines, number, styles, rst)
        count = heading.lines if heading else 1
        end = start + sum(map(len, lines[number : number + count]))
        if heading:
            trail = [*(above for above in trail if above[0] < heading.level), (heading.level, heading.title)]
            sections.append(Section(" > ".join(title for _, title in trail), start, end, end))
        else:
            sections[-1] = sections[-1]._replace(end=end)
        start, number = end, number + count
    return sections


def _heading(lines: Sequence[str], number: int, styles: list[str], rst: bool) -> _Heading | None:
    """The heading that starts at a line: `#` or underlined; in reStructuredText also with an overline.

    The level of an underline is its index among the styles, which reStructuredText numbers by first use.
    """
    marked = None if rst else _HEADING.fullmatch(lines[number].rstrip("\n"))
    if marked:
        return _Heading(len(marked[1]), marked[2], 1)
    # An underlined heading follows a blank line.
    if number and lines[number - 1].strip():
        return None
    over = rst and bool(_LINE.fullmatch(lines[number].rstrip()))
    title, under = [*(line.strip() for line in lines[number + over : number + over + 2]), "", ""][:2]
    style = under[:1] * (2 if over else 1)
    if not title or not _LINE.fullmatch(under) or _LINE.fullmatch(title):
        return None
    if rst and style not in styles and len(under) >= len(title):
        styles.append(style)
    if style not in styles or (rst and len(under) < len(title)):
        return None
    return _Heading(styles.index(style) + 1, title, 3 if over else 2)
