"""All settings, frozen and checked where they are given."""
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
    template_text,
    whole_number,
)
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.model import VALID_CONTEXT_SOURCES, SourceName

DEFAULT_MAX_CONTEXT_ITEMS = 5
"""Contexts that an agent gets at most."""

DEFAULT_MIN_RELEVANCE_SCORE = 0.7
"""The bar below which nothing is injected."""

Delivery: TypeAlias = Literal["state", "message"]
"""How the text reaches the agent."""

Escalation: TypeAlias = Literal["tell", "interrupt"]
"""What happens when context does not help."""

UserQuestions: TypeAlias = Literal["auto", "serve", "leave"]
"""What happens to a question that only the user can answer."""


class TokenBudget(Mapping[str, int]):
    """Tokens per section of a text, by name; one that is not named gets none."""

    __slots__ = ("_sections",)

    def __init__(self, **sections: int) -> None:
        for name, tokens in sections.items():
            if not is_whole(tokens) or tokens < 0:
                raise ConfigError(f"{name} must be a whole number of tokens, 0 or more, got {tokens!r}")
        self._sections = dict(sections)

    @property
    def total(self) -> int:
        """Of all sections."""
        return sum(self._sections.values())

    def only(self, *names: str) -> TokenBudget:
        """The budget for just these sections, 0 where it names none; others are refused."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecencyWeights(Plain):
    """How much a memory counts by its age."""

    very_recent: float = setting(1.3, number_between(0, 100))
    """Less than an hour."""
    recent: float = setting(1.2, number_between(0, 100))
    """Less than a day."""
    this_week: float = setting(1.1, number_between(0, 100))
    """Less than 7 days."""
    this_month: float = setting(1.0, number_between(0, 100))
    """Less than 30 days."""
    older: float = setting(0.9, number_between(0, 100))
    """Less than 90 days."""
    stale: float = setting(0.8, number_between(0, 100))
    """90 days or more."""

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig(Plain):
    """How a dialogue's history is rendered."""

    verbatim_turns: int = setting(6, whole_number(1))
    """The last turns are quoted word for word; older ones are summarised."""
    max_summary_tokens: int = setting(500, whole_number(1))
    """Tokens of that summary at most."""
    include_speakers: bool = setting(True, flag())
    """Whether the speaker's name precedes each turn."""
    include_timestamps: bool = setting(False, flag())
    """Hours and minutes before each turn, from its timestamp."""
    template: str = setting("", template_text("text", "speaker", "time", at_the_end=True))
    """How a turn is rendered instead, such as `<{speaker}, {time}> {text}`."""

    def __post_init__(self) -> None:
        check_settings(self)


TEAM_REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "analyst": ("seed_input", "clarifications"),
    "pm": ("requirements", "analyst_decisions"),
    "architect": ("stories", "pm_decisions", "tech_constraints"),
    "dev": ("current_story", "architecture_decisions", "code_patterns"),
    "tea": ("implementation", "test_requirements", "coverage_config"),
    "sm": ("all_decisions", "health_status", "sprint_progress"),
}
"""What the roles of an agile team need in the state before work is handed to them: `requirements` for such a team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionConfig(Plain):
    """How gaps are found and served."""

    max_context_items: int = setting(DEFAULT_MAX_CONTEXT_ITEMS, whole_number(1))
    """Contexts that an agent gets at most."""
    min_relevance_score: float = setting(DEFAULT_MIN_RELEVANCE_SCORE, number_between(0, 1))
    """The bar below which nothing is injected: abstaining beats noise."""
    max_context_size_bytes: int = setting(100_000, whole_number(1))
    """Hard limit on the text that the agent gets, in bytes, including everything around the contexts."""
    enabled_sources: tuple[SourceName, ...] = setting(("memory", "state"), names_among(VALID_CONTEXT_SOURCES))
    """Which built-in sources are queried: memory, state, sprint, architecture, and
    [what was learned](learn.md#in-the-graph): experiences, code, commits, values. Comma-separated as a variable.
    Sources given to `ScrumMaster` are always queried."""
    log_injections: bool = setting(True, flag())
    """Whether each result is logged, without its text."""
    max_context_tokens: int = setting(2_000, whole_number(1))
    """Hard limit on the text that the agent gets, in tokens, including everything around the contexts."""
    deadline: float = setting(2.0, number_between(0.001, 3600))
    """Seconds that all sources share. Sources that miss it are recorded as failures."""
    assistant_deadline: float = setting(10.0, number_between(0.001, 3600))
    """Seconds that a [chat model](tune-detection.md#let-a-chat-model-help) has to confirm a gap, and again to write a
    query and to pick. Rules decide if it is late."""
    view_window: int = setting(50, whole_number(0))
    """How many of the last messages an agent sees; 0 if agents have private histories."""
    max_attempts: int = setting(3, whole_number(1))
    """How often the same need of the same agent is served, or searched for in vain."""
    deliver: Delivery = setting("state", choice_of(Delivery))
    """`message` also adds the text to `messages`, tagged as ours."""
    escalate: Escalation = setting("tell", choice_of(Escalation))
    """When a need comes up again after `max_attempts`: `tell` reports it in the result, `interrupt` interrupts the
    graph and asks a person."""
    user_questions: UserQuestions = setting("auto", choice_of(UserQuestions))
    """A question that only the user can answer, such as "What is your order number?": `leave` it to the user, or
    `serve` it if there is something to serve. `auto` leaves it inside an agent of `create_agent`, whose question goes
    to whoever called it, and serves it in a graph."""
    assumptions: bool = setting(False, flag())
    """Whether an agent that [assumes what it was not told](tune-detection.md#notice-assumptions) ("let's assume 30
    days") has a gap: `assumption_made`, confidence 0.6."""
    architecture_path: str | None = setting(None, or_none(plain_text()), path=True)
    """Folder of Markdown with the team's ADRs and constraints, for the source `architecture`."""
    namespace: str = setting("default", printable_text())
    """Whose memory is read."""
    requirements: dict[str, tuple[str, ...]] = setting({}, names_by_key())
    """The state keys that an agent needs before work is handed to it; a JSON object as a variable.
    `TEAM_REQUIREMENTS` is a table for analyst, pm, architect, dev, tea and sm."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.architecture_path is not None and "architecture" not in self.enabled_sources:
            raise ConfigError(
                f"architecture_path is {self.architecture_path!r}, but 'architecture' is not in enabled_sources "
                f"{self.enabled_sources!r}: add it, or leave the path out"
            )

    def for_run(self, context: object) -> Self:
        """The configuration with what the run says for itself, in fields or keys named as in `ScrumMasterContext`."""
        if context is None:
            return self
        # Nothing is caught here: a namespace that cannot be read must not become the default one.
        said = {
            each.name: context.get(each.name) if isinstance(context, Mapping) else getattr(context, each.name, None)
            for each in fields(ScrumMasterContext)
        }
        given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        return replace(self, **given) if given else self

    @classmethod
    def from_env(cls, environ: Mapping[str, str], **otherwise: Any) -> Self:
        """The configuration of the `SCRUM_MASTER_*` variables, each named as its field; empty ones do not count.

        `otherwise` are the values of fields that have no variable.
        """
        return cls(**otherwise | environment_values(cls, environ))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsConfig:
    """The parts that `ScrumMaster.from_env` and the command line build; each part checks its own value."""

    memory_path: Any = setting(None, anything(), path=True)
    """Folder of a `ChromaMemory`, for `sm_node` and the command line."""
    audit_log: Any = setting(None, anything(), path=True)
    """File of a `JsonlRecorder`, for `sm_node`."""
    snapshots: Any = setting(None, anything(), path=True)
    """Folder of [snapshots](replay.md), for `sm_node`."""
    redact: Any = setting(None, anything())
    """What `sm_node` keeps out of logs, audit log and snapshots: `all`, or secrets and emails, comma-separated."""
    asking: Any = setting(None, anything(), path=True)
    """Weights file of an [adapted asking model](tune-detection.md#adapt-the-asking-model)."""
    embedder: Any = setting("static", anything())
    """What the memory was filled with."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str], **otherwise: Any) -> Self:
        """The parts that the `SCRUM_MASTER_*` variables name; `otherwise` has values for those without a variable."""
        given = {name: value for name, value in otherwise.items() if value is not None}
        return cls(**given | environment_values(cls, environ))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityContextConfig(Plain):
    """How entities are rendered in a prompt."""

    max_entities: int = setting(10, whole_number(0))
    """Entities at most."""
    min_relevance: float = setting(0.3, number_between(0, 1))
    """Entities below it are left out. At the default, an entity drops out six turns after it was last named."""
    attributes_per_entity: int = setting(5, whole_number(0))
    """Attributes of each entity at most."""
    include_relationships: bool = setting(True, flag())
    """Whether related entities are listed."""
    half_life: float = setting(5.0, number_between(0.01, 1_000_000))
    """Turns after which an entity that is no longer named is half as salient."""
    template: str = setting("", template_text("name", "type", "description", "attributes", "related"))
    """How an entity is rendered instead, such as `{name} ({type}): {attributes}`."""

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RAGConfig(Plain):
    """How documents are cut, and which pieces serve a query."""

    initial_retrieval_count: int = setting(20, whole_number(1))
    """Candidate chunks."""
    final_chunk_count: int = setting(5, whole_number(1))
    """Chunks in the prompt."""
    min_relevance: float = setting(0.5, number_between(0, 1))
    """Chunks below it are left out. At 0.7 a chunk is worth its tokens by itself; those that come close may add to
    it."""
    enable_reranking: bool = setting(True, flag())
    """Whether the reranker is used, if there is one."""
    rerank_deadline: float = setting(3.0, number_between(0.001, 3600))
    """Seconds that the reranker has; if it is late, the order stays. Less than the deadline of a whole prompt."""
    recency_weight: float = setting(0.3, number_between(0, 1))
    """Weight of a document's recency: up to 0.2 of it is added to the relevance."""
    entity_weight: float = setting(0.5, number_between(0, 1))
    """Weight of the entities that a chunk names: up to 0.3 of it is added to the relevance."""
    chunk_tokens: int = setting(300, whole_number(20))
    """The longest chunk."""
    overlap_tokens: int = setting(40, whole_number(0))
    """How much of the previous chunk is repeated at most, where a section is split."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.overlap_tokens > self.chunk_tokens // 2:
            most = f"at most half of chunk_tokens, {self.chunk_tokens // 2}"
            raise ConfigError(f"overlap_tokens must be {most}, got {self.overlap_tokens!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrumMasterContext:
    """What a run may say for itself: the `context_schema` of a graph, or fields of your own that are named so.

    What is None is as configured.
    """

    namespace: str | None = None
    """Whose memory is read, in the graph's own store as in a memory that was given."""
    max_context_tokens: int | None = None
    max_context_items: int | None = None

    def __post_init__(self) -> None:
        InjectionConfig().for_run(self)


PROMPT_BUDGET = TokenBudget(divergence_alert=200, high_relevance=400, single_space=300, recent_session=200, temporal=50)
"""What a prompt gets: 1150 tokens, headings included."""

DIALOGUE_BUDGET = TokenBudget(system=500, history=1000, entities=500, rag=1500, query=596)
"""What a turn of a dialogue gets of 4096 tokens."""
