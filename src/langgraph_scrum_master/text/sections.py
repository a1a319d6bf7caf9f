"""A document's sections, by its headings in Markdown or reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n\s*|\Z)", re.S)
"""What a Markdown file may begin with, for tools, and the blank lines below it."""

_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*")
_FENCE = re.compile(r"^\s*(```|~~~)")
_LINE = re.compile(r"([=\-~^\"'`:.#*+<>_])\1{2,}")


class Section(NamedTuple):
    """A heading and what stands below it up to the next, by its places in the text."""

    title: str
    """The headings that it stands under and its own, as in `Shop > Refunds`; nothing before the first heading."""
    start: int
    body: int
    end: int


class _Heading(NamedTuple):
    level: int
    title: str
    lines: int


def sections_of(text: str, rst: bool = False) -> list[Section]:
    """All sections; one begins where the other ends. What looks like a heading in a block of code is none."""
    found, trail = [Section("", 0, 0, 0)], list[tuple[int, str]]()
    lines = re.split(r"(?<=\n)", text)
    styles: list[str] = [] if rst else ["=", "-"]
    place, number, fenced = 0, 0, False
    while number < len(lines):
        fenced ^= bool(_FENCE.match(lines[number])) and not rst
        heading = None if fenced else _heading(lines, number, styles, rst)
        count = heading.lines if heading else 1
        end = place + sum(map(len, lines[number : number + count]))
        if heading:
            trail = [*(above for above in trail if above[0] < heading.level), (heading.level, heading.title)]
            found.append(Section(" > ".join(title for _, title in trail), place, end, end))
        else:
            found[-1] = found[-1]._replace(end=end)
        place, number = end, number + count
    return found


def _heading(lines: Sequence[str], number: int, styles: list[str], rst: bool) -> _Heading | None:
    """The heading that begins in a line: after #s, or over a line of signs, in reStructuredText also between two.

    Signs stand for a level by their place among the styles; reStructuredText counts them as they first come.
    """
    marked = None if rst else _HEADING.fullmatch(lines[number].rstrip("\n"))
    if marked:
        return _Heading(len(marked[1]), marked[2], 1)
    # Most lines are neither that nor below an empty one.
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
