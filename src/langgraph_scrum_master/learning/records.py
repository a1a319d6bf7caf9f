"""What a project has learned beside its memories: code, commits, experiences and values, each as it is kept.

What is written is what is read: each kind becomes a `Memory` by its own method, and is made again from its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.serialisation import Plain, from_plain
from langgraph_scrum_master._internal.shapes import one_of
from langgraph_scrum_master.errors import ConfigError, DecodeError
from langgraph_scrum_master.memory.records import Memory, MemoryResult
from langgraph_scrum_master.model import clamp, digest, freeze, utc_now
from langgraph_scrum_master.text.domains import Domain

T = TypeVar("T")

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
"""Captured automatically, recorded by hand, less sure, or given up."""

MemoryCategory: TypeAlias = Literal["preference", "fact", "event", "workflow", "context", "error", "decision"]
UnitType: TypeAlias = Literal["function", "class", "method", "module", "constant"]
Axis: TypeAlias = Literal["full", "strategy", "surprise", "root_cause"]
"""What an experience is looked for by: all of it, how it was gone about, what surprised, why it failed."""


def refuse_bad(query: str, **counts: int) -> None:
    """Raise `ConfigError` if the query says nothing, or a count is below 1."""
    if not query.strip():
        raise ConfigError(f"query must be a text that is not empty, got {query!r}")
    for name, value in counts.items():
        if value < 1:
            raise ConfigError(f"{name} must be 1 or more, got {value!r}")


def noted(
    text: str,
    category: MemoryCategory | str = "fact",
    importance: float = 0.5,
    *,
    tags: Iterable[str] = (),
    verified: bool = False,
    now: str | None = None,
) -> Memory:
    """A text worth keeping, with what it is, how much it matters, and whether it was checked."""
    if not text.strip():
        raise ConfigError(f"the text must not be empty, got {text!r}")
    if not 0 <= importance <= 1:
        raise ConfigError(f"importance must be from 0 to 1, got {importance!r}")
    now = now or utc_now()
    named = sorted({tag.strip() for tag in tags})
    if "" in named:
        raise ConfigError(f"a tag must not be empty, got {tags!r}")
    metadata: dict[str, Any] = {
        "category": one_of("category", category, MemoryCategory),
        **({"tags": named} if named else {}),
        "verification_status": "verified" if verified else "unverified",
        **({"verified_at": now} if verified else {}),
    }
    return Memory(content=text, importance=importance, created_at=now, metadata=metadata)


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
class Iteration(Plain):
    """What was tried before something else was."""

    strategy: Strategy | str
    hypothesis: str = ""
    action: str = ""
    prediction: str = ""


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
    history: tuple[Iteration, ...] = ()
    """The iterations before this one, the first first."""
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
        if not self.goal.strip():
            raise ConfigError(f"goal must be a text that is not empty, got {self.goal!r}")
        freeze(self, "history")
        clamp(self, "iteration_count", len(self.history) + 1, None)
        if not self.id:
            object.__setattr__(self, "id", f"experience:{digest(self.goal, self.strategy, self.created_at)}")

    def tried_again(
        self, *, strategy: Strategy | str = "", hypothesis: str = "", action: str = "", prediction: str = ""
    ) -> Experience:
        """The next iteration: what is given takes the place of what was, which becomes history."""
        self._refuse_resolved()
        if not any(text.strip() for text in (strategy, hypothesis, action, prediction)):
            raise ConfigError("an iteration must bring a strategy, hypothesis, action or prediction, got none")
        before = Iteration(
            strategy=self.strategy, hypothesis=self.hypothesis, action=self.action, prediction=self.prediction
        )
        return replace(
            self,
            strategy=strategy or self.strategy,
            hypothesis=hypothesis or self.hypothesis,
            action=action or self.action,
            prediction=prediction or self.prediction,
            history=(*self.history, before),
            iteration_count=self.iteration_count + 1,
        )

    def resolved(
        self,
        outcome: OutcomeStatus | str,
        *,
        outcome_result: str = "",
        surprise: str = "",
        root_cause: str = "",
        root_cause_category: RootCauseCategory | str = "",
        what_worked: str = "",
        takeaway: str = "",
    ) -> Experience:
        """What came of it; one that was given up counts less from then on."""
        self._refuse_resolved()
        one_of("outcome", outcome, OutcomeStatus)
        if root_cause_category and not root_cause.strip():
            raise ConfigError(f"a root cause must be described, got only its category {root_cause_category!r}")
        return replace(
            self,
            outcome_status=outcome,
            outcome_result=outcome_result,
            surprise=surprise,
            root_cause=root_cause,
            root_cause_category=root_cause_category,
            what_worked=what_worked,
            takeaway=takeaway,
            confidence_tier="abandoned" if outcome == "abandoned" else self.confidence_tier,
        )

    def _refuse_resolved(self) -> None:
        if self.outcome_status:
            raise ConfigError(f"experience {self.id!r} is {self.outcome_status} already: start another")

    def lesson(self, axis: Axis | str) -> str:
        """What it teaches on an axis, on one line; empty where it has nothing to say there."""
        taught = self.takeaway or self.what_worked or self.outcome_result or self.action or self.goal
        told = {"surprise": self.surprise, "root_cause": self.root_cause}.get(one_of("axis", axis, Axis), taught)
        return " ".join(told.split())

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
    domains: tuple[str, ...] = ()
    """Those of its members, the most frequent first; it is found by them too."""
    strategies: tuple[str, ...] = ()
    content_hash: str = ""
    """Of what its members say: as long as it is the same, so is the text."""
    by_model: bool = False
    """Whether a chat model put it into words."""

    def __post_init__(self) -> None:
        one_of("axis", self.axis, Axis)
        freeze(self, "members", "domains", "strategies")

    @property
    def id(self) -> str:
        """One value per cluster."""
        return f"value:{self.axis}:{self.cluster_id}"

    def kept(self) -> Memory:
        """As it is kept."""
        about = " ".join((*self.domains, *self.strategies))
        text = "\n".join(part for part in (self.text, about) if part)
        return Memory(content=text, key=self.id, metadata={"value": self.to_dict()})

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
