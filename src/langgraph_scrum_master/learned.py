"""What a project has learned beside its memories: code, commits, experiences and values, each as it is kept.

What is written is what is read: each kind becomes a `Memory` by its own method, and is made again from its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import structlog

from langgraph_scrum_master.codec import Plain, from_plain
from langgraph_scrum_master.errors import ConfigError, DecodeError
from langgraph_scrum_master.memories import Memory, MemoryResult
from langgraph_scrum_master.model import clamp, digest, freeze, utc_now

logger = structlog.get_logger("langgraph_scrum_master")

T = TypeVar("T")

Domain: TypeAlias = Literal[
    "debugging",
    "refactoring",
    "feature",
    "testing",
    "configuration",
    "documentation",
    "performance",
    "security",
    "integration",
]
Strategy: TypeAlias = Literal[
    "systematic-elimination",
    "trial-and-error",
    "research-first",
    "divide-and-conquer",
    "root-cause-analysis",
    "copy-from-similar",
    "check-assumptions",
    "read-the-error",
    "ask-user",
]
OutcomeStatus: TypeAlias = Literal["confirmed", "falsified", "abandoned"]
RootCauseCategory: TypeAlias = Literal[
    "wrong-assumption",
    "missing-knowledge",
    "oversight",
    "environment-issue",
    "misleading-symptom",
    "incomplete-fix",
    "wrong-scope",
    "test-isolation",
    "timing-issue",
]
ConfidenceTier: TypeAlias = Literal["gold", "silver", "bronze", "abandoned"]
"""Captured automatically, by hand, or less sure."""

MemoryCategory: TypeAlias = Literal["preference", "fact", "event", "workflow", "context", "error", "decision"]
UnitType: TypeAlias = Literal["function", "class", "method", "module", "constant"]
Axis: TypeAlias = Literal["full", "strategy", "surprise", "root_cause"]
"""What an experience is looked for by: all of it, how it was gone about, what surprised, why it failed."""


def one_of(name: str, value: str, valid: object) -> str:
    """The value, if it is one of those; else an error that names them."""
    names = get_args(valid)
    if value not in names:
        raise ConfigError(f"{name} must be one of {', '.join(names)}, got {value!r}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeUnit(Plain):
    """A function, class, method, module or constant."""

    file_path: str
    qualified_name: str
    unit_type: UnitType | str = "function"
    language: str = "python"
    signature: str = ""
    docstring: str = ""
    start_line: int = 1
    end_line: int = 1
    project: str = ""
    content_hash: str = ""
    """Of its source: a unit with the same is not written again."""

    @property
    def key(self) -> str:
        """One unit per place and name: indexing it again updates it."""
        return f"{self.file_path}::{self.qualified_name}"

    def kept(self) -> Memory:
        """As it is kept: found by name, signature and docstring, its neighbours the other units of its file."""
        where = " ".join(re.findall(r"\w+", self.file_path.rpartition(".")[0] or self.file_path))
        text = "\n".join(part for part in (self.qualified_name, self.signature, self.docstring, where) if part)
        return Memory(content=text, key=self.key, session=self.file_path, metadata={"code": self.to_dict()})

    @classmethod
    def read(cls, result: MemoryResult) -> CodeUnit:
        """What a memory keeps."""
        return from_plain(cls, result.metadata.get("code"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Plain):
    """A change to the project."""

    sha: str
    message: str
    author: str = ""
    author_email: str = ""
    timestamp: str = ""
    files_changed: tuple[str, ...] = ()
    insertions: int = 0
    deletions: int = 0

    def __post_init__(self) -> None:
        freeze(self, "files_changed")

    def kept(self) -> Memory:
        """As it is kept: found by its message and its files."""
        text = "\n".join([self.message, *self.files_changed[:20]])
        return Memory(content=text, key=self.sha, created_at=self.timestamp, metadata={"commit": self.to_dict()})

    @classmethod
    def read(cls, result: MemoryResult) -> Commit:
        """What a memory keeps."""
        return from_plain(cls, result.metadata.get("commit"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience(Plain):
    """Something that was tried: what was expected, what came of it, and what it taught."""

    domain: Domain | str
    strategy: Strategy | str
    goal: str
    hypothesis: str = ""
    action: str = ""
    prediction: str = ""
    outcome_status: OutcomeStatus | str = ""
    """Empty as long as it is not resolved."""
    outcome_result: str = ""
    surprise: str = ""
    root_cause: str = ""
    root_cause_category: RootCauseCategory | str = ""
    what_worked: str = ""
    takeaway: str = ""
    confidence_tier: ConfidenceTier | str = "silver"
    iteration_count: int = 1
    created_at: str = field(default_factory=utc_now)
    id: str = ""
    """Made from goal, strategy and time if there is none."""

    def __post_init__(self) -> None:
        one_of("domain", self.domain, Domain)
        one_of("strategy", self.strategy, Strategy)
        one_of("confidence_tier", self.confidence_tier, ConfidenceTier)
        if self.outcome_status:
            one_of("outcome_status", self.outcome_status, OutcomeStatus)
        if self.root_cause_category:
            one_of("root_cause_category", self.root_cause_category, RootCauseCategory)
        clamp(self, "iteration_count", 1, None)
        if not self.id:
            object.__setattr__(self, "id", f"experience:{digest(self.goal, self.strategy, self.created_at)}")

    def text(self, axis: Axis | str) -> str:
        """What it is found by on an axis; empty where it has nothing to say there."""
        outcome = f"{self.outcome_status}: {self.outcome_result}".strip(": ")
        told = {
            "full": (self.goal, self.hypothesis, self.action, self.prediction, outcome, self.surprise, self.takeaway),
            "strategy": (self.strategy.replace("-", " "), self.action, outcome),
            "surprise": (self.surprise,),
            "root_cause": (self.root_cause_category.replace("-", " "), self.root_cause) if self.root_cause else (),
        }
        return "\n".join(part for part in told[one_of("axis", axis, Axis)] if part)

    def kept(self, axis: Axis | str) -> Memory | None:
        """As it is kept on an axis; None where it has nothing to say there."""
        text = self.text(axis)
        if not text:
            return None
        # What is filtered by stands outside.
        wanted = {"domain": self.domain, "strategy": self.strategy, "outcome": self.outcome_status}
        metadata = {**wanted, "experience": self.to_dict()}
        return Memory(content=text, key=self.id, created_at=self.created_at, metadata=metadata)

    @classmethod
    def read(cls, result: MemoryResult) -> Experience:
        """What a memory keeps."""
        return from_plain(cls, result.metadata.get("experience"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Value(Plain):
    """A principle that several experiences have in common."""

    axis: Axis | str
    text: str
    cluster_id: str
    cluster_size: int = 1
    similarity_to_centroid: float = 1.0
    members: tuple[str, ...] = ()
    """The experiences it comes from, by their ids."""

    def __post_init__(self) -> None:
        freeze(self, "members")

    @property
    def id(self) -> str:
        """One value per cluster."""
        return f"value:{self.axis}:{self.cluster_id}"

    def kept(self) -> Memory:
        """As it is kept."""
        return Memory(content=self.text, key=self.id, metadata={"value": self.to_dict()})

    @classmethod
    def read(cls, result: MemoryResult) -> Value:
        """What a memory keeps."""
        return from_plain(cls, result.metadata.get("value"))


AXES: tuple[Axis, ...] = get_args(Axis)


def experiences_on(axis: str) -> str:
    """The name of the shelf with the experiences of an axis."""
    return f"experiences-{axis}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem(Plain):
    """One piece of what was learned, as it is shown."""

    source: str
    """memory, code, experience, value or commit."""
    content: str
    relevance: float
    """Calibrated: at 0.7 an item earns its tokens."""
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    said: str = ""
    """What it says, without what stands around it: by this it is known again."""
    pointer: str = ""
    """Where the rest of it is, if it must be cut."""
    rank: float = 0.0
    """What it was ordered by: its relevance, with what makes it count more or less."""
    truncated: bool = False


Shown: TypeAlias = Callable[[MemoryResult], ContextItem]
"""What was found as it is shown, with its head on the first line; raises `DecodeError` if it is something else."""


def readable(read: Callable[[MemoryResult], T], results: Sequence[MemoryResult]) -> list[tuple[T, MemoryResult]]:
    """What was found as it is read, with the memory that keeps it; what cannot be read is passed over, and logged."""
    found: list[tuple[T, MemoryResult]] = []
    for result in results:
        try:
            found.append((read(result), result))
        except DecodeError as error:
            logger.warning("record.skipped", key=result.key, error=str(error))
    return found
