"""Parses a knowledge bank: lessons in Markdown, of one project or shared by all."""

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
"""Each category has its own file. Briefings list them in this order."""

CATEGORIES: tuple[LessonCategory, ...] = get_args(LessonCategory)

Confidence: TypeAlias = Literal["high", "medium", "low"]

_Store: TypeAlias = Literal["local", "global"]
"""Whether a lesson belongs to the project or is shared by all projects."""

Warn: TypeAlias = Callable[[str], object]
"""Called with each warning."""

ENTRY_LEVEL = 3
"""The heading level of entries."""

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
    """One lesson, with its evidence."""

    name: str
    description: str
    category: LessonCategory
    source: _Store = "local"
    observation_count: int = 1
    confidence: Confidence = "medium"
    last_observed: str = ""
    """An ISO date; empty if the entry has none."""
    details: tuple[str, ...] = ()
    """The list items that are not fields."""
    position: int = 0
    """Its index in its file. Later entries are newer."""
    content_hash: str = ""
    """Its identity: entries with the same description are the same lesson."""
    score: float = 0.0
    """The score it was selected by."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", tuple(self.details))
        if not self.content_hash:
            object.__setattr__(self, "content_hash", content_hash(self.description))


def content_hash(text: str) -> str:
    """The first 16 hex digits of the SHA-256 of the text, lowercased and with single spaces."""
    return sha256(" ".join(text.lower().split()).encode(errors="surrogatepass")).hexdigest()[:16]


def read_bank(folder: Path, source: _Store, warn: Warn) -> list[Lesson]:
    """The entries of a knowledge bank's three files. Missing files are ignored."""
    entries: list[Lesson] = []
    for category in CATEGORIES:
        path = folder / f"{category}.md"
        try:
            if path.exists():
                entries += parse_entries(file_text(path, path.parent), category, source, str(path), warn)
        except (ValueError, OSError) as error:
            warn(f"{path} {error}")
    return entries


def parse_entries(text: str, category: LessonCategory, source: _Store, path: str, warn: Warn) -> list[Lesson]:
    """The entries under the third-level headings of a file. Malformed entries are skipped with a warning."""
    entries: list[Lesson] = []
    for line, title, body in _blocks(text):
        try:
            entries.append(_entry(title, body, category, source, len(entries)))
        except ValueError as error:
            warn(f"{path}:{line}: skipped, {title!r:.80} {error}")
    return entries


def deduplicate(entries: Iterable[Lesson]) -> list[Lesson]:
    """The entries without duplicates: the one with the most observations is kept, or else the first."""
    best: dict[str, Lesson] = {}
    for entry in entries:
        other = best.get(entry.content_hash)
        if other is None or entry.observation_count > other.observation_count:
            best[entry.content_hash] = entry
    return list(best.values())


def _blocks(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Each third-level heading with its line number and the lines up to the next heading of its level or above."""
    lines = _uncommented(text).split("\n")
    fences = {number for number, line in enumerate(lines, 1) if _FENCE.match(line)}
    # An unclosed fence would hide the rest of the file: then all fences are ignored.
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
    """The text without comments, with the same line numbers."""
    pieces: list[str] = []
    start = 0
    while (opened := text.find("<!--", start)) >= 0 and (closed := text.find("-->", opened)) >= 0:
        pieces += [text[start:opened], "\n" * text.count("\n", opened, closed)]
        start = closed + len("-->")
    return "".join(pieces) + text[start:]


def _heading(line: str) -> tuple[int, str]:
    """The level and the text of a heading; level 0 for other lines."""
    title = line.lstrip("#")
    return (len(line) - len(title), title.strip()) if not title or title[0].isspace() else (0, "")


def _entry(title: str, body: list[str], category: LessonCategory, source: _Store, position: int) -> Lesson:
    lines, points, fields = _split_body(body)
    description = "\n".join(lines).strip()
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


def _split_body(body: list[str]) -> tuple[list[str], list[str], dict[str, str]]:
    """The description's lines, the list items after it, and the list items that are fields."""
    description: list[str] = []
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
                description.append(line)
            elif line:
                points.append(line)
    return description, points, fields


def _count(text: str) -> int:
    match = _COUNT.match(text)
    if match is None:
        raise ValueError(f"must have a whole number as its observation count, got {text!r:.40}")
    return int(match[0])


def _confidence(text: str) -> Confidence:
    match = _WORD.match(text)
    if match is None or match[0].lower() not in _LEVELS:
        raise ValueError(f"must have a confidence of high, medium or low, got {text!r:.40}")
    return _LEVELS[match[0].lower()]


def _iso_date(text: str) -> str:
    """The date in ISO format; empty if the text is no date. Many entries name a feature instead."""
    try:
        return date.fromisoformat(text[:10]).isoformat()
    except ValueError:
        return ""
