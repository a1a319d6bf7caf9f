"""What flows between the stages: frozen, slotted, keyword-only, and equal again after a checkpoint.

Checkpoints name these types by module and name: never move or rename one, and give every new field a default.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2s
from typing import Any, Literal, TypeAlias, get_args

import structlog

from langgraph_scrum_master.codec import Plain, json_shapes

logger = structlog.get_logger("langgraph_scrum_master")

ContextSource: TypeAlias = Literal["memory", "state", "sprint", "architecture"]
"""Where a piece of context came from."""

GapReason: TypeAlias = Literal[
    "clarification_requested", "circular_logic", "long_cycle_time", "gate_failure", "explicit_flag"
]
"""Why an agent is believed to lack context; also the order in which equally confident gaps are served."""

DropReason: TypeAlias = Literal["below_bar", "already_seen", "duplicate", "over_items", "over_budget"]
"""Why a context that was found is not given to the agent."""

RecordStatus: TypeAlias = Literal["pending", "abstained", "injected"]
"""How far a gap got: waiting for its turn, looked for in vain, or served."""

VALID_CONTEXT_SOURCES: frozenset[str] = frozenset(get_args(ContextSource))
VALID_GAP_REASONS: frozenset[str] = frozenset(get_args(GapReason))
RECORD_STATUSES: tuple[RecordStatus, ...] = get_args(RecordStatus)


def digest(*parts: str) -> str:
    """A short name for these texts, the same in every run."""
    return blake2s("\x1f".join(parts).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def utc_now() -> str:
    """The current time as ISO 8601; the engine itself passes its own clock's."""
    return datetime.now(UTC).isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextGap(Plain):
    """Why which agent needs what, with the evidence."""

    gap_id: str
    agent: str
    reason: GapReason
    context_query: str
    confidence: float
    indicators: tuple[str, ...] = ()
    """The evidence, each as `what@message`, or `what` where no message shows it."""
    detected_at: str = field(default_factory=utc_now)
    missing: tuple[str, ...] = ()
    """What is known to be missing, by name."""

    def __post_init__(self) -> None:
        _freeze(self, "indicators", "missing")
        _clamp(self, "confidence", 0.0, 1.0)
        _one_of(self, "reason", VALID_GAP_REASONS)

    @property
    def need(self) -> str:
        """The same agent asking for the same thing again has the same need, whatever message shows it."""
        return digest(self.agent, " ".join(self.context_query.lower().split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedContext(Plain):
    """One piece of context, from anywhere."""

    source: ContextSource
    content: str
    relevance_score: float
    """Calibrated: at 0.7 an item earns its tokens."""
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    retrieved_at: str = field(default_factory=utc_now)
    key: str = ""
    """Its id where it came from; made from source and content if there is none."""
    title: str = ""
    created_at: str = ""
    truncated: bool = False

    def __post_init__(self) -> None:
        _clamp(self, "relevance_score", 0.0, 1.0)
        _one_of(self, "source", VALID_CONTEXT_SOURCES)
        object.__setattr__(self, "metadata", json_shapes(self.metadata))
        if not self.key:
            object.__setattr__(self, "key", f"{self.source}:{digest(self.source, self.content)}")

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return len(self.content.encode(errors="surrogatepass"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(Plain):
    """A context that was found and not given to the agent, and why; its text is not kept."""

    key: str
    source: str
    title: str
    relevance_score: float
    why: DropReason


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFailure(Plain):
    """A source that failed or was late; the others went on."""

    source: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionResult(Plain):
    """What a run found, kept, dropped, failed to reach, and wrote."""

    gap: ContextGap
    contexts_retrieved: tuple[RetrievedContext, ...]
    """What the agent gets, best first."""
    injected: bool
    injection_target: str
    """The state key that holds the text."""
    total_context_size: int
    """Bytes of the text."""
    duration_ms: float
    text: str = ""
    """What the agent reads. In the state it stands in the payload, and is empty here."""
    total_tokens: int = 0
    dropped: tuple[Dropped, ...] = ()
    failures: tuple[SourceFailure, ...] = ()
    pending: tuple[ContextGap, ...] = ()
    """Further gaps, served in later steps."""

    def __post_init__(self) -> None:
        _freeze(self, "contexts_retrieved", "dropped", "failures", "pending")
        _clamp(self, "total_context_size", 0, None)
        _clamp(self, "duration_ms", 0.0, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionRecord(Plain):
    """The slim trace of one gap in the state's history: no text, so that checkpoints stay small."""

    gap_id: str
    need: str
    agent: str
    reason: GapReason
    status: RecordStatus
    at: str
    attempts: int = 0
    keys: tuple[str, ...] = ()
    """The contexts that were injected."""
    scores: tuple[float, ...] = ()
    size: int = 0
    text_digest: str = ""
    after: str = ""
    """The message after which it was given: what the agent no longer sees may be given again."""

    def __post_init__(self) -> None:
        _freeze(self, "keys", "scores")


@dataclass(frozen=True, slots=True, kw_only=True)
class SMOutput(Plain):
    """What the scrum master observed and decided in one step, for the audit trail."""

    observed_at: str
    current_agent: str
    circular_logic_detected: bool
    gate_blocked: bool
    gaps: tuple[ContextGap, ...]
    injection_result: InjectionRecord | None
    processing_notes: str
    recent_exchanges: tuple[str, ...] = ()
    """The last handoffs, as `source→target`."""

    def __post_init__(self) -> None:
        _freeze(self, "gaps", "recent_exchanges")


TurnKind: TypeAlias = Literal["agent", "human", "tool", "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool that an agent asked for, with its arguments as canonical JSON."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message, by whom, and what of it is that speaker's own prose."""

    id: str
    agent: str
    kind: TurnKind
    text: str
    prose: str
    tool_calls: tuple[ToolCall, ...] = ()
    time: float | None = None
    """Seconds since the epoch, where the message tells."""
    marks: dict[str, Any] = field(default_factory=dict, hash=False)
    """The message's `additional_kwargs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """Work going from one agent to another."""

    source: str
    target: str
    turn: str
    back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something an agent needs to know and has not been told."""

    asker: str
    text: str
    turn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A quality gate that turned the work back."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """An agent's own word, or its handoff's, that it lacks something."""

    agent: str
    need: str
    origin: str
    """The message that says so, or the state key."""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """The same thing again and again, with nothing new in between."""

    agent: str
    topic: str
    count: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long an agent's latest turn took against its usual."""

    agent: str
    seconds: float
    usual: float
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the state says about the team."""

    now: str
    turns: tuple[Turn, ...] = ()
    current_agent: str = ""
    handoff_target: str = ""
    """The agent that work is being handed to and that has not spoken yet."""
    handoffs: tuple[Handoff, ...] = ()
    questions: tuple[Question, ...] = ()
    gates: tuple[Gate, ...] = ()
    gate_blocked: bool = False
    flags: tuple[Flag, ...] = ()
    cycles: tuple[Cycle, ...] = ()
    paces: tuple[Pace, ...] = ()
    task: str = ""
    """What the team works on: the current story, or the person's request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to look for."""

    text: str
    agent: str
    now: str
    k: int = 20
    """How many contexts a source should offer at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResult(Plain):
    """A memory found again. Scores run from 0 to 1, higher is better."""

    key: str
    content: str
    score: float
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)


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
        _freeze(self, "artifact_ids")
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
        _freeze(self, "examples", "source_files")
        _clamp(self, "confidence", 0.0, 1.0)

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


def instant(timestamp: str) -> float:
    """Seconds since the epoch of an ISO timestamp, taken as UTC if it names no zone; minus infinity if it is none."""
    try:
        parsed = datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return float("-inf")
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def _freeze(value: object, *names: str) -> None:
    # A checkpoint gives lists back where tuples went in.
    for name in names:
        object.__setattr__(value, name, tuple(getattr(value, name)))


def _clamp(value: object, name: str, low: float, high: float | None) -> None:
    given = getattr(value, name)
    kept = max(low, given) if given == given else low
    kept = min(kept, high) if high is not None else kept
    if kept != given:
        logger.warning("value.clamped", type=type(value).__name__, field=name, value=given, kept=kept)
        object.__setattr__(value, name, kept)


def _one_of(value: object, name: str, valid: frozenset[str]) -> None:
    given = getattr(value, name)
    if given not in valid:
        logger.warning("value.unknown", type=type(value).__name__, field=name, value=given, valid=sorted(valid))
