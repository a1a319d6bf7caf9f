"""ADRs and constraints, from a folder of Markdown files and from the state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from langgraph_scrum_master._internal.files import UnfitFileError, read_text
from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.shapes import fields_text, items_of, read, truthy
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.retrieval.sources.scoring import Piece, scored
from langgraph_scrum_master.text.adr import Adr, parse_adr

_STATE_KEYS = ("adrs", "architecture_decisions", "tech_constraints", "constraints")
"""The keys of the state that have them, as texts or dicts."""

MAX_BYTES = 1_000_000
"""The maximum size of an ADR file."""


class ArchitectureSource:
    """Decisions in force. A superseded decision yields its successor; decisions never accepted are ignored."""

    name = origin = "architecture"

    def __init__(self, folder: str | None) -> None:
        self._folder = folder

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts scored by their text. Raises NotADirectoryError if the folder is missing."""
        return await scored("architecture", query, self._pieces, state)

    def _pieces(self, state: State) -> list[Piece | Exception]:
        documents = _read_folder(Path(self._folder)) if self._folder else []
        return [*documents, *_in_state(state)]


def _read_folder(folder: Path) -> list[Piece]:
    if not folder.is_dir():
        raise NotADirectoryError(f"architecture_path must be a folder of Markdown files, got {str(folder)!r}")
    adrs = ((path, _read_file(path, folder)) for path in sorted(folder.rglob("*.md")))
    return _in_force([(f"adr:{path.relative_to(folder).as_posix()}", adr) for path, adr in adrs if adr is not None])


def _read_file(path: Path, folder: Path) -> Adr | None:
    """The decision in a file. None if it is too large, not a regular file, outside the folder, or deleted."""
    try:
        return parse_adr(read_text(path, MAX_BYTES, folder=folder, errors="replace"), path.stem)
    except (UnfitFileError, FileNotFoundError):
        return None


def _in_state(state: State) -> list[Piece | Exception]:
    adrs: list[tuple[str, Adr]] = []
    problems: list[Exception] = []
    for key in _STATE_KEYS:
        for i, entry in enumerate(_as_list(state.get(key))):
            try:
                adrs.append(_read_entry(entry, key, f"{key}[{i}]"))
            # A host's own type may raise anything here.
            except BaseException as error:
                problems.append(recordable(error))
    return [*_in_force(adrs), *problems]


def _as_list(value: object) -> Sequence[object]:
    return items_of(value) or ([value] if truthy(value) else [])


def _read_entry(entry: object, key: str, location: str) -> tuple[str, Adr]:
    name, title = _field_text(entry, "id"), _field_text(entry, "title")
    text = entry if isinstance(entry, str) else fields_text(entry)
    adr = parse_adr(text, key.replace("_", " "))
    numbers = (parse_adr("", each).number for each in (name, _field_text(entry, "number"), title))
    # Constraints are numbered separately.
    number = next(filter(None, (*numbers, adr.number)), "") if "constraint" not in key else ""
    by = _field_text(entry, "superseded_by")
    candidates = (f"superseded by {by}" if by else "", _field_text(entry, "status").lower(), adr.status)
    # If statuses conflict, one that is not in force wins.
    statuses = [status for status in candidates if status]
    status = next((each for each in statuses if not replace(adr, status=each).in_force), (statuses or [""])[0])
    return f"state:{name or location}", replace(adr, title=title or adr.title, text=text, number=number, status=status)


def _field_text(entry: object, name: str) -> str:
    """The text of a field, of a list its first item; empty for placeholders such as "none"."""
    value = read(entry, name)
    value = next(iter(items_of(value)), value) if items_of(value) else value
    text = "" if value is None or isinstance(value, bool | dict | list | tuple) else str(value).strip()
    return "" if text.lower() in _PLACEHOLDERS else text


_PLACEHOLDERS = ("none", "null", "n/a", "na", "-", "no")


def _in_force(adrs: Sequence[tuple[str, Adr]]) -> list[Piece]:
    """The decisions in force, and superseded ones, which are replaced by their successor."""
    numbered = {adr.number: key for key, adr in adrs if adr.number}
    return [
        Piece(
            content=adr.text,
            key=key,
            title=adr.title,
            metadata={"path": key.removeprefix("adr:"), "status": adr.status} if key.startswith("adr:") else {},
            replaced_by="" if adr.in_force else numbered[adr.successor],
        )
        for key, adr in adrs
        if adr.in_force or adr.successor in numbered
    ]
