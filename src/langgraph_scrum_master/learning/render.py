"""Records as Markdown, one function per kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from langgraph_scrum_master.learning.records import CodeUnit, Commit, ContextItem, Experience, Value
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.text.markdown import code_block, code_span, inline, line_start
from langgraph_scrum_master.text.sanitize import as_data

MAX_FILES = 5
"""The number of files that are listed for a commit."""

TIER_BOOSTS = {"gold": 1.15, "silver": 1.1, "bronze": 1.05, "abandoned": 1.0}
"""The factor by which the tier of an experience raises its rank, by hand."""

IMPORTANCE_BOOST = 0.2
"""The largest share by which importance raises the rank of a memory, by hand."""

SOURCE_SECTIONS = {
    "memory": "Memories",
    "code": "Code",
    "experience": "Experiences",
    "value": "Values",
    "commit": "Commits",
}

_MARKUP = re.compile(r"[*`]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedRecord:
    """A record as a heading line and a body, both Markdown."""

    source: str
    heading: str
    body: str
    metadata: dict[str, Any]

    @property
    def title(self) -> str:
        """The heading without markup."""
        return _MARKUP.sub("", self.heading).strip(" :")


Renderer: TypeAlias = Callable[[MemoryResult], RenderedRecord]
"""Renders the record in a search result. Raises `DecodeError` if the result has none."""


def memory_item(result: MemoryResult) -> ContextItem:
    """A fact, preference or decision."""
    memory = result.memory
    category = str(memory.metadata.get("category") or memory.metadata.get("kind") or "context")
    text = _line(result.content)
    rendered = RenderedRecord(
        source="memory",
        heading=f"**Memory**: {text}",
        body=f"*Category: {_line(category)}, Importance: {memory.importance:g}*",
        metadata={
            "id": result.key,
            "category": category,
            "importance": memory.importance,
            "created_at": memory.created_at or str(memory.metadata.get("timestamp", "")),
        },
    )
    return _item(rendered, result, text, boost=1 + IMPORTANCE_BOOST * memory.importance)


def code_item(unit: CodeUnit, result: MemoryResult) -> ContextItem:
    """A code unit."""
    text = f"{unit.file_path} {unit.qualified_name} {_source(unit)}"
    return _item(_rendered_code(unit), result, text, pointer=f"*(truncated, see full at {_line(_location(unit))})*")


def experience_item(experience: Experience, result: MemoryResult, recency: float = 1.0) -> ContextItem:
    """An experience without its root cause."""
    return _experience_item(experience, result, _rendered_experience(experience), recency)


def explained_item(experience: Experience, result: MemoryResult) -> ContextItem:
    """An experience with its root cause."""
    return _experience_item(experience, result, _rendered_experience(experience, explained=True))


def aspect_item(axis: str, experience: Experience, result: MemoryResult) -> ContextItem:
    """One axis of an experience."""
    if axis == "surprise":
        heading = f"**Surprise**: {_line(experience.surprise)}"
    elif axis == "root_cause":
        heading = f"**{experience.root_cause_category or 'root cause'}**: {_line(experience.root_cause)}"
    else:
        return explained_item(experience, result)
    rendered = RenderedRecord(
        source="experience", heading=heading, body=f"*{_line(experience.goal)}*", metadata=_facts(experience)
    )
    return _experience_item(experience, result, rendered)


def value_item(value: Value, result: MemoryResult) -> ContextItem:
    """A principle that several experiences share."""
    return _item(_rendered_value(value), result, _line(value.text))


def commit_item(commit: Commit, result: MemoryResult, recency: float = 1.0) -> ContextItem:
    """A commit with author, time, message and files."""
    return _item(_rendered_commit(commit), result, commit.message, boost=recency)


def _experience_item(
    experience: Experience, result: MemoryResult, rendered: RenderedRecord, recency: float = 1.0
) -> ContextItem:
    return _item(
        rendered,
        result,
        experience.text("full"),
        pointer=f"*(truncated, full experience ID: {_line(experience.id)})*",
        boost=TIER_BOOSTS.get(experience.confidence_tier, 1.0) * recency,
    )


def _item(
    rendered: RenderedRecord, result: MemoryResult, text: str, *, pointer: str = "", boost: float = 1.0
) -> ContextItem:
    return ContextItem(
        source=rendered.source,
        content=f"{rendered.heading}\n{rendered.body}",
        relevance=result.score,
        metadata=rendered.metadata,
        said=text,
        pointer=pointer,
        rank=result.score * boost,
    )


def _rendered_code(unit: CodeUnit) -> RenderedRecord:
    return RenderedRecord(
        source="code",
        heading=f"**{_line(unit.unit_type)}** {code_span(unit.qualified_name)} in {code_span(_location(unit))}",
        body=code_block(_source(unit), unit.language),
        metadata={
            "file_path": unit.file_path,
            "start_line": unit.start_line,
            "end_line": unit.end_line,
            "language": unit.language,
            "qualified_name": unit.qualified_name,
        },
    )


def _source(unit: CodeUnit) -> str:
    return "\n".join(part for part in (as_data(unit.signature), as_data(unit.docstring)) if part.strip())


def _location(unit: CodeUnit) -> str:
    return f"{unit.file_path}:{unit.start_line}"


def _rendered_experience(
    experience: Experience, *, label: str = "Experience", explained: bool = False
) -> RenderedRecord:
    fields = [*_outline(experience), *(_explanation(experience) if explained else ())]
    return RenderedRecord(
        source="experience",
        heading=f"**{label}**: {_line(experience.domain)} | {_line(experience.strategy)}",
        body="\n".join(f"- **{name}**: {_line(text)}" for name, text in fields if text.strip()),
        metadata=_facts(experience),
    )


def _outline(experience: Experience) -> Iterator[tuple[str, str]]:
    outcome = (experience.outcome_status or "open", experience.outcome_result)
    yield "Goal", experience.goal
    yield "Hypothesis", experience.hypothesis
    yield "Action", experience.action
    yield "Prediction", experience.prediction
    yield "Outcome", " - ".join(part for part in outcome if part)
    yield "Surprise", experience.surprise
    yield "Lesson", experience.what_worked or experience.takeaway


def _explanation(experience: Experience) -> Iterator[tuple[str, str]]:
    cause = (experience.root_cause_category, experience.root_cause)
    yield "Root cause", " - ".join(part for part in cause if part)


def _facts(experience: Experience) -> dict[str, Any]:
    return {
        "id": experience.id,
        "domain": experience.domain,
        "strategy": experience.strategy,
        "outcome_status": experience.outcome_status,
        "confidence_tier": experience.confidence_tier,
        "iteration_count": experience.iteration_count,
    }


def _rendered_value(value: Value) -> RenderedRecord:
    return RenderedRecord(
        source="value",
        heading=f"**Value** ({_line(value.axis)}, cluster size: {value.cluster_size}):",
        body=line_start(value.text),
        metadata={
            "id": value.id,
            "axis": value.axis,
            "cluster_id": value.cluster_id,
            "cluster_size": value.cluster_size,
            "similarity_to_centroid": value.similarity_to_centroid,
            "members": list(value.members),
        },
    )


def _rendered_commit(commit: Commit) -> RenderedRecord:
    paths = ", ".join(_line(path) for path in commit.files_changed[:MAX_FILES])
    more = ", ..." if len(commit.files_changed) > MAX_FILES else ""
    files = f"\n*Files: {paths}{more}*" if paths else ""
    message = "\n".join(line_start(part) for part in as_data(commit.message).strip().split("\n") if part.strip())
    return RenderedRecord(
        source="commit",
        heading=f"**Commit** `{commit.sha[:7]}` by {_line(commit.author)} on {_line(commit.timestamp)}",
        body=f"{message}{files}",
        metadata={
            "sha": commit.sha,
            "author": commit.author,
            "timestamp": commit.timestamp,
            "files_changed": list(commit.files_changed),
            "insertions": commit.insertions,
            "deletions": commit.deletions,
        },
    )


RENDERERS: Mapping[str, Renderer] = {
    "code": lambda result: _rendered_code(CodeUnit.read(result)),
    "commits": lambda result: _rendered_commit(Commit.read(result)),
    "values": lambda result: _rendered_value(Value.read(result)),
    "experiences": lambda result: _rendered_experience(Experience.read(result)),
    "premortem": lambda result: _rendered_experience(Experience.read(result), label="Premortem", explained=True),
}
"""Renderers by shelf; `premortem` renders an experience as a warning."""


def render_sections(title: str, sections: Mapping[str, Sequence[ContextItem]], footer: str) -> str:
    """The non-empty sections under a title; empty if there are none."""
    parts = [
        "\n\n".join([f"## {name}", *(item.content for item in items)]) for name, items in sections.items() if items
    ]
    return "\n\n".join([f"# {title}", *parts, f"---\n*{footer}*"]) if parts else ""


def _line(text: Any) -> str:
    """The text on one line, so that it cannot form a heading or end a block."""
    return inline(str(text))
