"""What a replay gives: each step with all that was seen, considered, kept and dropped."""

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
from langgraph_scrum_master.team.record.facts import GapOutcome, outcome

Fate: TypeAlias = Literal["kept"] | DropReason
"""What became of a context: the agent gets it, or why not."""

StepOutcome: TypeAlias = Literal["silent"] | GapOutcome
"""What a step comes to; silent where there is no gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered(Plain):
    """A context that a source offered, whole and with its scores, and what became of it."""

    context: RetrievedContext
    """As it was found: what the agent gets may be trimmed."""
    fate: Fate


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse(Plain):
    """What a text takes of what it may take."""

    items: int
    max_items: int
    tokens: int
    max_tokens: int
    size: int
    """In bytes."""
    max_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Plain):
    """A turn, and to whom it handed the work, where its tool calls say so."""

    id: str
    agent: str
    kind: TurnKind
    text: str
    tools: tuple[str, ...] = ()
    """Tools that were called, by name."""
    time: float | None = None
    """Seconds since the epoch, where the message tells."""
    handed_to: str = ""

    def __post_init__(self) -> None:
        freeze(self, "tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayStep(Plain):
    """One snapshot, looked at again."""

    where: str
    """The file, with the line, or the database that it is from."""
    thread: str = ""
    step: int = 0
    at: str = ""
    """What the clock said; empty if that is not known."""
    speaker: str = ""
    said: str = ""
    """The newest message."""
    turns: tuple[Said, ...] = ()
    """What was said since the step before, of the last 100 messages."""
    cycles: tuple[CyclePattern, ...] = ()
    gaps: tuple[ContextGap, ...] = ()
    """All gaps that are not settled, the one that is served first."""
    given_up: tuple[ContextGap, ...] = ()
    """Gaps that were tried as often as they may be."""
    queries: tuple[str, ...] = ()
    """What the sources were asked."""
    considered: tuple[Considered, ...] = ()
    """All that the sources offered, best first."""
    result: InjectionResult | None = None
    budget: BudgetUse | None = None
    config: dict[str, Any] = field(default_factory=dict, hash=False)
    """The settings that it was replayed with."""
    ran: bool = False
    """Whether the scrum master looked at it then."""
    recorded: InjectionResult | None = None
    """What came of it then, if that is known; without its texts, where a checkpoint tells."""
    injection_outcome: str = ""
    """Outcome of the recorded injection, from later steps: used, ignored, asked_again or open."""
    unasked: tuple[str, ...] = ()
    """Sources that were asked then and are not there now."""
    failure: str = ""
    """Why nothing could be observed."""

    def __post_init__(self) -> None:
        freeze(self, "turns", "cycles", "gaps", "given_up", "queries", "considered", "unasked")

    @property
    def place(self) -> tuple[str, str, int]:
        """What it is known by in another replay of the same."""
        return self.where, self.thread, self.step

    @property
    def outcome(self) -> StepOutcome:
        """What it comes to."""
        return "silent" if self.result is None else outcome(self.result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(Plain):
    """Something that could not be replayed; the rest was."""

    where: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay(Plain):
    """Snapshots, looked at again."""

    steps: tuple[ReplayStep, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    """What else the source holds that was not looked at, and how to do that."""

    def __post_init__(self) -> None:
        freeze(self, "steps", "problems", "notes")

    @property
    def outcomes(self) -> dict[StepOutcome, int]:
        """How often it came to what."""
        return dict(sorted(Counter(step.outcome for step in self.steps).items()))
