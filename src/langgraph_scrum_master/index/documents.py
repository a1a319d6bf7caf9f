"""Documents, cut at their headings."""

from __future__ import annotations

from pathlib import Path

from langgraph_scrum_master.index.files import IndexReport, Progress, Shelf, Source, index_files, numbered
from langgraph_scrum_master.memories import Memory
from langgraph_scrum_master.text.sections import sections_of

SUFFIXES = (".md", ".markdown", ".rst", ".txt")

LONGEST = 2_000
"""Characters of a piece; a longer section is cut between its paragraphs."""


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
    return [
        (section.title, piece)
        for section in sections_of(text)
        for piece in _pieces(text[section.body : section.end].strip())
        if piece or section.title
    ]


def _pieces(text: str) -> list[str]:
    pieces = [""]
    for paragraph in text.split("\n\n"):
        if pieces[-1] and len(pieces[-1]) + len(paragraph) > LONGEST:
            pieces.append("")
        pieces[-1] += ("\n\n" if pieces[-1] else "") + paragraph
    return pieces
