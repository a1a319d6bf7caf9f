"""Documents and their pieces, as they are kept and found again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.shapes import dict_of, text_of
from langgraph_scrum_master.dialogue.model import KnowledgeChunk
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.memory.records import Memory, MemoryResult
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import TokenCounter
from langgraph_scrum_master.text.chunks import chunks
from langgraph_scrum_master.text.sanitize import as_data, one_line

_RULE = re.compile(r"^[ \t]*-{3,}[ \t]*$", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Plain):
    """A text to look things up in."""

    title: str
    text: str
    url: str = ""
    date: str = ""
    """A day or a time, as ISO 8601: the newer, the more its pieces count."""
    doc_type: str = "document"
    """Such as email, page or ticket."""
    id: str = ""
    """Made from title, address and text if there is none. Give one to documents that change."""

    def __post_init__(self) -> None:
        for name in ("title", "text"):
            given: object = getattr(self, name)
            if not isinstance(given, str) or not given.strip():
                raise ConfigError(f"a document's {name} must be a text that is not empty, got {given!r:.80}")
        object.__setattr__(self, "date", _dated(self.date))
        if not self.id:
            object.__setattr__(self, "id", f"document:{digest(self.title, self.url, self.text)}")

    def kept(self, size: int, overlap: int, count: TokenCounter) -> Iterator[Memory]:
        """Its pieces as they are kept: found by their title and headings too, beside each other in their order."""
        about = {"title": self.title, "url": self.url, "date": self.date, "doc_type": self.doc_type}
        for i, (section, start, end) in enumerate(chunks(self.text, size, overlap, count)):
            heading = section if section.startswith(self.title) else " > ".join(filter(None, (self.title, section)))
            yield Memory(
                content=f"{' '.join(heading.split())}\n{self.text[start:end]}",
                key=chunk_id(self.id, i),
                session=self.id,
                created_at=self.date,
                metadata={"chunk": {**about, "doc_id": self.id, "section": section, "start": start, "end": end}},
            )


def chunk_id(doc_id: str, index: int) -> str:
    """What a piece is known by."""
    return f"{doc_id}#{index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult(Plain):
    """A piece of a document that was found."""

    chunk_id: str
    doc_id: str
    title: str
    content: str
    score: float
    """What it is ordered by: the calibrated relevance, and what is added for being new and for naming entities."""
    url: str = ""
    date: str = ""
    doc_type: str = ""
    section: str = ""

    @classmethod
    def read(cls, result: MemoryResult) -> SearchResult:
        """What a memory keeps; what somebody else put there is a document of its own."""
        told = dict_of(result.metadata.get("chunk"))
        about = {name: text_of(told.get(name)) for name in ("title", "url", "date", "doc_type", "section", "doc_id")}
        content = result.content.partition("\n")[2] if told else result.content
        known = {**about, "title": about["title"] or result.key, "doc_id": about["doc_id"] or result.key}
        return cls(chunk_id=result.key, content=content, score=result.score, **known)

    def chunk(self) -> KnowledgeChunk:
        """As it is given to a prompt."""
        return KnowledgeChunk(
            chunk_id=self.chunk_id,
            doc_id=self.doc_id,
            title=self.title,
            content=self.content,
            relevance=max(0.0, min(1.0, self.score)),
            date=self.date,
            url=self.url,
            doc_type=self.doc_type,
            formatted=format_chunk(self.content, self.title, self.date),
        )


def format_chunk(content: str, title: str, date: str = "") -> str:
    """A piece as data below its source."""
    header = f"Source: {one_line(title)}" + (f" ({date[:10]})" if date else "")
    # A rule in the text would look like its end; this one means the same.
    return "\n".join((header, "---", _RULE.sub("***", as_data(content)), "---"))


def _dated(given: object) -> str:
    if isinstance(given, date):
        return given.isoformat()
    try:
        told = datetime.fromisoformat(given) if given else None  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ConfigError(f"a document's date must be ISO 8601 such as 2026-03-02, got {given!r}") from None
    return (
        "" if told is None else told.isoformat() if ":" in str(given) or "T" in str(given) else told.date().isoformat()
    )
