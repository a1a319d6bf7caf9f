"""Reads labelled turns, the training data of the asking model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph_scrum_master._internal.files import LARGEST_RECORDING, read_text
from langgraph_scrum_master.errors import ConfigError

_ASKING = frozenset(("info", "choice", "blocked"))
"""Kinds of groups in a text file whose turns ask."""

_MARKED = re.compile("⟦([^⟦⟧]*)⟧")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTurn:
    """A turn, whether it asks, and where if that is known."""

    text: str
    asks: bool
    spans: tuple[tuple[int, int], ...] | None = None
    kind: str = ""
    language: str = ""
    origin: str = ""
    """The file."""


def read_labelled_turns(path: Path) -> list[LabelledTurn]:
    """The turns in a file: JSON Lines with `content` and `label`, or text in groups.

    In JSON Lines, `label` is 1 or 0 (or true or false), rows with a true `borderline` are ignored, and `spans` may list
    the asking parts as pairs of start and end. A text file has groups that start with `%% LANGUAGE KIND`, one turn per
    line, `\\n` for a line break, and ⟦…⟧ around the asking parts.
    """
    try:
        content = read_text(path, LARGEST_RECORDING)
    except FileNotFoundError:
        raise ConfigError(f"there is no file {str(path)!r} of labelled turns") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read as UTF-8 text: {error}") from None
    read = _groups if content.lstrip().startswith("%%") else _rows
    return list(read(content, path))


def _groups(content: str, path: Path) -> Iterator[LabelledTurn]:
    language = kind = ""
    for line in content.split("\n"):
        if line.startswith("%%"):
            language, kind = (*line[2:].split(), "", "")[:2]
        elif line.strip():
            text, spans = _unmarked(line.replace("\\n", "\n"))
            asks = kind in _ASKING
            where = (spans or ((0, len(text)),)) if asks else ()
            yield LabelledTurn(text=text, asks=asks, spans=where, kind=kind, language=language, origin=path.name)


def _unmarked(line: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    text, spans, at = "", [], 0
    for marked in _MARKED.finditer(line):
        text += line[at : marked.start()]
        spans.append((len(text), len(text) + len(marked[1])))
        text, at = text + marked[1], marked.end()
    return text + line[at:], tuple(spans)


def _rows(content: str, path: Path) -> Iterator[LabelledTurn]:
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        where = f"line {number} of {str(path)!r}"
        try:
            row: Any = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"{where} is not JSON: {error}") from None
        if not isinstance(row, dict) or not isinstance(row.get("content"), str) or row.get("label") not in (0, 1):
            raise ConfigError(
                f"{where} must be an object with `content`, a text, and `label`, 1 or 0, got {line[:200]!r}"
            )
        if not row.get("borderline"):
            spans = _spans(row.get("spans"), where) if row["label"] else ()
            yield LabelledTurn(
                text=row["content"],
                asks=bool(row["label"]),
                spans=spans,
                kind=str(row.get("type") or ""),
                language=str(row.get("lang") or ""),
                origin=str(row.get("system") or path.name),
            )


def _spans(given: Any, where: str) -> tuple[tuple[int, int], ...] | None:
    if given is None:
        return None
    try:
        return tuple((int(start), int(end)) for start, end in given)
    except (TypeError, ValueError):
        raise ConfigError(f"`spans` in {where} must be a list of [start, end], got {given!r}") from None
