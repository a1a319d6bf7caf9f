"""What the architecture demands: ADRs and constraints, from a folder of Markdown and from the state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from langgraph_scrum_master._internal.files import UnfitFileError, read_text
from langgraph_scrum_master._internal.shapes import fields_text, items_of, read, truthy
from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.retrieval.sources.scoring import Piece, scored
from langgraph_scrum_master.text.adr import Adr, parse_adr

_STATE_KEYS = ("adrs", "architecture_decisions", "tech_constraints", "constraints")
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
    adrs = ((path, _read_file(path, folder)) for path in sorted(folder.rglob("*.md")))
    return _in_force([(f"adr:{path.relative_to(folder).as_posix()}", adr) for path, adr in adrs if adr is not None])


def _read_file(path: Path, folder: Path) -> Adr | None:
    """The file's decision. None if it is too large, no regular file, a link out of the folder, or gone by now."""
    try:
        return parse_adr(read_text(path, MOST_BYTES, folder=folder, errors="replace"), path.stem)
    except (UnfitFileError, FileNotFoundError):
        return None


def _in_state(state: State) -> list[Piece]:
    entries = [(entry, key, f"{key}[{i}]") for key in _STATE_KEYS for i, entry in enumerate(_listed(state.get(key)))]
    return _in_force([_read_entry(*entry) for entry in entries])


def _listed(held: object) -> Sequence[object]:
    return items_of(held) or ([held] if truthy(held) else [])


def _read_entry(entry: object, key: str, place: str) -> tuple[str, Adr]:
    name, title = _said(entry, "id"), _said(entry, "title")
    text = entry if isinstance(entry, str) else fields_text(entry)
    adr = parse_adr(text, key.replace("_", " "))
    numbers = (parse_adr("", each).number for each in (name, _said(entry, "number"), title))
    # Constraints have numbers of their own.
    number = next(filter(None, (*numbers, adr.number)), "") if "constraint" not in key else ""
    by = _said(entry, "superseded_by")
    told = (f"superseded by {by}" if by else "", _said(entry, "status").lower(), adr.status)
    # If it is told twice, what speaks against it counts.
    statuses = [status for status in told if status]
    status = next((each for each in statuses if not replace(adr, status=each).in_force), (statuses or [""])[0])
    return f"state:{name or place}", replace(adr, title=title or adr.title, text=text, number=number, status=status)


def _said(entry: object, name: str) -> str:
    """What a field says, of a list its first; nothing if it says that there is nothing."""
    value = read(entry, name)
    value = next(iter(items_of(value)), value) if items_of(value) else value
    said = "" if value is None or isinstance(value, bool | dict | list | tuple) else str(value).strip()
    return "" if said.lower() in _NOTHING else said


_NOTHING = ("none", "null", "n/a", "na", "-", "no")


def _in_force(adrs: Sequence[tuple[str, Adr]]) -> list[Piece]:
    """The decisions to offer, and those that others took the place of: what fits one of these brings its successor."""
    numbered = {adr.number: key for key, adr in adrs if adr.number}
    return [
        Piece(
            content=adr.text,
            key=key,
            title=adr.title,
            metadata={"path": key.removeprefix("adr:"), "status": adr.status} if key.startswith("adr:") else {},
            stands_for="" if adr.in_force else numbered[adr.successor],
        )
        for key, adr in adrs
        if adr.in_force or adr.successor in numbered
    ]
