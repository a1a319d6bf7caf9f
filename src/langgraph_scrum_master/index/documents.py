"""Documents, cut at their headings."""

from __future__ import annotations

import re
from pathlib import Path

from langgraph_scrum_master.index.files import IndexReport, Progress, Shelf, Source, index_files, numbered
from langgraph_scrum_master.memories import Memory

SUFFIXES = (".md", ".markdown", ".rst", ".txt")

LONGEST = 2_000
"""Characters of a piece; a longer section is cut between its paragraphs."""

_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_FENCE = re.compile(r"^\s*(```|~~~)")


async def index_documents(memory: Shelf, root: str | Path, progress: Progress | None = None) -> IndexReport:
    """Keep the sections of a project's documents among its memories; only what changed is written."""
    return await index_files(memory, Path(root), SUFFIXES, _cut, "documents", progress)


def _cut(source: Source) -> list[Memory]:
    pieces = sections(source.text)
    keys = numbered(f"{source.path}#{title}" for title, _ in pieces)
    return [
        Memory(
            content=f"{title}\n{text}".strip(),
            key=key,
            session=source.path,
            metadata={"title": f"{source.path}: {title}" if title else source.path, "category": "context"},
        )
        for (title, text), key in zip(pieces, keys, strict=True)
    ]


def sections(text: str) -> list[tuple[str, str]]:
    """The pieces of a document, each with the headings it stands under."""
    trail: list[tuple[int, str]] = []
    found: list[tuple[str, list[str]]] = [("", [])]
    fenced = False
    for line in text.split("\n"):
        fenced ^= bool(_FENCE.match(line))
        heading = None if fenced else _HEADING.match(line)
        if heading:
            level = len(heading[1])
            trail = [*(above for above in trail if above[0] < level), (level, heading[2])]
            found.append((" > ".join(title for _, title in trail), []))
        else:
            found[-1][1].append(line)
    return [(title, piece) for title, lines in found for piece in _pieces("\n".join(lines).strip()) if piece or title]


def _pieces(text: str) -> list[str]:
    pieces = [""]
    for paragraph in text.split("\n\n"):
        if pieces[-1] and len(pieces[-1]) + len(paragraph) > LONGEST:
            pieces.append("")
        pieces[-1] += ("\n\n" if pieces[-1] else "") + paragraph
    return pieces
