"""The data types that flow between the stages. They are frozen, and equal to themselves after a checkpoint round trip.

Checkpoints refer to these types by module and name: do not move or rename one, and give every new field a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2s
from typing import Any, Literal, TypeAlias, get_args

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.serialisation import Plain, json_shapes
from langgraph_scrum_master.text.prose import prose

ContextSource: TypeAlias = Literal[
    "memory",
    "state",
    "sprint",
    "architecture",
    "code",
    "commit",
    "experience",
    "value",
    "alert",
    "session",
    "hint",
]
"""Where a built-in context came from, or what it is: an alert, a session summary, a hint about times."""

SourceName: TypeAlias = Literal["memory", "state", "sprint", "architecture", "experiences", "code", "commits", "values"]
"""Names of the built-in sources that serve gaps."""

GapReason: TypeAlias = Literal[
    "clarification_requested", "circular_logic", "long_cycle_time", "gate_failure", "explicit_flag", "assumption_made"
]
"""Why an agent seems to lack context; also the order in which equally confident gaps are served."""

DropReason: TypeAlias = Literal[
    "below_bar",
    "far_below_best",
    "only_a_heading",
    "already_seen",
    "duplicate",
    "over_items",
    "over_budget",
    "not_picked",
]
"""Why a retrieved context was not injected."""

RecordStatus: TypeAlias = Literal["pending", "closed", "abstained", "injected"]
"""State of a gap: waiting, resolved without us, searched without a result, or served."""

InjectionOutcome: TypeAlias = Literal["", "open", "ignored", "asked_again", "used"]
"""What the agent's next turns show: nothing yet, that it ignored the text, that the same need came up again, or that it
used something that only the text said. Empty if nothing was injected."""

INJECTION_OUTCOMES: tuple[InjectionOutcome, ...] = get_args(InjectionOutcome)
"""In increasing precedence: a later one replaces an earlier one."""

VALID_CONTEXT_SOURCES: frozenset[str] = frozenset(get_args(SourceName))
"""The built-in sources that serve gaps."""

VALID_GAP_REASONS: frozenset[str] = frozenset(get_args(GapReason))
"""The built-in reasons. Other reasons are accepted with a warning."""

HIGH_AGREEMENT = 2.5
"""Weighted agreement from which a memory is a close match: several spaces agree on it."""

RECORD_STATUSES: tuple[RecordStatus, ...] = get_args(RecordStatus)
"""In the order in which a gap progresses."""


def digest(*parts: str) -> str:
    """A short, stable hash of the texts."""
    return blake2s("\x1f".join(parts).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def utc_now() -> str:
    """The current time as ISO 8601. The engine passes the time of its clock instead."""
    return datetime.now(UTC).isoformat()


Addressee: TypeAlias = Literal["user", "team", "nobody"]
"""Who a question is for: the user (only they can answer), the team, or nobody in particular."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span(Plain):
    """A part of a message's text."""

    message: str
    """The message's id."""
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextGap(Plain):
    """Evidence that an agent lacks context: who, what and why."""

    gap_id: str
    agent: str
    reason: GapReason | str
    context_query: str
    confidence: float
    indicators: tuple[str, ...] = ()
    """The evidence, each as `what@message`, or just `what` if it comes from no message."""
    detected_at: str = field(default_factory=utc_now)
    missing: tuple[str, ...] = ()
    """Names of what is missing, if known."""
    parts: tuple[str, ...] = ()
    """The separate needs, if there are several: each is searched for on its own."""
    about: str = ""
    """Identifies the need if its wording changes from turn to turn."""
    whom: Addressee | str = ""
    """Who the question is for, if the gap is a question. Only the user can answer a question for the user."""
    spans: tuple[Span, ...] = ()
    """Where the messages state the need."""

    def __post_init__(self) -> None:
        freeze(self, "indicators", "missing", "parts", "spans")
        clamp(self, "confidence", 0.0, 1.0)
        _one_of(self, "reason", VALID_GAP_REASONS)
        _not_empty(self, "gap_id", "agent", "context_query")

    @property
    def need(self) -> str:
        """Id of the need: equal whenever the same agent asks for the same thing, in any message."""
        return digest(self.agent, self.about or " ".join(self.context_query.lower().split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedContext(Plain):
    """One piece of context from a source."""

    source: ContextSource | str
    """Where it came from: a built-in name, or the name of a custom source. An empty name logs a warning."""
    content: str
    relevance_score: float
    """Calibrated: from 0.7 an item is worth its tokens."""
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    retrieved_at: str = field(default_factory=utc_now)
    key: str = ""
    """Its id in the source; derived from source and content if there is none."""
    title: str = ""
    created_at: str = ""
    truncated: bool = False
    size: int = 0
    """Size of the content in bytes, even if the content itself was left out."""
    strengths: dict[str, float] = field(default_factory=dict, hash=False)
    """For a memory, its similarity to the query in each space that applies."""
    weighted_agreement: float = 0.0
    """Weighted sum of the strengths, at most 8.5."""
    priority: float = 0.0
    """The sort key, if that is not the relevance alone."""

    def __post_init__(self) -> None:
        clamp(self, "relevance_score", 0.0, 1.0)
        _named(self, "source")
        object.__setattr__(self, "metadata", json_shapes(self.metadata))
        if self.content:
            object.__setattr__(self, "size", len(self.content.encode(errors="surrogatepass")))
        # With a size, the content was left out.
        if not self.size or self.content.isspace():
            _not_empty(self, "content")
        if not self.key:
            object.__setattr__(self, "key", f"{self.source}:{digest(self.source, self.content)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(Plain):
    """A retrieved context that was not injected, and why; without its text."""

    key: str
    source: str
    title: str
    relevance_score: float
    why: DropReason


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFailure(Plain):
    """A source that failed or missed the deadline."""

    source: str
    error: str
    late: bool = False

    @classmethod
    def of(cls, source: str, error: BaseException, deadline: float) -> SourceFailure:
        """The failure of a source that raised, or did not answer within the deadline."""
        late = isinstance(error, TimeoutError)
        message = f"late: no answer within {deadline:g} s" if late else f"{type(error).__name__}: {error}"
        return cls(source=source, error=message, late=late)


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionResult(Plain):
    """What one step retrieved, dropped and injected, and which sources failed."""

    gap: ContextGap
    contexts_retrieved: tuple[RetrievedContext, ...]
    """The injected contexts, best first."""
    injected: bool
    injection_target: str
    """The state key with the text."""
    total_context_size: int
    """Size of the text in bytes."""
    duration_ms: float
    text: str = ""
    """The injected text."""
    total_tokens: int = 0
    dropped: tuple[Dropped, ...] = ()
    failures: tuple[SourceFailure, ...] = ()
    pending: tuple[ContextGap, ...] = ()
    """Other gaps, to be served in later steps."""
    after: str = ""
    """Id of the last message before the injection."""
    escalated: bool = False
    """Whether the need came up again after `max_attempts`."""
    model_tokens: int = 0
    """Tokens used by a chat model."""

    def __post_init__(self) -> None:
        freeze(self, "contexts_retrieved", "dropped", "failures", "pending")
        clamp(self, "total_context_size", 0, None)
        clamp(self, "duration_ms", 0.0, None)
        if self.injected:
            _not_empty(self, "injection_target", "contexts_retrieved")

    def slim(self) -> InjectionResult:
        """A copy without text. In the state, only the payload has the text."""
        contexts = tuple(replace(context, content="") for context in self.contexts_retrieved)
        return replace(self, text="", contexts_retrieved=contexts)


SnapshotOrigin: TypeAlias = Literal["run", "checkpoint", "state", "messages"]
"""Where a snapshot comes from: a running scrum master, a checkpoint, a plain state, or a list of messages."""


ExpectedOutcome: TypeAlias = Literal["silent", "injected", "abstained"]
"""What a step should do: find no gap, inject, or find nothing relevant enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation(Plain):
    """What a step should do, where its recorded result is wrong."""

    outcome: ExpectedOutcome
    keys: tuple[str, ...] = ()
    """Keys of contexts that must be injected."""
    without: tuple[str, ...] = ()
    """Keys of contexts that must not be injected."""
    note: str = ""

    def __post_init__(self) -> None:
        freeze(self, "keys", "without")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Plain):
    """One step of a run on disk: the state, the settings and the result."""

    state: dict[str, Any] = field(hash=False)
    """The state keys that the scrum master reads, as JSON values."""
    at: str = ""
    """The time of the step; empty if unknown."""
    thread: str = ""
    step: int = 0
    origin: SnapshotOrigin | str = "state"
    config: dict[str, Any] | None = field(default=None, hash=False)
    sources: tuple[str, ...] = ()
    """Names of the sources that were searched."""
    ran: bool = False
    """Whether the scrum master evaluated the state: if so, no result means no gap."""
    result: InjectionResult | None = None
    written_by: str = ""
    """The version that wrote it."""
    expected: Expectation | None = None
    """What should have happened, where the recorded result is wrong."""

    def __post_init__(self) -> None:
        freeze(self, "sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionRecord(Plain):
    """The record of one gap in the state's history, without text to keep checkpoints small."""

    gap_id: str
    need: str
    agent: str
    reason: GapReason | str
    status: RecordStatus
    at: str
    attempts: int = 0
    failed: int = 0
    """Attempts that found nothing because a source failed."""
    keys: tuple[str, ...] = ()
    """Keys of the injected contexts."""
    scores: tuple[float, ...] = ()
    size: int = 0
    text_digest: str = ""
    after: str = ""
    """Id of the last message before the injection: text that has left the agent's view may be injected again."""
    escalated: bool = False
    tokens: int = 0
    """Size of the injected text."""
    news: tuple[str, ...] = ()
    """Digests of words that only the injected text contained: an agent that says them has used it."""
    outcome: InjectionOutcome | str = ""
    """What the agent did with the injected text."""

    def __post_init__(self) -> None:
        freeze(self, "keys", "scores", "news")


AlertSeverity: TypeAlias = Literal["info", "warning", "critical"]
"""Severity of a health alert."""

Health: TypeAlias = Literal["healthy", "warning", "degraded", "critical"]
"""Two warnings make a team degraded; one critical alert makes it critical."""

Severity: TypeAlias = Literal["low", "medium", "high", "critical"]
"""Severity of a cycle, by its number of rounds."""

Intervention: TypeAlias = Literal["break_cycle", "inject_context", "escalate_human", "none"]
"""Suggested reaction to a cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthAlert(Plain):
    """A metric above its threshold."""

    severity: AlertSeverity | str
    alert_type: str
    message: str
    affected_agent: str = ""
    metric_value: float = 0.0
    threshold_value: float = 0.0
    triggered_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthMetrics(Plain):
    """Idle and cycle times in seconds, and turns per minute."""

    agent_idle_times: dict[str, float] = field(default_factory=dict, hash=False)
    agent_cycle_times: dict[str, float] = field(default_factory=dict, hash=False)
    """Median of each agent."""
    agent_churn_rates: dict[str, float] = field(default_factory=dict, hash=False)
    overall_cycle_time: float = 0.0
    overall_churn_rate: float = 0.0
    unproductive_churn_rate: float = 0.0
    """Turns per minute that are part of a cycle."""
    cycle_time_percentiles: dict[str, float] = field(default_factory=dict, hash=False)
    agent_snapshots: dict[str, dict[str, Any]] = field(default_factory=dict, hash=False)
    """For each agent: `turns` in the window, `last_turn` and `last_turn_at`."""
    collected_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthStatus(Plain):
    """Health of the team."""

    status: Health | str
    summary: str = ""
    is_healthy: bool = True
    evaluated_at: str = ""
    metrics: HealthMetrics = field(default_factory=HealthMetrics)
    alerts: tuple[HealthAlert, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, "alerts")


@dataclass(frozen=True, slots=True, kw_only=True)
class CyclePattern(Plain):
    """One cycle, in the format of the state key `cycle_analysis`."""

    pattern_type: str
    """`agent_pair`, `multi_agent`, `topic_cycle`, or the `CycleKind` of a single agent's cycle."""
    agents_involved: tuple[str, ...] = ()
    topic: str = ""
    exchange_count: int = 0
    first_exchange_at: str = ""
    last_exchange_at: str = ""
    duration_seconds: float = 0.0
    severity: Severity | str = "low"
    news: float = 0.0
    """The share of words in its last round that were new."""

    def __post_init__(self) -> None:
        freeze(self, "agents_involved")


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleAnalysis(Plain):
    """The team's current cycles, and the suggested reaction."""

    circular_detected: bool
    patterns_found: tuple[CyclePattern, ...] = ()
    intervention_strategy: Intervention | str = "none"
    intervention_message: str = ""
    escalation_triggered: bool = False
    escalation_reason: str = ""
    topic_exchanges: dict[str, int] = field(default_factory=dict, hash=False)
    total_exchange_count: int = 0
    analyzed_at: str = ""

    def __post_init__(self) -> None:
        freeze(self, "patterns_found")


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
    exchange_count: int = 0
    """Number of handoffs in the observed window."""
    escalation_triggered: bool = False
    escalation_reason: str = ""
    health_status: HealthStatus | None = None
    cycle_analysis: CycleAnalysis | None = None

    def __post_init__(self) -> None:
        freeze(self, "gaps", "recent_exchanges")


TurnKind: TypeAlias = Literal["agent", "human", "tool", "system"]
"""Who sent a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call of an agent, with its arguments as canonical JSON."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message and its sender."""

    id: str
    agent: str
    kind: TurnKind
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    time: float | None = None
    """Seconds since the epoch, if the message has a time."""
    marks: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The message's `additional_kwargs`."""
    answers: str = ""
    """Id of the tool call that this tool message answers."""

    @property
    def prose(self) -> str:
        """The text without code, links, quotations, tables and tracebacks."""
        return prose(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """A handoff from one agent to another."""

    source: str
    target: str
    turn: str
    back: bool = False
    what: str = ""
    """What is handed over, in the words of the source agent."""
    time: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An open question of an agent."""

    asker: str
    text: str
    turn: str
    addressee: str = ""
    """The agent that was asked, if the question names one."""
    since: float | None = None
    """Seconds since the epoch, if the message has a time."""
    whom: Addressee = "team"
    start: int = 0
    end: int = 0
    """End of the question in the turn's text."""
    probability: float = 1.0
    evidence: str = ""
    """What detected it (the model with its probability, or an explicit signal) and what confirmed it."""
    confirmed: bool = True
    """Whether it is certain enough by itself, or later turns confirmed it."""
    doubtful: bool = False
    """Whether its probability alone is not enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A quality gate that rejected the work."""

    name: str
    reason: str
    missing: tuple[str, ...] = ()
    """The missing information named in the reason; empty if the gate failed for another reason."""
    agent: str = ""
    """The agent whose work was rejected, if known."""
    turn: str = ""
    """Id of the message with the rejection, if there is one."""
    unnamed: bool = False
    """Whether it only says that something is missing, not what."""

    @property
    def indicator(self) -> str:
        """The gate as an indicator of a gap."""
        return f"gate {self.name or 'gate_failure'}" + (f"@{self.turn}" if self.turn else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """An explicit statement by an agent or a handoff that something is missing."""

    agent: str
    need: str
    origin: str
    """The message or the state key with the statement."""
    missing: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """The separate needs, if there are several."""
    unnamed: bool = False
    """Whether it only says that something is missing: the need is then the agent's current work."""


CycleKind: TypeAlias = Literal["repeated_turn", "repeated_call", "hub", "topic_cycle", "reported"]
"""Repeated statements, tool calls or rounds of a hub; a team that says nothing new; or a report in the state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """A repetition with nothing new in between."""

    agent: str
    topic: str
    count: int
    """Number of repetitions."""
    evidence: tuple[str, ...]
    kind: CycleKind = "repeated_turn"
    agents: tuple[str, ...] = ()
    """All agents involved."""
    about: str = ""
    """Identifies the cycle if its wording changes from turn to turn."""
    first: float | None = None
    """Seconds since the epoch, if the messages have times."""
    last: float | None = None
    news: float = 0.0
    """The share of words in its last round that were new."""
    confidence: float = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Duration of an agent's latest turn, compared with its usual."""

    agent: str
    seconds: float
    usual: float
    limit: float
    """Durations above this are unusual."""
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the state says about the team."""

    now: str
    turns: tuple[Turn, ...] = ()
    """The last messages, oldest first."""
    current_agent: str = ""
    handoff_target: str = ""
    """The target of a pending handoff; it has not spoken yet."""
    handoffs: tuple[Handoff, ...] = ()
    questions: tuple[Question, ...] = ()
    gates: tuple[Gate, ...] = ()
    gate_blocked: bool = False
    flags: tuple[Flag, ...] = ()
    cycles: tuple[Cycle, ...] = ()
    paces: tuple[Pace, ...] = ()
    task: str = ""
    """The team's task: the current story, or the user's request."""
    cycle_times: Mapping[str, tuple[float, ...]] = field(default_factory=dict, hash=False)
    """Durations of each agent's latest turns in seconds, including turns that are no longer in the history."""
    figures: Mapping[str, Any] | None = field(default=None, hash=False)
    """The running statistics to write to the state, when they are due."""
    reported_health: HealthStatus | None = None
    """What the state's own `health_status` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search query for a gap."""

    text: str
    agent: str
    now: str
    k: int = 20
    """Maximum number of contexts per source."""
    around: tuple[tuple[str, float], ...] = ()
    """Texts around the need that tell its topic, each with a weight; 1 is the weight of the text itself."""
    session: str = ""
    """The session of the query, if there is one."""
    domain: str = ""
    """The kind of work that a gate rejected, if one did: past failures in it are relevant too."""
    failure: str = ""
    """The gate's message and its subject."""


def instant(timestamp: str) -> float:
    """Seconds since the epoch of an ISO timestamp, UTC by default; minus infinity if it is invalid."""
    try:
        parsed = datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return float("-inf")
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def freeze(value: object, *names: str) -> None:
    """Convert the named fields to tuples: checkpoints return tuples as lists."""
    for name in names:
        object.__setattr__(value, name, tuple(getattr(value, name)))


def clamp(value: object, name: str, low: float, high: float | None) -> None:
    """Clamp the named field to its range, with a warning if it changes."""
    given = getattr(value, name)
    # The common case.
    if type(given) is type(low) and low <= given and (high is None or given <= high):
        return
    number = _as_number(given, type(low))
    clamped = low if number is None or number != number else max(low, number if high is None else min(number, high))
    if clamped != given:
        logger.warning("value.clamped", type=type(value).__name__, field=name, value=given, kept=clamped)
    # Set it in any case: checkpoints cannot serialise number types of other libraries.
    object.__setattr__(value, name, clamped)


def _as_number(given: Any, kind: type[float]) -> float | None:
    try:
        return kind(given)
    except (TypeError, ValueError, OverflowError):
        return None


def _one_of(value: object, name: str, valid: frozenset[str]) -> None:
    given = getattr(value, name)
    if given not in valid:
        logger.warning("value.unknown", type=type(value).__name__, field=name, value=given, valid=sorted(valid))


def _named(value: object, name: str) -> None:
    """Warn unless the named field is a non-empty string. Any name is valid: custom sources choose theirs."""
    given = getattr(value, name)
    if not isinstance(given, str) or not given.strip():
        logger.warning("value.unknown", type=type(value).__name__, field=name, value=given, valid="any name")


def _not_empty(value: object, *names: str) -> None:
    """Warn of each named field that is empty or blank."""
    for name in names:
        given = getattr(value, name)
        if not given or (isinstance(given, str) and given.isspace()):
            logger.warning("value.empty", type=type(value).__name__, field=name)


def iso(seconds: float) -> str:
    """The time as ISO 8601; empty if it is out of range."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
