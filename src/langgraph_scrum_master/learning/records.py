"""The records of learning: code units, commits, experiences and values.

`kept` turns a record into a `Memory`, and `read` restores it from the memory's metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
"""Gold: recorded by a tool. Silver: recorded by hand. Bronze: uncertain."""

MemoryCategory: TypeAlias = Literal["preference", "fact", "event", "workflow", "context", "error", "decision"]
UnitType: TypeAlias = Literal["function", "class", "method", "module", "constant"]
Axis: TypeAlias = Literal["full", "strategy", "surprise", "root_cause"]
"""The aspect of an experience that is searched: all of it, its strategy, its surprise or its root cause."""


def check_search(query: str, **counts: int) -> None:
    """Raise `ConfigError` if the query is empty or a count is below 1."""
    if not query.strip():
        raise ConfigError(f"query must be a non-empty text, got {query!r}")
    for name, value in counts.items():
        if value < 1:
            raise ConfigError(f"{name} must be 1 or more, got {value!r}")


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
    """The hash of its source. A unit with the same hash is not written again."""

    @property
    def key(self) -> str:
        """File and name. Indexing the same unit again updates its record."""
        return f"{self.file_path}::{self.qualified_name}"

    def to_memory(self) -> Memory:
        """The memory to store: searchable by name, signature, docstring and path, with its file as the session."""
        path_words = " ".join(re.findall(r"\w+", self.file_path.rpartition(".")[0] or self.file_path))
        text = "\n".join(part for part in (self.qualified_name, self.signature, self.docstring, path_words) if part)
        return Memory(content=text, key=self.key, session=self.file_path, metadata={"code": self.to_dict()})

    @classmethod
    def read(cls, result: MemoryResult) -> CodeUnit:
        """Restore the record. Raises `DecodeError` if the memory has none."""
        return from_plain(cls, result.metadata.get("code"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Plain):
    """A commit, with the files and lines that it changed."""

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

    def to_memory(self) -> Memory:
        """The memory to store: searchable by message and files."""
        text = "\n".join([self.message, *self.files_changed[:20]])
        return Memory(content=text, key=self.sha, created_at=self.timestamp, metadata={"commit": self.to_dict()})

    @classmethod
    def read(cls, result: MemoryResult) -> Commit:
        """Restore the record. Raises `DecodeError` if the memory has none."""
        return from_plain(cls, result.metadata.get("commit"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration(Plain):
    """An earlier attempt within an experience."""

    strategy: Strategy | str
    hypothesis: str = ""
    action: str = ""
    prediction: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience(Plain):
    """A hypothesis that was tried, its outcome, and the lesson from it."""

    domain: Domain | str
    strategy: Strategy | str
    goal: str
    hypothesis: str = ""
    action: str = ""
    prediction: str = ""
    outcome_status: OutcomeStatus | str = ""
    """Empty until the experience is resolved."""
    outcome_result: str = ""
    surprise: str = ""
    root_cause: str = ""
    root_cause_category: RootCauseCategory | str = ""
    what_worked: str = ""
    takeaway: str = ""
    confidence_tier: ConfidenceTier | str = "silver"
    iteration_count: int = 1
    history: tuple[Iteration, ...] = ()
    """The earlier iterations, oldest first."""
    created_at: str = field(default_factory=utc_now)
    id: str = ""
    """By default a digest of goal, strategy and time."""

    def __post_init__(self) -> None:
        one_of("domain", self.domain, Domain)
        one_of("strategy", self.strategy, Strategy)
        one_of("confidence_tier", self.confidence_tier, ConfidenceTier)
        if self.outcome_status:
            one_of("outcome_status", self.outcome_status, OutcomeStatus)
        if self.root_cause_category:
            one_of("root_cause_category", self.root_cause_category, RootCauseCategory)
        if not self.goal.strip():
            raise ConfigError(f"goal must be a non-empty text, got {self.goal!r}")
        freeze(self, "history")
        clamp(self, "iteration_count", len(self.history) + 1, None)
        if not self.id:
            object.__setattr__(self, "id", f"experience:{digest(self.goal, self.strategy, self.created_at)}")

    def tried_again(
        self, *, strategy: Strategy | str = "", hypothesis: str = "", action: str = "", prediction: str = ""
    ) -> Experience:
        """The next iteration. The given fields replace the current ones, which move to `history`."""
        self._refuse_resolved()
        if not any(text.strip() for text in (strategy, hypothesis, action, prediction)):
            raise ConfigError("an iteration must have a strategy, hypothesis, action or prediction, got none")
        previous = Iteration(
            strategy=self.strategy, hypothesis=self.hypothesis, action=self.action, prediction=self.prediction
        )
        return replace(
            self,
            strategy=strategy or self.strategy,
            hypothesis=hypothesis or self.hypothesis,
            action=action or self.action,
            prediction=prediction or self.prediction,
            history=(*self.history, previous),
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
        """The experience with its outcome. An abandoned one gets the tier `abandoned`."""
        self._refuse_resolved()
        one_of("outcome", outcome, OutcomeStatus)
        if root_cause_category and not root_cause.strip():
            raise ConfigError(f"root_cause must describe the cause, got only the category {root_cause_category!r}")
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
            raise ConfigError(f"experience {self.id!r} is already {self.outcome_status}: start a new one")

    def lesson(self, axis: Axis | str) -> str:
        """The lesson on this axis, on one line; empty if there is none."""
        general = self.takeaway or self.what_worked or self.outcome_result or self.action or self.goal
        lesson = {"surprise": self.surprise, "root_cause": self.root_cause}.get(one_of("axis", axis, Axis), general)
        return " ".join(lesson.split())

    def text(self, axis: Axis | str) -> str:
        """The searchable text on this axis; empty if there is none."""
        outcome = f"{self.outcome_status}: {self.outcome_result}".strip(": ")
        parts = {
            "full": (self.goal, self.hypothesis, self.action, self.prediction, outcome, self.surprise, self.takeaway),
            "strategy": (self.strategy.replace("-", " "), self.action, outcome),
            "surprise": (self.surprise,),
            "root_cause": (self.root_cause_category.replace("-", " "), self.root_cause) if self.root_cause else (),
        }
        return "\n".join(part for part in parts[one_of("axis", axis, Axis)] if part)

    def to_memory(self, axis: Axis | str) -> Memory | None:
        """The memory to store for this axis; None if it has no text there."""
        text = self.text(axis)
        if not text:
            return None
        # Filters match top-level metadata only.
        filters = {"domain": self.domain, "strategy": self.strategy, "outcome": self.outcome_status}
        metadata = {**filters, "experience": self.to_dict()}
        return Memory(content=text, key=self.id, created_at=self.created_at, metadata=metadata)

    @classmethod
    def read(cls, result: MemoryResult) -> Experience:
        """Restore the record. Raises `DecodeError` if the memory has none."""
        return from_plain(cls, result.metadata.get("experience"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Value(Plain):
    """A principle that several experiences share."""

    axis: Axis | str
    text: str
    cluster_id: str
    cluster_size: int = 1
    similarity_to_centroid: float = 1.0
    members: tuple[str, ...] = ()
    """The ids of the experiences it was derived from."""
    domains: tuple[str, ...] = ()
    """The domains of its members, most frequent first. Search matches them too."""
    strategies: tuple[str, ...] = ()
    content_hash: str = ""
    """The hash of its members' texts. As long as it is the same, the value's text is kept."""
    by_model: bool = False
    """Whether a chat model wrote the text."""

    def __post_init__(self) -> None:
        one_of("axis", self.axis, Axis)
        freeze(self, "members", "domains", "strategies")

    @property
    def id(self) -> str:
        """Derived from axis and cluster: there is one value per cluster."""
        return f"value:{self.axis}:{self.cluster_id}"

    def to_memory(self) -> Memory:
        """The memory to store: searchable by text, domains and strategies."""
        about = " ".join((*self.domains, *self.strategies))
        text = "\n".join(part for part in (self.text, about) if part)
        return Memory(content=text, key=self.id, metadata={"value": self.to_dict()})

    @classmethod
    def read(cls, result: MemoryResult) -> Value:
        """Restore the record. Raises `DecodeError` if the memory has none."""
        return from_plain(cls, result.metadata.get("value"))


AXES: tuple[Axis, ...] = get_args(Axis)


def experiences_on(axis: str) -> str:
    """The name of the shelf that has the experiences by this axis."""
    return f"experiences-{axis}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem(Plain):
    """One record rendered as Markdown, as part of a `FormattedContext`."""

    source: str
    """memory, code, experience, value or commit."""
    content: str
    relevance: float
    """Calibrated: from 0.7 on, an item is worth its tokens."""
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    said: str = ""
    """Its text without markup, used to find duplicates."""
    pointer: str = ""
    """Says where the full text is. Appended when the item is cut."""
    rank: float = 0.0
    """The sort key: its relevance, adjusted for importance, tier and age."""
    truncated: bool = False


def decode_all(decode: Callable[[MemoryResult], T], results: Sequence[MemoryResult]) -> list[tuple[T, MemoryResult]]:
    """The decoded records with their search results. Records that cannot be decoded are skipped and logged."""
    decoded: list[tuple[T, MemoryResult]] = []
    for result in results:
        try:
            decoded.append((decode(result), result))
        except DecodeError as error:
            logger.warning("record.skipped", key=result.key, error=str(error))
    return decoded
