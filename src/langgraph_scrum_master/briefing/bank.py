"""What a knowledge bank holds: lessons in Markdown, of a project and of all projects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.shapes import file_text

LessonCategory: TypeAlias = Literal["anti-patterns", "patterns", "heuristics"]
"""A knowledge bank has a file for each, in this order."""

CATEGORIES: tuple[LessonCategory, ...] = get_args(LessonCategory)

Confidence: TypeAlias = Literal["high", "medium", "low"]

_Store: TypeAlias = Literal["local", "global"]
"""Whether a lesson is the project's own or belongs to all projects."""

Warn: TypeAlias = Callable[[str], object]
"""Is told what is not as it should be; whatever is told, the rest goes on."""

ENTRY_LEVEL = 3
"""Of the headings that entries stand under."""

_FENCE = re.compile(r"\s*(```|~~~)")
_KIND = re.compile(r"\A(?:anti-pattern|pattern|heuristic)\s*:\s*", re.I)
_POINT = re.compile(r"[-*]\s+(.*)")
_FIELD = re.compile(r"\**(observation count|confidence|last observed)\**\s*:\**\s*(.*)", re.I)
_RULE = re.compile(r"-{3,}|\*{3,}")
_COUNT = re.compile(r"\d{1,9}\b")
_WORD = re.compile(r"\w*")
_LEVELS: dict[str, Confidence] = {level: level for level in get_args(Confidence)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson(Plain):
    """One lesson, and how well it is founded."""

    name: str
    description: str
    category: LessonCategory
    source: _Store = "local"
    observation_count: int = 1
    confidence: Confidence = "medium"
    last_observed: str = ""
    """An ISO date; empty where the entry tells none."""
    details: tuple[str, ...] = ()
    """What else it says, point by point."""
    position: int = 0
    """Its place in its file: later ones were written later."""
    content_hash: str = ""
    """What it is known by: the same description is the same lesson, whatever its name."""
    score: float = 0.0
    """What it was chosen by."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", tuple(self.details))
        if not self.content_hash:
            object.__setattr__(self, "content_hash", content_hash(self.description))


def content_hash(text: str) -> str:
    """The first 16 hex digits of the SHA-256 of a text in lower case, with single blanks."""
    return sha256(" ".join(text.lower().split()).encode(errors="surrogatepass")).hexdigest()[:16]


def read_bank(folder: Path, source: _Store, warn: Warn) -> list[Lesson]:
    """All entries of a knowledge bank's three files; files that are not there have none."""
    entries: list[Lesson] = []
    for category in CATEGORIES:
        path = folder / f"{category}.md"
        try:
            if path.exists():
                entries += parse_entries(file_text(path), category, source, str(path), warn)
        except (ValueError, OSError) as error:
            warn(f"{path} {error}")
    return entries


def parse_entries(text: str, category: LessonCategory, source: _Store, path: str, warn: Warn) -> list[Lesson]:
    """The entries under the third-level headings of a file; one that is malformed is left out, and its line told."""
    entries: list[Lesson] = []
    for line, title, body in _blocks(text):
        try:
            entries.append(_entry(title, body, category, source, len(entries)))
        except ValueError as error:
            warn(f"{path}:{line}: left out, {title!r:.80} {error}")
    return entries


def deduplicate(entries: Iterable[Lesson]) -> list[Lesson]:
    """The entries, of those that say the same the one with more observations; the first, if they have as many."""
    kept: dict[str, Lesson] = {}
    for entry in entries:
        known = kept.get(entry.content_hash)
        if known is None or entry.observation_count > known.observation_count:
            kept[entry.content_hash] = entry
    return list(kept.values())


def _blocks(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Each third-level heading with its line and the lines below it, up to the next heading of that level or above."""
    lines = _uncommented(text).split("\n")
    fences = {number for number, line in enumerate(lines, 1) if _FENCE.match(line)}
    # Where a fence is not closed, none counts: it must not hide all that follows.
    fences = fences if len(fences) % 2 == 0 else set()
    block: tuple[int, str, list[str]] | None = None
    fenced = False
    for number, line in enumerate(lines, 1):
        fenced ^= number in fences
        level, title = _heading(line) if line.startswith("#") and not fenced else (0, "")
        if not 1 <= level <= ENTRY_LEVEL:
            if block is not None:
                block[2].append(line)
            continue
        if block is not None:
            yield block
        block = (number, title, []) if level == ENTRY_LEVEL else None
    if block is not None:
        yield block


def _uncommented(text: str) -> str:
    """The text without comments, and with as many lines as before."""
    pieces: list[str] = []
    start = 0
    while (opened := text.find("<!--", start)) >= 0 and (closed := text.find("-->", opened)) >= 0:
        pieces += [text[start:opened], "\n" * text.count("\n", opened, closed)]
        start = closed + len("-->")
    return "".join(pieces) + text[start:]


def _heading(line: str) -> tuple[int, str]:
    """The level and the text of a heading; level 0 if the line is none."""
    title = line.lstrip("#")
    return (len(line) - len(title), title.strip()) if not title or title[0].isspace() else (0, "")


def _entry(title: str, body: list[str], category: LessonCategory, source: _Store, position: int) -> Lesson:
    said, points, fields = _sorted_out(body)
    description = "\n".join(said).strip()
    name = _KIND.sub("", title, count=1).strip()
    if not name:
        raise ValueError("has no name")
    if not description and not points:
        raise ValueError("has no description")
    return Lesson(
        name=name,
        description=description or "\n".join(points),
        category=category,
        source=source,
        observation_count=_count(fields.get("observation count", "1")),
        confidence=_confidence(fields.get("confidence", "medium")),
        last_observed=_iso_date(fields.get("last observed", "")),
        details=tuple(points) if description else (),
        position=position,
    )


def _sorted_out(body: list[str]) -> tuple[list[str], list[str], dict[str, str]]:
    """The lines of an entry's description, its points from the first one on, and those of them that are fields."""
    said: list[str] = []
    points: list[str] = []
    fields: dict[str, str] = {}
    for line in map(str.strip, body):
        if point := _POINT.fullmatch(line):
            if field := _FIELD.fullmatch(point[1]):
                fields[field[1].lower()] = field[2]
            else:
                points.append(point[1])
        elif not _RULE.fullmatch(line):
            if not points and not fields:
                said.append(line)
            elif line:
                points.append(line)
    return said, points, fields


def _count(text: str) -> int:
    found = _COUNT.match(text)
    if found is None:
        raise ValueError(f"must have a whole number as observation count, got {text!r:.40}")
    return int(found[0])


def _confidence(text: str) -> Confidence:
    found = _WORD.match(text)
    if found is None or found[0].lower() not in _LEVELS:
        raise ValueError(f"must have a confidence of high, medium or low, got {text!r:.40}")
    return _LEVELS[found[0].lower()]


def _iso_date(text: str) -> str:
    """The date, if it is one: many entries name the work that they were seen in instead."""
    try:
        return date.fromisoformat(text[:10]).isoformat()
    except ValueError:
        return ""
