"""All knobs, frozen; bad values are refused here, when they are given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from string import Formatter
from typing import Any, Literal, Self, TypeAlias, get_args

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.shapes import switch
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.model import VALID_CONTEXT_SOURCES, SourceName

DEFAULT_MAX_CONTEXT_ITEMS = 5
"""Contexts that an agent gets at most."""

DEFAULT_MIN_RELEVANCE_SCORE = 0.7
"""The bar below which nothing is injected."""

ENV_PREFIX = "SCRUM_MASTER_"
"""What the names of our environment variables begin with."""

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
            if not _is_whole(tokens) or tokens < 0:
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

    very_recent: float = 1.3
    """Less than an hour."""
    recent: float = 1.2
    """Less than a day."""
    this_week: float = 1.1
    this_month: float = 1.0
    """Less than 30 days."""
    older: float = 0.9
    """Less than 90 days."""
    stale: float = 0.8

    def __post_init__(self) -> None:
        for each in fields(self):
            _number(self, each.name, 0, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig(Plain):
    """How a dialogue's history is told."""

    verbatim_turns: int = 6
    """The last turns are told word for word; older ones are summarised."""
    max_summary_tokens: int = 500
    include_speakers: bool = True
    include_timestamps: bool = False
    """Hours and minutes before each turn, as its timestamp has them."""
    template: str = ""
    """How a turn is told instead, such as `<{speaker}, {time}> {text}`."""

    def __post_init__(self) -> None:
        _whole(self, "verbatim_turns", "max_summary_tokens", low=1)
        _template(self, "text", "speaker", "time")
        ends = not self.template or self.template.endswith("{text}")
        _refuse_unless(ends, self, "template", "a text that ends in {text}")
        for name in ("include_speakers", "include_timestamps"):
            _refuse_unless(isinstance(getattr(self, name), bool), self, name, "True or False")


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

    max_context_items: int = DEFAULT_MAX_CONTEXT_ITEMS
    min_relevance_score: float = DEFAULT_MIN_RELEVANCE_SCORE
    """Below this bar nothing is injected: abstaining beats noise."""
    max_context_size_bytes: int = 100_000
    """A hard limit on the text that the agent gets, everything around the contexts included."""
    enabled_sources: tuple[SourceName, ...] = ("memory", "state")
    """Which of the built-in sources are asked; sources given to `ScrumMaster` always are."""
    log_injections: bool = True
    max_context_tokens: int = 2_000
    """A hard limit on the text that the agent gets, everything around the contexts included."""
    deadline: float = 2.0
    """Seconds all sources together have; what is late counts as failed."""
    assistant_deadline: float = 10.0
    """Seconds an assistant has to confirm a gap, and again to write a query and to pick; late, the way without it is
    taken."""
    view_window: int = 50
    """How many of the last messages an agent is taken to see. 0: agents have private histories."""
    max_attempts: int = 3
    """How often the same need of the same agent is served, or looked for in vain."""
    deliver: Delivery = "state"
    """`message` also adds the text to `messages`, tagged as ours."""
    escalate: Escalation = "tell"
    """When a need comes up again after `max_attempts`: tell so in the result, or interrupt and ask a person."""
    user_questions: UserQuestions = "auto"
    """A question that only the user can answer, such as "What is your order number?": `leave` it to the user, or
    `serve` it if there is something to serve. `auto` leaves it inside an agent of `create_agent`, whose question goes
    to whoever called it, and serves it in a graph."""
    assumptions: bool = False
    """Whether an agent that assumes what it was not told ("let's assume 30 days") has a gap."""
    architecture_path: str | None = None
    """A folder of Markdown with the team's ADRs and constraints."""
    namespace: str = "default"
    """Whose memory is read where the graph's own store serves as memory."""
    requirements: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """The state keys that an agent needs before work is handed to it."""

    def __post_init__(self) -> None:
        _whole(self, "max_context_items", "max_context_size_bytes", "max_context_tokens", "max_attempts", low=1)
        _whole(self, "view_window", low=0)
        _number(self, "min_relevance_score", 0, 1)
        _number(self, "deadline", 0.001, 3600)
        _number(self, "assistant_deadline", 0.001, 3600)
        _refuse_unless(self.deliver in get_args(Delivery), self, "deliver", f"one of {get_args(Delivery)}")
        _text(self, "namespace")
        _refuse_unless(self.namespace.isprintable(), self, "namespace", "a text without control characters")
        _refuse_unless(self.escalate in get_args(Escalation), self, "escalate", f"one of {get_args(Escalation)}")
        choices = get_args(UserQuestions)
        _refuse_unless(self.user_questions in choices, self, "user_questions", f"one of {choices}")
        _refuse_unless(isinstance(self.log_injections, bool), self, "log_injections", "True or False")
        _refuse_unless(isinstance(self.assumptions, bool), self, "assumptions", "True or False")
        if self.architecture_path is not None:
            _text(self, "architecture_path")
        sources = _names_of(self, "enabled_sources", self.enabled_sources)
        valid = VALID_CONTEXT_SOURCES.issuperset(sources)
        _refuse_unless(valid, self, "enabled_sources", f"among {sorted(VALID_CONTEXT_SOURCES)}")
        object.__setattr__(self, "enabled_sources", sources)
        _refuse_unless(isinstance(self.requirements, Mapping), self, "requirements", "a dict of agent to state keys")
        needed = {agent: _names_of(self, "requirements", keys) for agent, keys in self.requirements.items()}
        object.__setattr__(self, "requirements", needed)
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
        given = dict(otherwise)
        for knob in fields(cls):
            variable = ENV_PREFIX + knob.name.upper()
            if environ.get(variable) and knob.name in _FROM_TEXT:
                given[knob.name] = _parsed(variable, environ[variable], _FROM_TEXT[knob.name])
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityContextConfig(Plain):
    """What a prompt is told of entities."""

    max_entities: int = 10
    min_relevance: float = 0.3
    """Below it an entity is left out: one that is not named any more is told of for six turns."""
    attributes_per_entity: int = 5
    include_relationships: bool = True
    half_life: float = 5.0
    """Turns after which an entity that is not named any more is half as salient."""
    template: str = ""
    """How an entity is told instead, such as `{name} ({type}): {attributes}`."""

    def __post_init__(self) -> None:
        _template(self, "name", "type", "description", "attributes", "related")
        _whole(self, "max_entities", "attributes_per_entity", low=0)
        _number(self, "min_relevance", 0, 1)
        _number(self, "half_life", 0.01, 1_000_000)
        _refuse_unless(isinstance(self.include_relationships, bool), self, "include_relationships", "True or False")


@dataclass(frozen=True, slots=True, kw_only=True)
class RAGConfig(Plain):
    """How documents are cut, and which pieces serve a query."""

    initial_retrieval_count: int = 20
    """Pieces that are looked at."""
    final_chunk_count: int = 5
    """Pieces that are given."""
    min_relevance: float = 0.5
    """Below it a piece is left out. At 0.7 one earns its tokens by itself; those that come close may add to it."""
    enable_reranking: bool = True
    """Whether the reranker, if there is one, is asked."""
    rerank_deadline: float = 3.0
    """Seconds it has; if it is late, the pieces stay as they are. Fewer than a prompt waits for all of it."""
    recency_weight: float = 0.3
    """How much it counts that a document is new: up to 0.2 of this is added to the relevance."""
    entity_weight: float = 0.5
    """How much it counts that a piece names the entities: up to 0.3 of this is added."""
    chunk_tokens: int = 300
    """The longest piece."""
    overlap_tokens: int = 40
    """What a piece repeats at most of the one before it, where a section is cut."""

    def __post_init__(self) -> None:
        _whole(self, "initial_retrieval_count", "final_chunk_count", low=1)
        _whole(self, "chunk_tokens", low=20)
        _whole(self, "overlap_tokens", low=0)
        for name in ("min_relevance", "recency_weight", "entity_weight"):
            _number(self, name, 0, 1)
        _number(self, "rerank_deadline", 0.001, 3600)
        _refuse_unless(isinstance(self.enable_reranking, bool), self, "enable_reranking", "True or False")
        fits = self.overlap_tokens <= self.chunk_tokens // 2
        _refuse_unless(fits, self, "overlap_tokens", f"at most half of chunk_tokens, {self.chunk_tokens // 2}")


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


def _template(config: Any, needed: str, *names: str) -> None:
    """Refuse a template that has other fields than these, or not the one that is needed."""
    try:
        parts = [part[1:] for part in Formatter().parse(config.template) if part[1] is not None]
    except (TypeError, ValueError):
        parts = []
    told = [name for name, spec, conversion in parts if not spec and not conversion]
    works = needed in told and len(told) == len(parts) and set(told) <= {needed, *names}
    others = ", ".join(f"{{{name}}}" for name in names)
    expected = f"a text with {{{needed}}}, and no other fields than {others}"
    _refuse_unless(config.template == "" or works, config, "template", expected)


def _parsed(variable: str, text: str, parse: Any) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise ConfigError(f"{variable} must be {_EXPECTED[parse]}, got {text!r}") from error


def names_in(text: str) -> tuple[str, ...]:
    """The names in a text that lists them with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


_EXPECTED = {int: "a whole number", float: "a number", switch: "true or false", json.loads: "a JSON object"}
_FROM_TEXT = {
    "max_context_items": int,
    "min_relevance_score": float,
    "max_context_size_bytes": int,
    "enabled_sources": names_in,
    "log_injections": switch,
    "assumptions": switch,
    "max_context_tokens": int,
    "deadline": float,
    "assistant_deadline": float,
    "view_window": int,
    "max_attempts": int,
    "deliver": str,
    "escalate": str,
    "user_questions": str,
    "architecture_path": str,
    "namespace": str,
    "requirements": json.loads,
}


def _whole(config: object, *names: str, low: int) -> None:
    for name in names:
        value = getattr(config, name)
        _refuse_unless(_is_whole(value) and value >= low, config, name, f"a whole number, {low} or more")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(config: object, name: str, low: float, high: float) -> None:
    value = getattr(config, name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    _refuse_unless(number and low <= value <= high, config, name, f"a number from {low} to {high}")


def _text(config: object, name: str) -> None:
    value: object = getattr(config, name)
    _refuse_unless(isinstance(value, str) and bool(value), config, name, "a non-empty text")


def _names_of(config: object, name: str, names: object) -> tuple[Any, ...]:
    if not isinstance(names, Iterable) or isinstance(names, str | bytes) or not all(isinstance(n, str) for n in names):
        raise ConfigError(f"{name} must be a sequence of names, got {names!r}")
    return tuple(names)


def _refuse_unless(holds: bool, config: object, name: str, expected: str) -> None:
    if not holds:
        raise ConfigError(f"{name} must be {expected}, got {getattr(config, name)!r}")


PROMPT_BUDGET = TokenBudget(divergence_alert=200, high_relevance=400, single_space=300, recent_session=200, temporal=50)
"""What a prompt gets: 1150 tokens, headings included."""

DIALOGUE_BUDGET = TokenBudget(system=500, history=1000, entities=500, rag=1500, query=596)
"""What a turn of a dialogue gets of 4096 tokens."""
