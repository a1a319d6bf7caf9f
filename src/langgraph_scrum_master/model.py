"""What flows between the stages: frozen, slotted, keyword-only, and equal again after a checkpoint.

Checkpoints name these types by module and name: never move or rename one, and give every new field a default.
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
"""Where a built-in piece of context came from, or what it is: an alert, what a session came to, a hint on times."""

SourceName: TypeAlias = Literal["memory", "state", "sprint", "architecture", "experiences", "code", "commits", "values"]
"""What the built-in sources that serve gaps are called."""

GapReason: TypeAlias = Literal[
    "clarification_requested", "circular_logic", "long_cycle_time", "gate_failure", "explicit_flag", "assumption_made"
]
"""Why an agent is believed to lack context; also the order in which equally confident gaps are served."""

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
"""Why a context that was found is not given to the agent."""

RecordStatus: TypeAlias = Literal["pending", "closed", "abstained", "injected"]
"""How far a gap got: waiting for its turn, gone by itself meanwhile, looked for in vain, or served."""

InjectionOutcome: TypeAlias = Literal["", "open", "ignored", "asked_again", "used"]
"""What the agent's next turns show: nothing yet, that it went on without the text, that the same need came up again, or
that it took up what only the text said. Empty where nothing was injected."""

INJECTION_OUTCOMES: tuple[InjectionOutcome, ...] = get_args(InjectionOutcome)
"""In the order in which one takes the place of another."""

VALID_CONTEXT_SOURCES: frozenset[str] = frozenset(get_args(SourceName))
"""The built-in sources that serve gaps."""

VALID_GAP_REASONS: frozenset[str] = frozenset(get_args(GapReason))
"""The built-in reasons. Gaps of others are kept, with a warning."""

HIGH_AGREEMENT = 2.5
"""The weighted agreement from which a memory is a close match: several spaces agree on it."""

RECORD_STATUSES: tuple[RecordStatus, ...] = get_args(RecordStatus)
"""In the order in which a gap gets on."""


def digest(*parts: str) -> str:
    """A short name for these texts, the same in every run."""
    return blake2s("\x1f".join(parts).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def utc_now() -> str:
    """The current time as ISO 8601; the engine itself passes its own clock's."""
    return datetime.now(UTC).isoformat()


Addressee: TypeAlias = Literal["user", "team", "nobody"]
"""Who is asked: the user, who alone can answer; the team; or nobody in particular."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span(Plain):
    """A part of a message's text."""

    message: str
    """The message's id."""
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextGap(Plain):
    """Why which agent needs what, with the evidence."""

    gap_id: str
    agent: str
    reason: GapReason | str
    context_query: str
    confidence: float
    indicators: tuple[str, ...] = ()
    """The evidence, each as `what@message`, or `what` where no message shows it."""
    detected_at: str = field(default_factory=utc_now)
    missing: tuple[str, ...] = ()
    """What is known to be missing, by name."""
    parts: tuple[str, ...] = ()
    """The single things that the query asks for, where there are several: each is looked for by itself."""
    about: str = ""
    """What the need is known by, where its words change from turn to turn."""
    whom: Addressee | str = ""
    """Who was asked, where somebody asks: only the user can answer what is asked of the user."""
    spans: tuple[Span, ...] = ()
    """Where in the messages the need is."""

    def __post_init__(self) -> None:
        freeze(self, "indicators", "missing", "parts", "spans")
        clamp(self, "confidence", 0.0, 1.0)
        _one_of(self, "reason", VALID_GAP_REASONS)

    @property
    def need(self) -> str:
        """The same agent asking for the same thing again has the same need, whatever message shows it."""
        return digest(self.agent, self.about or " ".join(self.context_query.lower().split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedContext(Plain):
    """One piece of context, from anywhere."""

    source: ContextSource | str
    """Where it came from: one of the built-in names, or the name of a source of your own. Warned of if empty."""
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
    size: int = 0
    """Bytes of the content, also where the content itself was left out."""
    strengths: dict[str, float] = field(default_factory=dict, hash=False)
    """Why it was found, if it is a memory: how like the query it is in each space that had something to say."""
    weighted_agreement: float = 0.0
    """Those together, each by the weight of its space, up to 8.5."""
    priority: float = 0.0
    """What it was ordered by, where that is more than its relevance."""

    def __post_init__(self) -> None:
        clamp(self, "relevance_score", 0.0, 1.0)
        _named(self, "source")
        object.__setattr__(self, "metadata", json_shapes(self.metadata))
        if self.content:
            object.__setattr__(self, "size", len(self.content.encode(errors="surrogatepass")))
        if not self.key:
            object.__setattr__(self, "key", f"{self.source}:{digest(self.source, self.content)}")


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
    late: bool = False

    @classmethod
    def of(cls, source: str, error: BaseException, deadline: float) -> SourceFailure:
        """What became of a source that raised, or had no answer when its seconds were over."""
        late = isinstance(error, TimeoutError)
        told = f"late: no answer within {deadline:g} s" if late else f"{type(error).__name__}: {error}"
        return cls(source=source, error=told, late=late)


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceAlert(Plain):
    """That a query is about something else than what was worked on lately."""

    space: str
    """In which way it is unlike, such as E1."""
    space_name: str
    memory_id: str
    """Of what was worked on lately, what is most like the query, and still is not."""
    recent_memory_summary: str
    similarity: float


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
    """What the agent reads."""
    total_tokens: int = 0
    dropped: tuple[Dropped, ...] = ()
    failures: tuple[SourceFailure, ...] = ()
    pending: tuple[ContextGap, ...] = ()
    """Further gaps, served in later steps."""
    after: str = ""
    """The last message that was there."""
    escalated: bool = False
    """Whether the need came up again after all attempts: context did not help."""
    model_tokens: int = 0
    """Tokens that a chat model has used for it."""

    def __post_init__(self) -> None:
        freeze(self, "contexts_retrieved", "dropped", "failures", "pending")
        clamp(self, "total_context_size", 0, None)
        clamp(self, "duration_ms", 0.0, None)

    def slim(self) -> InjectionResult:
        """The same without any text: in the state the text stands once, in the payload."""
        contexts = tuple(replace(context, content="") for context in self.contexts_retrieved)
        return replace(self, text="", contexts_retrieved=contexts)


SnapshotOrigin: TypeAlias = Literal["run", "checkpoint", "state", "messages"]
"""Where a snapshot is from: a running scrum master, a checkpoint, a bare state, or a list of messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Plain):
    """A moment of a run, on disk: what the scrum master could see, what it had, and what came of it."""

    state: dict[str, Any] = field(hash=False)
    """The state's keys that are read, as JSON shapes."""
    at: str = ""
    """What the clock said; empty if that is not known."""
    thread: str = ""
    step: int = 0
    origin: SnapshotOrigin | str = "state"
    config: dict[str, Any] | None = field(default=None, hash=False)
    sources: tuple[str, ...] = ()
    """The sources that were asked, by name."""
    ran: bool = False
    """Whether the scrum master looked at it: if so, no result means that it found no gap."""
    result: InjectionResult | None = None
    written_by: str = ""
    """The version that wrote it."""

    def __post_init__(self) -> None:
        freeze(self, "sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionRecord(Plain):
    """The slim trace of one gap in the state's history: no text, so that checkpoints stay small."""

    gap_id: str
    need: str
    agent: str
    reason: GapReason | str
    status: RecordStatus
    at: str
    attempts: int = 0
    failed: int = 0
    """Tries that found nothing because a source failed."""
    keys: tuple[str, ...] = ()
    """The contexts that were injected."""
    scores: tuple[float, ...] = ()
    size: int = 0
    text_digest: str = ""
    after: str = ""
    """The message after which it was given: what the agent no longer sees may be given again."""
    escalated: bool = False
    tokens: int = 0
    """Of the text that was injected."""
    news: tuple[str, ...] = ()
    """Digests of words that only the injected text said: an agent that says them has used it."""
    outcome: InjectionOutcome | str = ""
    """What became of the text that was injected."""

    def __post_init__(self) -> None:
        freeze(self, "keys", "scores", "news")


AlertSeverity: TypeAlias = Literal["info", "warning", "critical"]
"""How bad it is."""

Health: TypeAlias = Literal["healthy", "warning", "degraded", "critical"]
"""Two warnings make degraded, one critical alert critical."""

Severity: TypeAlias = Literal["low", "medium", "high", "critical"]
"""By how often a cycle went round."""

Intervention: TypeAlias = Literal["break_cycle", "inject_context", "escalate_human", "none"]
"""What a cycle calls for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthAlert(Plain):
    """A figure that is over its threshold."""

    severity: AlertSeverity | str
    alert_type: str
    message: str
    affected_agent: str = ""
    metric_value: float = 0.0
    threshold_value: float = 0.0
    triggered_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthMetrics(Plain):
    """How long the agents are idle and take, in seconds, and how many turns a minute they make."""

    agent_idle_times: dict[str, float] = field(default_factory=dict, hash=False)
    agent_cycle_times: dict[str, float] = field(default_factory=dict, hash=False)
    """The usual of each, its median: a long tail does not move it."""
    agent_churn_rates: dict[str, float] = field(default_factory=dict, hash=False)
    overall_cycle_time: float = 0.0
    overall_churn_rate: float = 0.0
    unproductive_churn_rate: float = 0.0
    """Turns a minute that are part of a cycle."""
    cycle_time_percentiles: dict[str, float] = field(default_factory=dict, hash=False)
    agent_snapshots: dict[str, dict[str, Any]] = field(default_factory=dict, hash=False)
    """For each agent: `turns` in the window, `last_turn` and `last_turn_at`."""
    collected_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthStatus(Plain):
    """How the team is doing."""

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
    """One cycle, in the words of the state's `cycle_analysis`."""

    pattern_type: str
    """`agent_pair`, `multi_agent`, `topic_cycle`, or the kind of a cycle that one agent is in alone."""
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
    """The cycles that the team is in, and what they call for."""

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
    """The handoffs in the window that was looked at."""
    escalation_triggered: bool = False
    escalation_reason: str = ""
    health_status: HealthStatus | None = None
    cycle_analysis: CycleAnalysis | None = None

    def __post_init__(self) -> None:
        freeze(self, "gaps", "recent_exchanges")


TurnKind: TypeAlias = Literal["agent", "human", "tool", "system"]
"""Who speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool that an agent asked for, with its arguments as canonical JSON."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message, and by whom."""

    id: str
    agent: str
    kind: TurnKind
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    time: float | None = None
    """Seconds since the epoch, where the message tells."""
    marks: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The message's `additional_kwargs`."""
    answers: str = ""
    """The id of the tool call that a tool's message answers."""

    @property
    def prose(self) -> str:
        """The speaker's own words: no code, links, quotations, tables and tracebacks."""
        return prose(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """Work going from one agent to another."""

    source: str
    target: str
    turn: str
    back: bool = False
    what: str = ""
    """What goes along with it, in the words of whoever hands over."""
    time: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something an agent needs to know and has not been told."""

    asker: str
    text: str
    turn: str
    addressee: str = ""
    """The agent that was asked, where that is said."""
    since: float | None = None
    """Seconds since the epoch, where the message tells."""
    whom: Addressee = "team"
    start: int = 0
    end: int = 0
    """Where in the turn's text it is asked."""
    probability: float = 1.0
    evidence: str = ""
    """What fired: the model with its probability, or an exact form, and what confirmed it."""
    confirmed: bool = True
    """Whether it is more than likely, or something has confirmed it."""
    doubtful: bool = False
    """Whether its probability alone does not make it a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A quality gate that turned the work back."""

    name: str
    reason: str
    missing: tuple[str, ...] = ()
    """What it wants to know, as its reason says it; nothing if it wants something else."""
    agent: str = ""
    """The agent whose work was turned back, where that is known."""
    turn: str = ""
    """The message in which it did, if it was one."""
    unnamed: bool = False
    """Whether it only says that something is missing, not what."""

    @property
    def indicator(self) -> str:
        """How a gap names it as its evidence."""
        return f"gate {self.name or 'gate_failure'}" + (f"@{self.turn}" if self.turn else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """An agent's own word, or its handoff's, that it lacks something."""

    agent: str
    need: str
    origin: str
    """The message that says so, or the state key."""
    missing: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """The single things in the need, where there are several."""
    unnamed: bool = False
    """Whether it only says that something is missing: the need is then what the agent works on."""


CycleKind: TypeAlias = Literal["repeated_turn", "repeated_call", "hub", "topic_cycle", "reported"]
"""An agent says the same, calls the same, does the same for a hub; a team says nothing new; or the state tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """The same thing again and again, with nothing new in between."""

    agent: str
    topic: str
    count: int
    """How often it came."""
    evidence: tuple[str, ...]
    kind: CycleKind = "repeated_turn"
    agents: tuple[str, ...] = ()
    """All that go round in it."""
    about: str = ""
    """What it is known by, where its words change from turn to turn."""
    first: float | None = None
    """Seconds since the epoch, where the messages tell."""
    last: float | None = None
    news: float = 0.0
    """The share of words in its last round that were new."""
    confidence: float = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long an agent's latest turn took against its usual."""

    agent: str
    seconds: float
    usual: float
    limit: float
    """More than this is far from usual."""
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the state says about the team."""

    now: str
    turns: tuple[Turn, ...] = ()
    """The last messages, oldest first."""
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
    cycle_times: Mapping[str, tuple[float, ...]] = field(default_factory=dict, hash=False)
    """Seconds that the latest turns of each agent took, also of turns that are no longer in the history."""
    figures: Mapping[str, Any] | None = field(default=None, hash=False)
    """The running figures to keep in the state, when it is time to."""
    reported_health: HealthStatus | None = None
    """What the state's own `health_status` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to look for."""

    text: str
    agent: str
    now: str
    k: int = 20
    """How many contexts a source should offer at most."""
    around: tuple[tuple[str, float], ...] = ()
    """What was said around it, which tells what it is about, each with how much that counts: 1 as much as the text."""
    session: str = ""
    """The session in which it is asked, where there are such."""
    domain: str = ""
    """The kind of work that a gate has turned back, if one has: what went wrong in it before serves too."""
    failure: str = ""
    """What the gate said, and of what."""


def instant(timestamp: str) -> float:
    """Seconds since the epoch of an ISO timestamp, taken as UTC if it names no zone; minus infinity if it is none."""
    try:
        parsed = datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return float("-inf")
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def freeze(value: object, *names: str) -> None:
    """Make the named fields tuples: a checkpoint gives lists back where tuples went in."""
    for name in names:
        object.__setattr__(value, name, tuple(getattr(value, name)))


def clamp(value: object, name: str, low: float, high: float | None) -> None:
    """Bring the named field into its range, with a warning if it was out of it."""
    given = getattr(value, name)
    # As nearly all are.
    if type(given) is type(low) and low <= given and (high is None or given <= high):
        return
    number = _as_number(given, type(low))
    kept = low if number is None or number != number else max(low, number if high is None else min(number, high))
    if kept != given:
        logger.warning("value.clamped", type=type(value).__name__, field=name, value=given, kept=kept)
    # Also where it was in range: a number of another library would not go into a checkpoint.
    object.__setattr__(value, name, kept)


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
    """Warn unless the named field holds a name: which names there are is up to those who plug something in."""
    given = getattr(value, name)
    if not isinstance(given, str) or not given.strip():
        logger.warning("value.unknown", type=type(value).__name__, field=name, value=given, valid="any name")


def iso(seconds: float) -> str:
    """The time as ISO 8601; nothing if there is none such."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
