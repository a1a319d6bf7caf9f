"""What was learned, as Markdown: one form for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langgraph_scrum_master.learning.records import CodeUnit, Commit, ContextItem, Experience, Shown, Value
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.text.sanitize import as_data, one_line

SHOWN_FILES = 5
"""Files of a commit that are named."""

TIERS = {"gold": 1.15, "silver": 1.1, "bronze": 1.05, "abandoned": 1.0}
"""How much more an experience counts by how sure it is."""

IMPORTANT = 0.2
"""How much more a memory counts that is as important as can be."""

SOURCE_SECTIONS = {
    "memory": "Memories",
    "code": "Code",
    "experience": "Experiences",
    "value": "Values",
    "commit": "Commits",
}


def memory_item(result: MemoryResult) -> ContextItem:
    """A fact, preference or decision."""
    memory = result.memory
    category = str(memory.metadata.get("category") or memory.metadata.get("kind") or "context")
    text = _line(result.content)
    return ContextItem(
        source="memory",
        content=f"**Memory**: {text}\n*Category: {_line(category)}, Importance: {memory.importance:g}*",
        relevance=result.score,
        metadata={
            "id": result.key,
            "category": category,
            "importance": memory.importance,
            "created_at": memory.created_at or str(memory.metadata.get("timestamp", "")),
        },
        said=text,
        rank=result.score * (1 + IMPORTANT * memory.importance),
    )


def code_item(unit: CodeUnit, result: MemoryResult) -> ContextItem:
    """A unit of code: what it is called, where it stands, its signature and docstring."""
    where = f"{_line(unit.file_path)}:{unit.start_line}"
    body = "\n".join(part for part in (as_data(unit.signature), as_data(unit.docstring)) if part.strip())
    fence = "````" if "```" in body else "```"
    head = f"**{_line(unit.unit_type)}** `{_line(unit.qualified_name)}` in `{where}`"
    return ContextItem(
        source="code",
        content=f"{head}\n{fence}{_line(unit.language)}\n{body}\n{fence}",
        relevance=result.score,
        metadata={
            "file_path": unit.file_path,
            "start_line": unit.start_line,
            "end_line": unit.end_line,
            "language": unit.language,
            "qualified_name": unit.qualified_name,
        },
        said=f"{unit.file_path} {unit.qualified_name} {body}",
        pointer=f"*(truncated, see full at {where})*",
        rank=result.score,
    )


def experience_item(experience: Experience, result: MemoryResult, recency: float = 1.0) -> ContextItem:
    """All of an experience."""
    told = [
        ("Goal", experience.goal),
        ("Hypothesis", experience.hypothesis),
        ("Action", experience.action),
        ("Prediction", experience.prediction),
        (
            "Outcome",
            " - ".join(part for part in (experience.outcome_status or "open", experience.outcome_result) if part),
        ),
        ("Surprise", experience.surprise),
        ("Lesson", experience.what_worked or experience.takeaway),
    ]
    lines = [f"- **{name}**: {_line(text)}" for name, text in told if text.strip()]
    return _experience(experience, result, "\n".join([_headline(experience), *lines]), recency)


def explained_item(experience: Experience, result: MemoryResult) -> ContextItem:
    """All of an experience, and why it went so."""
    item = experience_item(experience, result)
    why = " - ".join(part for part in (experience.root_cause_category, experience.root_cause) if part)
    return replace(item, content=f"{item.content}\n- **Root cause**: {_line(why)}") if why else item


def premortem_item(experience: Experience, result: MemoryResult) -> ContextItem:
    """An experience as a warning that stands alone."""
    item = explained_item(experience, result)
    return replace(item, content=item.content.replace("Experience", "Premortem", 1))


def aspect_item(axis: str, experience: Experience, result: MemoryResult) -> ContextItem:
    """What an experience says on one axis."""
    if axis == "surprise":
        text = f"**Surprise**: {_line(experience.surprise)}\n*{_line(experience.goal)}*"
    elif axis == "root_cause":
        category = experience.root_cause_category or "root cause"
        text = f"**{category}**: {_line(experience.root_cause)}\n*{_line(experience.goal)}*"
    else:
        return explained_item(experience, result)
    return _experience(experience, result, text, 1.0)


def _experience(experience: Experience, result: MemoryResult, content: str, recency: float) -> ContextItem:
    return ContextItem(
        source="experience",
        content=content,
        relevance=result.score,
        metadata={
            "id": experience.id,
            "domain": experience.domain,
            "strategy": experience.strategy,
            "outcome_status": experience.outcome_status,
            "confidence_tier": experience.confidence_tier,
            "iteration_count": experience.iteration_count,
        },
        said=experience.text("full"),
        pointer=f"*(truncated, full experience ID: {_line(experience.id)})*",
        rank=result.score * TIERS.get(experience.confidence_tier, 1.0) * recency,
    )


def _headline(experience: Experience) -> str:
    return f"**Experience**: {_line(experience.domain)} | {_line(experience.strategy)}"


def value_item(value: Value, result: MemoryResult) -> ContextItem:
    """A principle that experiences have in common."""
    text = _line(value.text)
    return ContextItem(
        source="value",
        content=f"**Value** ({_line(value.axis)}, cluster size: {value.cluster_size}):\n{text}",
        relevance=result.score,
        metadata={
            "id": value.id,
            "axis": value.axis,
            "cluster_id": value.cluster_id,
            "cluster_size": value.cluster_size,
            "similarity_to_centroid": value.similarity_to_centroid,
        },
        said=text,
        rank=result.score,
    )


def commit_item(commit: Commit, result: MemoryResult, recency: float = 1.0) -> ContextItem:
    """A change: who, when, why, and which files."""
    shown = ", ".join(_line(path) for path in commit.files_changed[:SHOWN_FILES])
    more = ", ..." if len(commit.files_changed) > SHOWN_FILES else ""
    files = f"\n*Files: {shown}{more}*" if shown else ""
    head = f"**Commit** `{commit.sha[:7]}` by {_line(commit.author)} on {_line(commit.timestamp)}"
    message = "\n".join(_line(part) for part in as_data(commit.message).strip().split("\n") if part.strip())
    return ContextItem(
        source="commit",
        content=f"{head}\n{message}{files}",
        relevance=result.score,
        metadata={
            "sha": commit.sha,
            "author": commit.author,
            "timestamp": commit.timestamp,
            "files_changed": list(commit.files_changed),
            "insertions": commit.insertions,
            "deletions": commit.deletions,
        },
        said=f"{commit.message}",
        rank=result.score * recency,
    )


SHOWN: Mapping[str, Shown] = {
    "code": lambda result: code_item(CodeUnit.read(result), result),
    "commits": lambda result: commit_item(Commit.read(result), result),
    "values": lambda result: value_item(Value.read(result), result),
    "experiences": lambda result: experience_item(Experience.read(result), result),
    "premortem": lambda result: premortem_item(Experience.read(result), result),
}
"""What was learned as it is shown, by the shelf it was found on; failures also as warnings."""


def assembled(title: str, sections: Mapping[str, Sequence[ContextItem]], footer: str) -> str:
    """The sections that have anything, under a title; empty if none has."""
    parts = [
        "\n\n".join([f"## {name}", *(item.content for item in items)]) for name, items in sections.items() if items
    ]
    return "\n\n".join([f"# {title}", *parts, f"---\n*{footer}*"]) if parts else ""


def _line(text: Any) -> str:
    """The text on one line: it cannot look like a heading, nor end a block."""
    return one_line(str(text)).lstrip("#>")
