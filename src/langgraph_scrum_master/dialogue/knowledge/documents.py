"""Documents, their chunks and search results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.shapes import dict_of, text_of
from langgraph_scrum_master.dialogue.model import KnowledgeChunk
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.memory.records import Memory, MemoryResult
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import TokenCounter
from langgraph_scrum_master.text.chunks import chunks
from langgraph_scrum_master.text.sanitize import as_data, one_line

_HORIZONTAL_RULE = lazy_pattern(r"^[ \t]*+(?:[\-‐‑‒–—―−﹘﹣－][ \t]*+){3,}$", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Plain):
    """A document of a knowledge base."""

    title: str
    text: str
    url: str = ""
    date: str = ""
    """A date or time in ISO 8601. Newer documents are boosted."""
    doc_type: str = "document"
    """Such as email, page or ticket."""
    id: str = ""
    """Derived from title, URL and text by default. Set it for documents that change."""

    def __post_init__(self) -> None:
        for name in ("title", "text"):
            value: object = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise ConfigError(f"a document's {name} must be a non-empty string, got {value!r:.80}")
        object.__setattr__(self, "date", _iso_date(self.date))
        if not self.id:
            object.__setattr__(self, "id", f"document:{digest(self.title, self.url, self.text)}")

    def to_memories(self, size: int, overlap: int, count: TokenCounter) -> Iterator[Memory]:
        """The chunks as memory records, searchable by title and headings too, in one session per document."""
        metadata = {"title": self.title, "url": self.url, "date": self.date, "doc_type": self.doc_type}
        for i, (section, start, end) in enumerate(chunks(self.text, size, overlap, count)):
            heading = section if section.startswith(self.title) else " > ".join(filter(None, (self.title, section)))
            yield Memory(
                content=f"{' '.join(heading.split())}\n{self.text[start:end]}",
                key=chunk_id(self.id, i),
                session=self.id,
                created_at=self.date,
                metadata={"chunk": {**metadata, "doc_id": self.id, "section": section, "start": start, "end": end}},
            )


def chunk_id(doc_id: str, index: int) -> str:
    """The id of a document's chunk."""
    return f"{doc_id}#{index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult(Plain):
    """A chunk found by a search."""

    chunk_id: str
    doc_id: str
    title: str
    content: str
    score: float
    """The calibrated relevance plus boosts for recency and mentioned entities. May exceed 1."""
    url: str = ""
    date: str = ""
    doc_type: str = ""
    section: str = ""

    @classmethod
    def read(cls, result: MemoryResult) -> SearchResult:
        """Read a memory's result. A record that is not a chunk counts as a document by itself."""
        stored = dict_of(result.metadata.get("chunk"))
        metadata = {
            name: text_of(stored.get(name)) for name in ("title", "url", "date", "doc_type", "section", "doc_id")
        }
        content = result.content.partition("\n")[2] if stored else result.content
        fields = {**metadata, "title": metadata["title"] or result.key, "doc_id": metadata["doc_id"] or result.key}
        return cls(chunk_id=result.key, content=content, score=result.score, **fields)

    def chunk(self) -> KnowledgeChunk:
        """The result as a chunk for a prompt."""
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
    """Render a chunk as data below its source."""
    header = f"Source: {one_line(title)}" + (f" ({date[:10]})" if date else "")
    # `---` in the text would look like the end of the chunk; `***` renders the same.
    return "\n".join((header, "---", _HORIZONTAL_RULE.sub("***", as_data(content)), "---"))


def _iso_date(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    try:
        parsed = datetime.fromisoformat(value) if value else None  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ConfigError(f"a document's date must be ISO 8601 such as 2026-03-02, got {value!r}") from None
    if parsed is None:
        return ""
    has_time = ":" in str(value) or "T" in str(value)
    return parsed.isoformat() if has_time else parsed.date().isoformat()
