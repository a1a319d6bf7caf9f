"""The result of an injection into a prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph_scrum_master._internal.serialisation import Plain, to_plain
from langgraph_scrum_master.model import (
    HIGH_AGREEMENT,
    Dropped,
    RetrievedContext,
    SourceFailure,
    clamp,
    freeze,
)

_PROPERTIES = (
    "formatted_context",
    "divergence_alerts",
    "temporal_badges",
    "memories_included",
    "high_relevance_count",
    "single_space_count",
    "session_summary_included",
    "latency_ms",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceAlert(Plain):
    """A query differs from the recent work."""

    space: str
    """The space in which it differs, such as E1."""
    space_name: str
    memory_id: str
    """The most similar recent memory, which is still below the threshold."""
    recent_memory_summary: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptResult(Plain):
    """The text for a prompt, with the contexts in it, the dropped ones and the failures."""

    query: str
    session_id: str
    at: str
    """The time of the query."""
    contexts_retrieved: tuple[RetrievedContext, ...] = ()
    """The contexts in the text, in its order."""
    text: str = ""
    total_tokens: int = 0
    duration_ms: float = 0.0
    dropped: tuple[Dropped, ...] = ()
    failures: tuple[SourceFailure, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, "contexts_retrieved", "dropped", "failures")
        clamp(self, "duration_ms", 0.0, None)

    @property
    def injected(self) -> bool:
        """Whether the text has any context."""
        return bool(self.contexts_retrieved)

    @property
    def formatted_context(self) -> str:
        """The same as `text`."""
        return self.text

    @property
    def divergence_alerts(self) -> tuple[DivergenceAlert, ...]:
        """How the query differs from recent work."""
        return tuple(DivergenceAlert(**each.metadata) for each in self.contexts_retrieved if each.source == "alert")

    @property
    def temporal_badges(self) -> tuple[str, ...]:
        """Hints on when the memories were created."""
        return tuple(context.title for context in self.contexts_retrieved if context.source == "hint")

    @property
    def memories_included(self) -> tuple[str, ...]:
        """The keys of the memories in the text."""
        return tuple(context.key for context in self.contexts_retrieved if context.source == "memory")

    @property
    def high_relevance_count(self) -> int:
        """The number of memories on which several spaces agree."""
        return sum(c.source == "memory" and c.weighted_agreement >= HIGH_AGREEMENT for c in self.contexts_retrieved)

    @property
    def single_space_count(self) -> int:
        """The number of other memories."""
        return len(self.memories_included) - self.high_relevance_count

    @property
    def session_summary_included(self) -> bool:
        """Whether the text has a summary of the last session."""
        return any(context.source == "session" for context in self.contexts_retrieved)

    @property
    def latency_ms(self) -> int:
        """The duration in whole milliseconds."""
        return round(self.duration_ms)

    def to_dict(self) -> dict[str, Any]:
        """All fields and properties as JSON values."""
        return {**to_plain(self), **{name: to_plain(getattr(self, name)) for name in _PROPERTIES}}
