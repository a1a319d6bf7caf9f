"""All settings, frozen and validated on construction."""
# ruff: noqa: RUF009 - `setting` makes the field of a dataclass.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, TypeAlias

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.settings import (
    anything,
    check_settings,
    choice_of,
    environment_values,
    flag,
    is_whole,
    names_among,
    names_by_key,
    number_between,
    or_none,
    plain_text,
    printable_text,
    setting,
    whole_number,
)
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.model import VALID_CONTEXT_SOURCES, SourceName

DEFAULT_MAX_CONTEXT_ITEMS = 5
"""Maximum number of contexts in an injection."""

DEFAULT_MIN_RELEVANCE_SCORE = 0.7
"""Minimum relevance of an injected context."""

Delivery: TypeAlias = Literal["state", "message"]
"""How an injection reaches the agent."""

Escalation: TypeAlias = Literal["tell", "interrupt"]
"""What happens when context does not help."""

UserQuestions: TypeAlias = Literal["auto", "serve", "leave"]
"""What happens to a question that only the user can answer."""


class TokenBudget(Mapping[str, int]):
    """Token budget per section, by name. Sections that are not named get none."""

    __slots__ = ("_sections",)

    def __init__(self, **sections: int) -> None:
        for name, tokens in sections.items():
            if not is_whole(tokens) or tokens < 0:
                raise ConfigError(f"{name} must be a whole number of tokens, 0 or more, got {tokens!r}")
        self._sections = dict(sections)

    @property
    def total(self) -> int:
        """Sum over all sections."""
        return sum(self._sections.values())

    def only(self, *names: str) -> TokenBudget:
        """The budget for exactly these sections, 0 by default; raises `ConfigError` if it has others."""
        if unknown := self._sections.keys() - set(names):
            raise ConfigError(f"a token budget has sections {sorted(unknown)}, they must be among {list(names)}")
        return TokenBudget(**{name: self._sections.get(name, 0) for name in names})

    def __getitem__(self, name: str) -> int:
        return self._sections[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sections)

    def __len__(self) -> int:
        return len(self._sections)

    def __repr__(self) -> str:
        return f"TokenBudget({', '.join(f'{name}={tokens}' for name, tokens in self._sections.items())})"


TEAM_REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "analyst": ("seed_input", "clarifications"),
    "pm": ("requirements", "analyst_decisions"),
    "architect": ("stories", "pm_decisions", "tech_constraints"),
    "dev": ("current_story", "architecture_decisions", "code_patterns"),
    "tea": ("implementation", "test_requirements", "coverage_config"),
    "sm": ("all_decisions", "health_status", "sprint_progress"),
}
"""`requirements` for the roles of an agile team: the state keys that each role needs before a handoff."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionConfig(Plain):
    """How gaps are detected and served."""

    max_context_items: int = setting(DEFAULT_MAX_CONTEXT_ITEMS, whole_number(1))
    """Maximum number of contexts in an injection."""
    min_relevance_score: float = setting(DEFAULT_MIN_RELEVANCE_SCORE, number_between(0, 1))
    """Minimum relevance of an injected context."""
    max_context_size_bytes: int = setting(100_000, whole_number(1))
    """Hard limit on the injected text in bytes, including the frame around the contexts."""
    enabled_sources: tuple[SourceName, ...] = setting(("memory", "state"), names_among(VALID_CONTEXT_SOURCES))
    """Built-in sources to search: memory, state, sprint, architecture, and
    [what the project has learned](learn.md#in-the-graph): experiences, code, commits, values. Comma-separated in an
    environment variable. Sources passed to `ScrumMaster` are always searched."""
    log_injections: bool = setting(True, flag())
    """Whether each result is logged, without its text."""
    max_context_tokens: int = setting(2_000, whole_number(1))
    """Hard limit on the injected text in tokens, including the frame around the contexts."""
    deadline: float = setting(2.0, number_between(0.001, 3600))
    """Seconds that all sources share. Sources that miss it are recorded as failures."""
    assistant_deadline: float = setting(10.0, number_between(0.001, 3600))
    """Seconds that a [chat model](tune-detection.md#let-a-chat-model-help) has to confirm a gap, and again to write a
    query and pick candidates. After a timeout, rules decide."""
    max_concurrent: int = setting(8, whole_number(1))
    """Maximum number of gaps that a process searches for at once. Others wait in order; if a gap has no turn within the
    `deadline`, `overloaded` is recorded, and the next step tries again."""
    view_window: int = setting(50, whole_number(0))
    """Number of latest messages that an agent sees; 0 if agents have private histories."""
    max_attempts: int = setting(3, whole_number(1))
    """How often the same need of the same agent is searched for, whether or not something is found."""
    deliver: Delivery = setting("state", choice_of(Delivery))
    """`message` also adds the text to `messages`, tagged `lc_source`."""
    escalate: Escalation = setting("tell", choice_of(Escalation))
    """When a need comes up again after `max_attempts`: `tell` reports it in the result, `interrupt` interrupts the
    graph to ask a human."""
    user_questions: UserQuestions = setting("auto", choice_of(UserQuestions))
    """A question that only the user can answer, such as "What is your order number?": `leave` it to the user, or
    `serve` it if context is found. `auto` leaves it to the user in an agent of `create_agent`, whose question goes to
    its caller, and serves it in a graph."""
    assumptions: bool = setting(False, flag())
    """Whether an [assumption](tune-detection.md#notice-assumptions) ("let's assume 30 days") is a gap:
    `assumption_made`, confidence 0.6."""
    architecture_path: str | None = setting(None, or_none(plain_text()), path=True)
    """Folder of Markdown files with the team's ADRs and constraints, for the source `architecture`."""
    namespace: str = setting("default", printable_text())
    """The tenant whose memory is read."""
    requirements: dict[str, tuple[str, ...]] = setting({}, names_by_key())
    """State keys that an agent needs before a handoff; a JSON object in an environment variable.
    `TEAM_REQUIREMENTS` has values for analyst, pm, architect, dev, tea and sm."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.architecture_path is not None and "architecture" not in self.enabled_sources:
            raise ConfigError(
                f"architecture_path is {self.architecture_path!r}, but 'architecture' is not in enabled_sources "
                f"{self.enabled_sources!r}: add it, or remove the path"
            )

    def for_run(self, context: object) -> Self:
        """The configuration with the values of a run's context: fields or keys as in `ScrumMasterContext`."""
        if context is None:
            return self
        # Errors propagate: an unreadable namespace must not fall back to the default one.
        values = {
            each.name: context.get(each.name) if isinstance(context, Mapping) else getattr(context, each.name, None)
            for each in fields(ScrumMasterContext)
        }
        overrides: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        return replace(self, **overrides) if overrides else self

    @classmethod
    def from_env(cls, environ: Mapping[str, str], **otherwise: Any) -> Self:
        """The configuration from the `SCRUM_MASTER_*` variables, named after the fields. Empty ones are ignored.

        `otherwise` has the values of fields whose variable is not set.
        """
        return cls(**otherwise | environment_values(cls, environ))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsConfig:
    """Settings for parts that `ScrumMaster.from_env` and the command line build. Each part validates its own value."""

    memory_path: Any = setting(None, anything(), path=True)
    """Folder of a `ChromaMemory`, for `sm_node` and the command line."""
    audit_log: Any = setting(None, anything(), path=True)
    """File of a `JsonlRecorder`, for `sm_node`."""
    snapshots: Any = setting(None, anything(), path=True)
    """Folder of [snapshots](replay.md), for `sm_node`."""
    redact: Any = setting(None, anything())
    """What `sm_node` redacts in logs, audit log and snapshots: `all`, or `secrets` and `emails`, comma-separated."""
    asking: Any = setting(None, anything(), path=True)
    """Weights file of an [adapted asking model](tune-detection.md#adapt-the-asking-model)."""
    embedder: Any = setting("static", anything())
    """The embedder that the memory was filled with."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str], **otherwise: Any) -> Self:
        """The parts from the `SCRUM_MASTER_*` variables; `otherwise` has the values for unset variables."""
        given = {name: value for name, value in otherwise.items() if value is not None}
        return cls(**given | environment_values(cls, environ))


@dataclass(frozen=True, slots=True, kw_only=True)
class HookConfig:
    """Settings of the [hooks](coding-agents.md) of a coding agent."""

    hook_alerts: bool = setting(False, flag())
    """Whether the prompt [hook](coding-agents.md) says that a prompt departs from its session."""
    hook_sessions: int = setting(50, whole_number(0))
    """Sessions whose latest turns and summary the hooks keep. 0 keeps none."""

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrumMasterContext:
    """Settings of a single run: use it as the `context_schema` of a graph, or give your own schema the same fields.

    None keeps the configured value.
    """

    namespace: str | None = None
    """The tenant whose memory is read, in the graph's own store or in the memory passed to `ScrumMaster`."""
    max_context_tokens: int | None = None
    max_context_items: int | None = None

    def __post_init__(self) -> None:
        InjectionConfig().for_run(self)


PROMPT_BUDGET = TokenBudget(divergence_alert=200, high_relevance=400, single_space=300, recent_session=200, temporal=50)
"""Budget of a prompt: 1150 tokens including headings."""
