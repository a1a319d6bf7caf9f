"""The parts of a dialogue prompt: turns, entities, document chunks and the system prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.shapes import one_of, text_of
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.model import SourceFailure, clamp, freeze
from langgraph_scrum_master.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from langgraph_scrum_master.config import TokenBudget

Role: TypeAlias = Literal["user", "assistant", "system", "tool"]
"""The role of a message in a chat model's API."""

CompressionLevel: TypeAlias = Literal["light", "medium", "heavy", "extreme"]
"""Light removes redundancy, medium half of the recent turns, heavy all but the last; extreme also trims that one."""

Personality: TypeAlias = Literal["helpful", "expert", "conversational", "custom"]
Style: TypeAlias = Literal["formal", "professional", "casual", "friendly"]
Verbosity: TypeAlias = Literal["concise", "moderate", "detailed"]
TechnicalLevel: TypeAlias = Literal["beginner", "intermediate", "expert"]

_LABELS = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_PREFERENCES_HEADING = "User preferences:"
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ](\d\d:\d\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedEntity(Plain):
    """An entity mentioned in a text."""

    entity_id: str
    canonical_name: str
    confidence: float
    """1 for the canonical name, less for an alias, and less still for a near-miss."""
    mention: str = ""
    """The mention as written in the text."""

    def __post_init__(self) -> None:
        clamp(self, "confidence", 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRelationship(Plain):
    """A relationship to another entity."""

    relation: str
    target_id: str
    target_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityContext(Plain):
    """An entity as rendered in a prompt."""

    entity_id: str
    name: str
    entity_type: str
    description: str
    attributes: tuple[tuple[str, str], ...]
    relationships: tuple[EntityRelationship, ...]
    relevance: float
    formatted: str
    compressed: str
    """`formatted` shortened to one line."""

    def __post_init__(self) -> None:
        freeze(self, "relationships")
        object.__setattr__(self, "attributes", tuple((name, value) for name, value in self.attributes))
        clamp(self, "relevance", 0.0, 1.0)

    @property
    def token_count(self) -> int:
        """Tokens of the rendered text, estimated. A prompt's `tokens` are counted by its own tokenizer."""
        return estimate_tokens(self.formatted) if self.formatted else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeChunk(Plain):
    """A chunk of a document that is relevant to a query."""

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

    @property
    def token_count(self) -> int:
        """Tokens of the rendered text, estimated. A prompt's `tokens` are counted by its own tokenizer."""
        return estimate_tokens(self.formatted) if self.formatted else 0


class RetrievedChunks(list[KnowledgeChunk]):
    """Chunks relevant to a query, best first, and how they were selected."""

    def __init__(self, chunks: Iterable[KnowledgeChunk] = (), *, looked_at: int | None = None, reranked: bool = False):
        super().__init__(chunks)
        self.looked_at = len(self) if looked_at is None else looked_at
        """The number of candidates they were selected from."""
        self.reranked = reranked
        """Whether a reranker ordered them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueTurn(Plain):
    """One turn of a dialogue."""

    turn_id: str
    speaker: str
    """`user`, `assistant`, `system`, `tool`, or a name."""
    text: str
    corrected_text: str = ""
    """Replaces `text` in the prompt if it is not empty."""
    timestamp: str = ""
    """ISO 8601."""
    speech_act: str = ""
    """Such as "asks for help". Passed to the summarizer with the turn."""
    role: Role | str = ""
    """Derived from the speaker by default; a named speaker is a user."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", self.role or (self.speaker if self.speaker in _LABELS else "user"))
        one_of("role", self.role, Role)

    @property
    def effective_text(self) -> str:
        """The corrected text if there is one, otherwise the text."""
        return self.corrected_text or self.text

    @property
    def label(self) -> str:
        """The speaker's display name."""
        return _LABELS.get(self.speaker, self.speaker)

    @property
    def hour(self) -> str:
        """The time of day in the timestamp, such as "14:05"."""
        match = _ISO_TIME.match(self.timestamp)
        return match[1] if match else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueSession:
    """A dialogue so far, without the turn that is being answered."""

    id: str
    turns: tuple[DialogueTurn, ...] = ()
    instructions: str = ""
    """The application's instructions to the model, added to those of the assembler."""

    def __post_init__(self) -> None:
        if not text_of(self.id):
            raise ConfigError(f"the id of a session must be a non-empty string, got {self.id!r}")
        freeze(self, "turns")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedTurn(Plain):
    """A turn as rendered in a prompt."""

    turn_id: str
    speaker: str
    content: str
    formatted: str
    role: Role | str = "user"

    def with_content(self, content: str) -> FormattedTurn:
        """The turn with its content replaced."""
        return replace(self, content=content, formatted=self.formatted.removesuffix(self.content) + content)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedHistory(Plain):
    """A dialogue as rendered in a prompt: a summary of the older turns, and the recent turns verbatim."""

    summary: str = ""
    recent_turns: tuple[FormattedTurn, ...] = ()
    turns: tuple[DialogueTurn, ...] = field(default=(), repr=False)
    """All turns, so that the history can be rendered again in fewer tokens."""
    level: CompressionLevel | str = ""
    """The compression level; empty if the history was not compressed."""
    brief: bool = False
    """Whether headings are shortened or left out."""

    def __post_init__(self) -> None:
        freeze(self, "recent_turns", "turns")

    @property
    def summary_line(self) -> str:
        """The summary as rendered; empty if there is none."""
        return f"[{'Summary' if self.brief else 'Conversation summary'}: {self.summary}]" if self.summary else ""

    @property
    def text(self) -> str:
        """The summary and the recent turns; empty if there are neither."""
        heading = ["Recent conversation:"] if self.recent_turns and not self.brief else []
        lines = [*heading, *(turn.formatted for turn in self.recent_turns)]
        return "\n".join([*([self.summary_line, ""] if self.summary else []), *lines])

    @property
    def token_count(self) -> int:
        """Tokens of the rendered text, estimated. A prompt's `tokens` are counted by its own tokenizer."""
        return estimate_tokens(self.text) if self.text else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPersonality(Plain):
    """The persona of the model: helpful, expert in a domain, conversational, or a custom description."""

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
    """How answers should be formatted."""

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
            raise ConfigError(f"custom_instructions must be a sequence of strings, got {self.custom_instructions!r}")
        freeze(self, "custom_instructions")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPrompt(Plain):
    """The parts of a system prompt."""

    instructions: str = ""
    personality: str = ""
    preferences: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, "preferences")

    @classmethod
    def of(cls, parts: Sequence[str]) -> SystemPrompt:
        """Build a prompt from instructions, personality and rendered preferences (see `preferences_text`)."""
        instructions, personality, preferences_text, *more = [*parts, "", "", ""]
        if any(more):
            raise ConfigError(f"a system prompt has at most three parts, got {parts!r:.200}")
        preferences = tuple(line for line in preferences_text.split("\n") if line and line != _PREFERENCES_HEADING)
        return cls(instructions=instructions, personality=personality, preferences=preferences)

    @property
    def preferences_text(self) -> str:
        """The preferences as rendered; empty if there are none."""
        return "\n".join([_PREFERENCES_HEADING, *self.preferences]) if self.preferences else ""

    @property
    def text(self) -> str:
        """All non-empty parts."""
        return "\n\n".join(part for part in (self.instructions, self.personality, self.preferences_text) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextContent(Plain):
    """Everything in a prompt except the user's turn."""

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
    """The context of one dialogue turn, and how it was selected."""

    session_id: str
    turn_id: str
    query: str
    content: ContextContent
    text: str
    """The prompt as a single text with the parts [SYSTEM], [CONTEXT], [KNOWLEDGE] and [USER]."""
    token_count: int
    """Tokens of the prompt as text or as messages, whichever is more."""
    max_tokens: int
    budget: TokenBudget
    """Tokens per section, after tokens unused by entities and knowledge were redistributed."""
    tokens: Mapping[str, int] = field(default_factory=dict)
    """Tokens used per section."""
    strategy: str = ""
    resolved: tuple[ResolvedEntity, ...] = ()
    chunks_retrieved: int = 0
    """The number of candidate chunks."""
    reranking_used: bool = False
    """Whether a reranker ordered the chunks. False if it failed or timed out."""
    personality: str = ""
    """The kind of the personality."""
    failures: tuple[SourceFailure, ...] = ()
    """Sources that failed or timed out."""
    at: str = ""
    """The time of assembly in ISO 8601, from the assembler's clock."""
