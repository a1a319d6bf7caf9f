"""A document's sections, by its Markdown headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_FENCE = re.compile(r"^\s*(```|~~~)")


class Section(NamedTuple):
    """A heading and what stands below it up to the next, by its places in the text."""

    title: str
    """The headings that it stands under and its own, as in `Shop > Refunds`; nothing before the first heading."""
    start: int
    body: int
    end: int


def sections_of(text: str) -> list[Section]:
    """All sections; one begins where the other ends. What looks like a heading in a block of code is none."""
    found, trail = [Section("", 0, 0, 0)], list[tuple[int, str]]()
    for line, at, heading in _lines(text):
        end = at + len(line)
        if heading:
            level = len(heading[1])
            trail = [*(above for above in trail if above[0] < level), (level, heading[2])]
            found.append(Section(" > ".join(title for _, title in trail), at, end, end))
        else:
            found[-1] = found[-1]._replace(end=end)
    return found


def _lines(text: str) -> Iterator[tuple[str, int, re.Match[str] | None]]:
    """Each line with its end, its place, and the heading that it is."""
    at, fenced = 0, False
    for line in re.split(r"(?<=\n)", text):
        fenced ^= bool(_FENCE.match(line))
        yield line, at, None if fenced else _HEADING.match(line.removesuffix("\n"))
        at += len(line)
