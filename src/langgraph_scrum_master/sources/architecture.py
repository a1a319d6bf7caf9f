"""What the architecture demands: ADRs and constraints, from a folder of Markdown and from the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from langgraph_scrum_master.blocking import off_loop
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.shapes import fields_text, items_of, read, text_of
from langgraph_scrum_master.sources.scoring import Piece, scored
from langgraph_scrum_master.text.adr import Adr, parse_adr

STATE_KEYS = ("adrs", "architecture_decisions", "tech_constraints", "constraints")
"""Where a state holds them, as texts or as dicts."""

MOST_BYTES = 1_000_000
"""A larger file is no ADR."""


class ArchitectureSource:
    """Decisions in force: of one that was superseded its successor is offered, what was never accepted is left out."""

    name = "architecture"

    def __init__(self, folder: str | None) -> None:
        self._folder = folder

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts scored by their own words; a folder that is not there raises."""
        written = await off_loop(_read_folder, Path(self._folder)) if self._folder else []
        return await scored("architecture", query, [*written, *_in_state(state)])


def _read_folder(folder: Path) -> list[Piece]:
    if not folder.is_dir():
        raise NotADirectoryError(f"architecture_path must be a folder of Markdown files, got {str(folder)!r}")
    read_in = {
        f"adr:{path.relative_to(folder).as_posix()}": _read_file(path)
        for path in sorted(folder.rglob("*.md"))
        if path.stat().st_size <= MOST_BYTES
    }
    numbered = {adr.number: key for key, adr in read_in.items() if adr.number}
    return [
        Piece(
            content=adr.text,
            key=key,
            title=adr.title,
            metadata={"path": key.removeprefix("adr:"), "status": adr.status},
            stands_for="" if adr.in_force else numbered[adr.successor],
        )
        for key, adr in read_in.items()
        if adr.in_force or adr.successor in numbered
    ]


def _read_file(path: Path) -> Adr:
    return parse_adr(path.read_text(encoding="utf-8", errors="replace"), path.stem)


def _in_state(state: State) -> Iterator[Piece]:
    for key in STATE_KEYS:
        held = state.get(key)
        for i, entry in enumerate(items_of(held) or ([held] if held else [])):
            status = text_of(read(entry, "status"))
            text = entry if isinstance(entry, str) else fields_text(entry)
            adr = parse_adr(text, key.replace("_", " "))
            if adr.in_force and parse_adr(f"Status: {status}", "").in_force:
                name = text_of(read(entry, "id")) or f"{key}[{i}]"
                yield Piece(content=text, key=f"state:{name}", title=text_of(read(entry, "title")) or adr.title)
