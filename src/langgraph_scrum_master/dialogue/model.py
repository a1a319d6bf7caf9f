"""What a dialogue's prompt is made of: turns, entities, pieces of documents, instructions, and all of it together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.shapes import one_of, text_of
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.model import SourceFailure, clamp, freeze

if TYPE_CHECKING:
    from langgraph_scrum_master.config import TokenBudget

Role: TypeAlias = Literal["user", "assistant", "system", "tool"]
"""What a speaker is to a chat model."""

CompressionLevel: TypeAlias = Literal["light", "medium", "heavy", "extreme"]
"""How much is left out: what is redundant, older turns, all but the last turn, all but the essential."""

Personality: TypeAlias = Literal["helpful", "expert", "conversational", "custom"]
Style: TypeAlias = Literal["formal", "professional", "casual", "friendly"]
Verbosity: TypeAlias = Literal["concise", "moderate", "detailed"]
TechnicalLevel: TypeAlias = Literal["beginner", "intermediate", "expert"]

_LABELS = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_WISHES = "User preferences:"
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[T ](\d\d:\d\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedEntity(Plain):
    """An entity that a text names."""

    entity_id: str
    canonical_name: str
    confidence: float
    """1 if the text has its name, less for an alias, and less still for a near-miss."""
    mention: str = ""
    """The words of the text."""

    def __post_init__(self) -> None:
        clamp(self, "confidence", 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRelationship(Plain):
    """How an entity is related to another."""

    relation: str
    target_id: str
    target_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityContext(Plain):
    """What a prompt says about an entity."""

    entity_id: str
    name: str
    entity_type: str
    description: str
    attributes: tuple[tuple[str, str], ...]
    relationships: tuple[EntityRelationship, ...]
    relevance: float
    formatted: str
    compressed: str
    """The same in one line."""

    def __post_init__(self) -> None:
        freeze(self, "relationships")
        object.__setattr__(self, "attributes", tuple((name, value) for name, value in self.attributes))
        clamp(self, "relevance", 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeChunk(Plain):
    """A piece of a document that serves a query."""

    chunk_id: str
    doc_id: str
    title: str
    content: str
    relevance: float
    date: str = ""
    url: str = ""
    doc_type: str = ""
    formatted: str

    def __post_init__(self) -> None:
        clamp(self, "relevance", 0.0, 1.0)


class RetrievedChunks(list[KnowledgeChunk]):
    """Pieces that serve a query, best first, and how they were chosen."""

    def __init__(self, chunks: Iterable[KnowledgeChunk] = (), *, looked_at: int | None = None, reranked: bool = False):
        super().__init__(chunks)
        self.looked_at = len(self) if looked_at is None else looked_at
        """How many pieces they were chosen from."""
        self.reranked = reranked
        """Whether a reranker had its say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueTurn(Plain):
    """What somebody said."""

    turn_id: str
    speaker: str
    """`user`, `assistant`, `system`, `tool`, or a name."""
    text: str
    corrected_text: str = ""
    """Told instead of the text, where there is one."""
    timestamp: str = ""
    """ISO 8601."""
    speech_act: str = ""
    """Such as "asks for help": told to whoever summarises the turn."""
    role: Role | str = ""
    """By the speaker if there is none; somebody with a name is taken for a user."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", self.role or (self.speaker if self.speaker in _LABELS else "user"))
        one_of("role", self.role, Role)

    @property
    def said(self) -> str:
        """What counts as said."""
        return self.corrected_text or self.text

    @property
    def label(self) -> str:
        """What the speaker is called."""
        return _LABELS.get(self.speaker, self.speaker)

    @property
    def hour(self) -> str:
        """Such as "14:05", as the timestamp has it."""
        found = _CLOCK.match(self.timestamp)
        return found[1] if found else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueSession:
    """A dialogue up to now: its turns, without the one that is being answered."""

    id: str
    turns: tuple[DialogueTurn, ...] = ()
    instructions: str = ""
    """What the host tells the model itself, in addition to the assembler's own instructions."""

    def __post_init__(self) -> None:
        if not text_of(self.id):
            raise ConfigError(f"the id of a session must be a non-empty text, got {self.id!r}")
        freeze(self, "turns")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedTurn(Plain):
    """A turn as it is told."""

    turn_id: str
    speaker: str
    content: str
    formatted: str
    role: Role | str = "user"

    def saying(self, content: str) -> FormattedTurn:
        """The turn with other words."""
        return replace(self, content=content, formatted=self.formatted.removesuffix(self.content) + content)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedHistory(Plain):
    """A dialogue as it is told: what older turns came to, and the newest word for word."""

    summary: str = ""
    recent_turns: tuple[FormattedTurn, ...] = ()
    turns: tuple[DialogueTurn, ...] = field(default=(), repr=False)
    """All of them: what it can be made again from in fewer tokens."""
    level: CompressionLevel | str = ""
    """How much it was compressed, if it was."""
    brief: bool = False
    """Told with the shortest headings."""

    def __post_init__(self) -> None:
        freeze(self, "recent_turns", "turns")

    @property
    def summed_up(self) -> str:
        """The summary as it is told; empty if there is none."""
        return f"[{'Summary' if self.brief else 'Conversation summary'}: {self.summary}]" if self.summary else ""

    @property
    def text(self) -> str:
        """All of it; empty if nothing was said."""
        heading = ["Recent conversation:"] if self.recent_turns and not self.brief else []
        lines = [*heading, *(turn.formatted for turn in self.recent_turns)]
        return "\n".join([*([self.summed_up, ""] if self.summary else []), *lines])


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPersonality(Plain):
    """Who the model is to be: helpful, expert in a domain, conversational, or as a description says."""

    kind: Personality | str = "helpful"
    domain: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        one_of("personality", self.kind, Personality)
        needed = {"expert": "domain", "custom": "description"}.get(self.kind)
        if needed and not getattr(self, needed).strip():
            raise ConfigError(f"a personality of kind {self.kind!r} needs a {needed}, got {getattr(self, needed)!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattingPreferences(Plain):
    """How answers are to look."""

    use_bullets: bool = False
    use_numbered_lists: bool = False
    include_code_blocks: bool = False
    include_links: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPreferences(Plain):
    """How a user wants to be answered."""

    style: Style | str = "professional"
    verbosity: Verbosity | str = "moderate"
    technical_level: TechnicalLevel | str = "intermediate"
    formatting: FormattingPreferences = field(default_factory=FormattingPreferences)
    custom_instructions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of("style", self.style, Style)
        one_of("verbosity", self.verbosity, Verbosity)
        one_of("technical_level", self.technical_level, TechnicalLevel)
        if text_of(self.custom_instructions):
            raise ConfigError(f"custom_instructions must be a sequence of texts, got {self.custom_instructions!r}")
        freeze(self, "custom_instructions")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPrompt(Plain):
    """What the model is told to be and do, in parts."""

    instructions: str = ""
    personality: str = ""
    preferences: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, "preferences")

    @classmethod
    def of(cls, parts: Sequence[str]) -> SystemPrompt:
        """The prompt of these parts: instructions, personality and, as `wishes` tells them, preferences."""
        instructions, personality, wishes, *more = [*parts, "", "", ""]
        if any(more):
            raise ConfigError(f"a system prompt has three parts at most, got {parts!r:.200}")
        preferences = tuple(line for line in wishes.split("\n") if line and line != _WISHES)
        return cls(instructions=instructions, personality=personality, preferences=preferences)

    @property
    def wishes(self) -> str:
        """The preferences as they are told; empty if there are none."""
        return "\n".join([_WISHES, *self.preferences]) if self.preferences else ""

    @property
    def text(self) -> str:
        """All parts that there are."""
        return "\n\n".join(part for part in (self.instructions, self.personality, self.wishes) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextContent(Plain):
    """All that a prompt tells beside the user's own turn."""

    system: SystemPrompt = field(default_factory=SystemPrompt)
    history: FormattedHistory = field(default_factory=FormattedHistory)
    entities: tuple[EntityContext, ...] = ()
    rag_chunks: tuple[KnowledgeChunk, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, "entities", "rag_chunks")

    @property
    def texts(self) -> dict[str, str]:
        """The text of each section, by its name in a token budget."""
        entities = ["Relevant entities:", *(entity.formatted for entity in self.entities)]
        return {
            "system": self.system.text,
            "history": self.history.text,
            "entities": "\n".join(entities) if self.entities else "",
            "rag": "\n\n".join(chunk.formatted for chunk in self.rag_chunks),
        }

    def tokens(self, count: Callable[[str], int]) -> dict[str, int]:
        """The tokens of each section."""
        return {name: count(text) if text else 0 for name, text in self.texts.items()}

    def total_tokens(self, count: Callable[[str], int]) -> int:
        """The tokens of all sections."""
        return sum(self.tokens(count).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedContext:
    """What a turn of a dialogue was given, and what it was chosen from."""

    session_id: str
    turn_id: str
    query: str
    content: ContextContent
    text: str
    """The prompt as one text, with [SYSTEM], [CONTEXT], [KNOWLEDGE] and [USER]."""
    token_count: int
    """Of the prompt as text or as messages, whichever has more."""
    max_tokens: int
    budget: TokenBudget
    """By section; what entities and knowledge did not need is shared among the others."""
    tokens: Mapping[str, int] = field(default_factory=dict)
    """What each section takes."""
    strategy: str = ""
    resolved: tuple[ResolvedEntity, ...] = ()
    chunks_retrieved: int = 0
    """How many pieces of documents the chosen ones were chosen from."""
    reranking_used: bool = False
    """Whether a reranker had its say: not if it failed or was late."""
    personality: str = ""
    """Its kind."""
    failures: tuple[SourceFailure, ...] = ()
    """What could not be asked."""
    at: str = ""
    """When, by the assembler's clock."""
