"""What a memory holds and gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from langgraph_scrum_master.codec import Plain
from langgraph_scrum_master.model import clamp, digest, freeze, instant, utc_now

FILE = "memory.sqlite3"
"""The file in a memory's folder."""

EARLIER = "ledger-*.sqlite3"
"""The files of an earlier layout, which is converted when it is opened."""


def is_memory(folder: Path) -> bool:
    """Whether a memory is kept in the folder: to find out by opening it would make one."""
    return (folder / FILE).is_file() or is_earlier(folder)


def is_earlier(folder: Path) -> bool:
    """Whether files of the earlier layout are in the folder."""
    return any(folder.glob(EARLIER))


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Plain):
    """A text worth keeping, and what is known of it."""

    content: str
    key: str = ""
    """Made from session and content if there is none, so that storing twice stores once."""
    agent: str = ""
    session: str = ""
    """Texts of one session stand in the order in which they were stored."""
    created_at: str = ""
    references: tuple[str, ...] = ()
    """Names of stories, decisions, files, commits or other memories that it refers to."""
    importance: float = 0.5
    confidence: float = 1.0
    observations: int = 1
    """How often it was seen."""
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    """All else."""

    def __post_init__(self) -> None:
        for name in ("agent", "session", "created_at"):
            object.__setattr__(self, name, str(getattr(self, name)))
        given: Any = self.references
        listed = (given,) if isinstance(given, str) else sorted(given) if isinstance(given, set) else given
        object.__setattr__(self, "references", tuple(str(name) for name in listed))
        clamp(self, "importance", 0.0, 1.0)
        clamp(self, "confidence", 0.0, 1.0)
        clamp(self, "observations", 1, None)
        if not self.key:
            object.__setattr__(self, "key", f"memory:{digest(self.session, self.content)}")

    @classmethod
    def of(cls, key: str, content: str, metadata: Mapping[str, Any]) -> Memory:
        """The memory that a text with such metadata is."""
        names = ("agent", "session", "created_at", "references", "importance", "confidence", "observations")
        known = {name: metadata[name] for name in names if metadata.get(name) is not None}
        rest = {name: value for name, value in metadata.items() if name not in names}
        return cls(key=key, content=content, **known, metadata=rest)

    def fields(self) -> dict[str, Any]:
        """All but key and content as one dict, without what is empty or as usual."""
        told = {
            each.name: value
            for each in fields(self)
            if each.name not in ("key", "content", "metadata") and (value := getattr(self, each.name)) != each.default
        }
        return {**self.metadata, **{name: value for name, value in told.items() if value != ()}}


class Match(NamedTuple):
    """How well a text serves a query, and why."""

    score: float
    """Calibrated: at 0.7 it earns its tokens."""
    strengths: Mapping[str, float] = MappingProxyType({})
    """Its own likeness in each space that had something to say."""
    agreement: float = 0.0
    """Those together, each by the weight of its space, up to 8.5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResult(Plain):
    """A memory found again. Scores run from 0 to 1, higher is better."""

    key: str
    content: str
    score: float
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    strengths: dict[str, float] = field(default_factory=dict, hash=False)
    """Why it was found: how like the query it is in each space that had something to say, E1 to E13."""
    weighted_agreement: float = 0.0
    """Those together, each by the weight of its space, up to 8.5."""

    @property
    def memory(self) -> Memory:
        """The same with its fields."""
        # What kind of record it is stands there too, unless its own metadata says otherwise.
        own = {name: value for name, value in self.metadata.items() if (name, value) != ("kind", "memory")}
        return Memory.of(self.key, self.content, own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Plain):
    """A choice that an agent made, and why."""

    agent_type: str
    context: str
    rationale: str = ""
    outcome: str = ""
    decision_type: str = ""
    artifact_type: str = ""
    artifact_ids: tuple[str, ...] = ()
    timestamp: str = field(default_factory=utc_now)
    id: str = ""
    """Made from agent, context and rationale if there is none, so that storing twice stores once."""

    def __post_init__(self) -> None:
        freeze(self, "artifact_ids")
        if not self.id:
            object.__setattr__(self, "id", f"decision:{digest(self.agent_type, self.context, self.rationale)}")

    @property
    def text(self) -> str:
        """The decision as prose."""
        parts = (self.context, self.rationale and f"Why: {self.rationale}", self.outcome and f"Outcome: {self.outcome}")
        return "\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFilter:
    """Which decisions count; what is None does not matter."""

    agent_type: str | None = None
    time_range_start: str | None = None
    time_range_end: str | None = None
    artifact_type: str | None = None
    decision_type: str | None = None

    def accepts(self, decision: Decision) -> bool:
        """Whether the decision passes every condition given; times compare as instants, the end included."""
        equal = all(
            wanted is None or wanted == actual
            for wanted, actual in (
                (self.agent_type, decision.agent_type),
                (self.artifact_type, decision.artifact_type),
                (self.decision_type, decision.decision_type),
            )
        )
        at = instant(decision.timestamp)
        start = self.time_range_start is None or instant(self.time_range_start) <= at
        return equal and start and (self.time_range_end is None or at <= instant(self.time_range_end))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """A decision found again."""

    decision: Decision
    similarity: float
    strengths: dict[str, float] = field(default_factory=dict, hash=False)
    """Why it was found, as of a `MemoryResult`."""
    weighted_agreement: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePattern(Plain):
    """A habit of the code base."""

    pattern_type: str
    name: str
    value: str
    confidence: float = 1.0
    examples: tuple[str, ...] = ()
    source_files: tuple[str, ...] = ()
    created_at: str = field(default_factory=utc_now)

    def __post_init__(self) -> None:
        freeze(self, "examples", "source_files")
        clamp(self, "confidence", 0.0, 1.0)

    @property
    def id(self) -> str:
        """One pattern per type and name: storing it again updates it."""
        return f"pattern:{digest(self.pattern_type, self.name)}"

    @property
    def text(self) -> str:
        """The pattern as prose."""
        examples = f"\nExamples: {', '.join(self.examples)}" if self.examples else ""
        return f"{self.name} ({self.pattern_type}): {self.value}{examples}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternResult:
    """A pattern found again."""

    pattern: CodePattern
    similarity: float
    strengths: dict[str, float] = field(default_factory=dict, hash=False)
    """Why it was found, as of a `MemoryResult`."""
    weighted_agreement: float = 0.0
