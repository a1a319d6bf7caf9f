"""Indexes documents by section. Decision records that are not in force are stored as a note that says so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph_scrum_master.learning.indexers.files import (
    ChangedFile,
    IndexProgress,
    IndexReport,
    index_files,
    indexed_memory,
    numbered,
)
from langgraph_scrum_master.memory.records import Memory
from langgraph_scrum_master.protocols import MemoryStore
from langgraph_scrum_master.text.adr import Adr, parse_adr
from langgraph_scrum_master.text.chunks import parts
from langgraph_scrum_master.text.sections import FRONT_MATTER, sections_of

_SUFFIXES = (".md", ".markdown", ".rst", ".txt")

LONGEST = 2_000
"""The maximum number of characters per piece. Longer sections are split at a paragraph, sentence, line or word."""

ADR_FOLDERS = frozenset({"adr", "adrs", "decisions", "architecture-decisions", "architecture_decisions"})

_ADR_NAME = re.compile(r"adr[-_ ]?\d", re.I)
_ADR_NUMBER = re.compile(r"^(?:ADR)?[-_ ]?\d+\s*[.:–—-]?\s*", re.I)
_LIST = re.compile(r"(?:^|/)(?:[\w-]*requirements|constraints|CMakeLists|robots)[\w.-]*\.txt$")
"""Text files for tools, not for readers."""


async def index_documents(memory: MemoryStore, root: str | Path, progress: IndexProgress | None = None) -> IndexReport:
    """Store the sections of a project's documents as memories. Only changed sections are written."""
    return await index_files(
        indexed_memory(memory, "index_documents"), Path(root), _SUFFIXES, _cut, "documents", progress
    )


def _cut(source: ChangedFile) -> list[Memory]:
    if _LIST.search(source.path):
        return []
    adr = _adr(source)
    pieces = sections(source.text, source.path.endswith(".rst"))
    facts: dict[str, Any] = {"category": "context"}
    if adr:
        facts = {"category": "decision", "adr": f"ADR-{adr.number}", **({"status": adr.status} if adr.status else {})}
        pieces = _adr_pieces(adr, pieces)
    keys = numbered(f"{source.path}#{title}" for title, _ in pieces)
    return [
        Memory(
            content=f"{title}\n{text}".strip(),
            key=key,
            session=source.path,
            references=(f"ADR-{adr.successor}",) if adr and adr.successor else (),
            metadata={"title": f"{source.path}: {title}" if title else source.path, **facts},
        )
        for (title, text), key in zip(pieces, keys, strict=True)
    ]


def _adr(source: ChangedFile) -> Adr | None:
    """The document as a decision record, if its folder or name says so and it has a number."""
    *folders, name = source.path.lower().split("/")
    if not ADR_FOLDERS.intersection(folders) and not _ADR_NAME.match(name):
        return None
    adr = parse_adr(source.text, Path(name).stem)
    return adr if adr.number else None


def _adr_pieces(adr: Adr, pieces: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pieces of a decision in force, titled by its number; otherwise one note with its status or successor.

    A decision that is only a title is a piece of its own.
    """
    name = f"ADR-{adr.number}: {_ADR_NUMBER.sub('', adr.title)}"
    if not adr.in_force:
        status = f"superseded by ADR-{adr.successor}" if adr.successor else adr.status.split("\n")[0]
        return [(name, f"Not in force: {status}.")]
    untitled = [(title.removeprefix(adr.title), text) for title, text in pieces]
    return [(name + title, text) for title, text in untitled if title.lower() != " > status"] or [(name, "")]


def sections(text: str, rst: bool = False) -> list[tuple[str, str]]:
    """The pieces of a document, each with its headings. Sections that are only a heading are left out."""
    text = FRONT_MATTER.sub("", text)
    return [
        (section.title, piece)
        for section in sections_of(text, rst)
        for piece in parts(text[section.body : section.end], LONGEST)
        if any(map(str.isalnum, piece))
    ]
