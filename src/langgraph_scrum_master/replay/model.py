"""The result of a replay: each step with what was observed, considered, kept and dropped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master.model import (
    ContextGap,
    CyclePattern,
    DropReason,
    InjectionResult,
    RetrievedContext,
    TurnKind,
    freeze,
)
from langgraph_scrum_master.replay.tally import Tally
from langgraph_scrum_master.team.record.facts import GapOutcome, outcome

Fate: TypeAlias = Literal["kept"] | DropReason
"""Whether a context was kept, or why it was dropped."""

StepOutcome: TypeAlias = Literal["silent"] | GapOutcome
"""The outcome of a step. Silent if there is no gap."""

RecordedOutcome: TypeAlias = Literal["no record"] | StepOutcome
"""What happened at a step, as far as it was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered(Plain):
    """A context that a source returned, untrimmed and with its scores, and its fate."""

    context: RetrievedContext
    """As the source returned it. The agent may get a trimmed text."""
    fate: Fate


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse(Plain):
    """How much of the budget the injected text uses."""

    items: int
    max_items: int
    tokens: int
    max_tokens: int
    size: int
    """In bytes."""
    max_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Plain):
    """A turn, and the agent it hands over to if its tool calls name one."""

    id: str
    agent: str
    kind: TurnKind
    text: str
    tools: tuple[str, ...] = ()
    """Names of the tools that it calls."""
    time: float | None = None
    """Seconds since the epoch, or None if the message has no time."""
    handed_to: str = ""

    def __post_init__(self) -> None:
        freeze(self, "tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayStep(Plain):
    """One snapshot, evaluated again."""

    where: str
    """The file with the line, or the database."""
    thread: str = ""
    step: int = 0
    at: str = ""
    """The recorded time, or empty if unknown."""
    speaker: str = ""
    said: str = ""
    """The text of the latest message."""
    turns: tuple[Said, ...] = ()
    """The turns since the previous step, of the last 100 messages."""
    cycles: tuple[CyclePattern, ...] = ()
    cycle_turns: tuple[tuple[str, ...], ...] = ()
    """For each cycle, the ids of the turns that repeat each other."""
    gaps: tuple[ContextGap, ...] = ()
    """All open gaps, first the one that is served."""
    given_up: tuple[ContextGap, ...] = ()
    """Gaps that reached `max_attempts`."""
    queries: tuple[str, ...] = ()
    """The queries sent to the sources."""
    considered: tuple[Considered, ...] = ()
    """All contexts that the sources returned, best first."""
    result: InjectionResult | None = None
    """What the replay does, with its settings and its sources. What happened then is in `recorded`."""
    budget: BudgetUse | None = None
    config: dict[str, Any] = field(default_factory=dict, hash=False)
    """The settings of the replay."""
    ran: bool = False
    """Whether the scrum master ran at this step."""
    recorded: InjectionResult | None = None
    """The recorded result, if there is one. From a checkpoint it has no texts."""
    injection_outcome: str = ""
    """Outcome of the recorded injection, from later steps: used, ignored, asked_again or open."""
    unasked: tuple[str, ...] = ()
    """Sources of the recorded run that are missing now."""
    failure: str = ""
    """Why the state could not be observed."""

    def __post_init__(self) -> None:
        freeze(self, "turns", "cycles", "cycle_turns", "gaps", "given_up", "queries", "considered", "unasked")
        object.__setattr__(self, "cycle_turns", tuple(map(tuple, self.cycle_turns)))

    @property
    def place(self) -> tuple[str, str, int]:
        """Identifies the step in other replays of the same source."""
        return self.where, self.thread, self.step

    @property
    def outcome(self) -> StepOutcome:
        """What the replay does: silent, or the outcome of the gap that it serves."""
        return "silent" if self.result is None else outcome(self.result)

    @property
    def recorded_outcome(self) -> RecordedOutcome:
        """What happened then: silent, the outcome of the gap that was served, or that nothing was recorded."""
        if self.recorded is not None:
            return outcome(self.recorded)
        return "silent" if self.ran else "no record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(Plain):
    """Something that could not be replayed."""

    where: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay(Plain):
    """Snapshots, evaluated again."""

    steps: tuple[ReplayStep, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    """What the source has that was not replayed, and how to replay it."""
    source: str = ""
    """What was read."""
    tallies: tuple[Tally, ...] = ()
    """The recorded gaps by thread, agent and reason, as `scrum-master report` counts them."""

    def __post_init__(self) -> None:
        freeze(self, "steps", "problems", "notes", "tallies")

    @property
    def outcomes(self) -> dict[StepOutcome, int]:
        """Number of steps by what the replay does."""
        return dict(sorted(Counter(step.outcome for step in self.steps).items()))

    @property
    def recorded_outcomes(self) -> dict[RecordedOutcome, int]:
        """Number of steps by what happened then."""
        return dict(sorted(Counter(step.recorded_outcome for step in self.steps).items()))
