"""Every plug point on one page, each with the rules that an implementation must keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeGuard, overload, runtime_checkable

from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.model import (
    ContextGap,
    InjectionRecord,
    InjectionResult,
    Observation,
    Query,
    RetrievedContext,
    Turn,
)

if TYPE_CHECKING:
    from langgraph_scrum_master.dialogue.model import EntityContext, KnowledgeChunk, ResolvedEntity
    from langgraph_scrum_master.memory.records import (
        CodePattern,
        Decision,
        DecisionFilter,
        DecisionResult,
        Memory,
        MemoryResult,
        PatternResult,
    )

State: TypeAlias = Mapping[str, Any]
"""The graph's state as it comes: nothing in it can be relied on, and nothing in it is changed."""

Clock: TypeAlias = Callable[[], float]
"""Seconds since the epoch. The only source of time: a frozen clock makes a run repeatable."""

Detector: TypeAlias = Callable[[Observation], Iterable[ContextGap]]
"""Finds gaps of one reason. Yields nothing on a healthy team, does no I/O, and keeps no state."""

TokenCounter: TypeAlias = Callable[[str], int]
"""Tokens in a text. Never negative, and never less for a longer text that starts with the same text."""

Recorder: TypeAlias = Callable[[InjectionResult], None]
"""Keeps a result for the audit trail. May block: it is called off the event loop. What it raises is logged."""


@runtime_checkable
class RecordsOutcomes(Protocol):
    """What a recorder may be as well, to be told what became of what was injected."""

    def record_outcome(self, record: InjectionRecord) -> None:
        """Keep it, as a recorder keeps a result: off the event loop, and what it raises is logged."""
        ...


@runtime_checkable
class Source(Protocol):
    """A place that context comes from.

    - `find` gives contexts with calibrated scores, in any order, below the bar as well: the bar is the pipeline's.
    - It changes nothing, and does not block the event loop.
    - It may raise: that is recorded as this source's failure, and the others go on.
    """

    @property
    def name(self) -> str:
        """What `enabled_sources` and the audit trail call it."""
        ...

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts for the query, at most about `query.k`."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors. Any LangChain `Embeddings` is one.

    - All vectors have one length, and the same text gives the same vector.
    - Calls may block: they are made off the event loop.
    """

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector per text."""
        ...

    def embed_query(self, text: str) -> list[float]:
        """The vector to look for."""
        ...


class ChatModel(Protocol):
    """Any LangChain chat model."""

    async def ainvoke(self, input: Any) -> Any:
        """The model's message for a list of (role, text)."""
        ...


@runtime_checkable
class Assistant(Protocol):
    """Helps with what rules cannot decide; asked only where there is a gap. `ChatAssistant` is one over a chat model.

    - `None` is no opinion: the way without an assistant is taken, as where it raises or is late.
    - What it is shown is data, whatever stands in it.
    """

    async def confirm(self, gap: ContextGap, turns: Sequence[Turn]) -> bool | None:
        """Whether a doubtful gap is one."""
        ...

    async def query(self, gap: ContextGap, turns: Sequence[Turn]) -> str | None:
        """What the agent lacks, as a query that is understood without the conversation."""
        ...

    async def pick(self, query: str, candidates: Sequence[str]) -> Sequence[int] | None:
        """The places of those candidates that answer the query, best first; empty if none does."""
        ...


@runtime_checkable
class MemoryStore(Protocol):
    """Keeps what the team knows and finds it again.

    - Storing the same key again replaces it: writes are idempotent.
    - Scores run from 0 to 1, higher is better, results come best first.
    - A store sees only its own namespace.
    - Nothing blocks the event loop. An empty store gives empty results. What fails raises `StoreError`.
    - A store that can do more names it in an attribute `capabilities`, a frozenset of `Capability`, and has the methods
      of each. One without that attribute has these methods only, and is asked for nothing else.
    """

    async def store_embedding(self, key: str, content: str, metadata: Mapping[str, Any]) -> None:
        """Keep a text under a key."""
        ...

    async def search_similar(self, query: str, k: int = 5) -> Sequence[MemoryResult]:
        """The memories of any kind that serve the query best; no bar is applied."""
        ...

    async def store_relationship(self, source: str, target: str, relation: str) -> None:
        """Keep that two things are related."""
        ...

    async def store_pattern(self, pattern: CodePattern) -> str:
        """Keep a pattern; gives its id."""
        ...

    async def search_patterns(
        self, query: str = "", pattern_type: str | None = None, k: int = 5
    ) -> Sequence[PatternResult]:
        """The patterns that fit the query best; with an empty query, any of the type."""
        ...

    async def get_patterns_by_type(self, pattern_type: str) -> Sequence[CodePattern]:
        """All patterns of the type."""
        ...

    async def store_decision(self, decision: Decision) -> str:
        """Keep a decision; gives its id."""
        ...

    async def search_decisions(
        self, query: str, filters: DecisionFilter | None = None, k: int = 5
    ) -> Sequence[DecisionResult]:
        """The decisions that pass the filter and fit the query best."""
        ...

    async def get_decisions_by_agent(self, agent_type: str, limit: int = 10) -> Sequence[Decision]:
        """The agent's decisions, newest first."""
        ...


Capability: TypeAlias = Literal[
    "answers",
    "batches",
    "deletion",
    "filters",
    "joint_search",
    "lookup",
    "namespaces",
    "notes",
    "sessions",
    "shelves",
    "vectors",
    "words",
]
"""What a store may do beside the methods of `MemoryStore`, as it says in its attribute `capabilities`."""


class AnswerMemory(MemoryStore, Protocol):
    """A store with the capability "answers": it searches in the light of what was said around a need."""

    async def search_answers(
        self, need: str, around: Sequence[tuple[str, float]] = (), k: int = 5
    ) -> Sequence[MemoryResult]:
        """What most likely holds the answer; no bar is applied.

        `around` are texts with how much each counts: 1 as much as the need itself.
        """
        ...


class BatchMemory(MemoryStore, Protocol):
    """A store with the capability "batches": it stores many texts in one step."""

    async def store_many(self, rows: Iterable[Memory | tuple[str, str, Mapping[str, Any]]]) -> None:
        """Store texts, each as a `Memory`, or as key, content and metadata; one with the same key is replaced."""
        ...


class DeletionMemory(MemoryStore, Protocol):
    """A store with the capability "deletion"."""

    async def forget(self, *keys: str) -> None:
        """Remove records by their keys, for good; those that are not there are passed over."""
        ...


class FilterMemory(MemoryStore, Protocol):
    """A store with the capability "filters": it searches among texts with given metadata."""

    async def search_where(self, query: str, wanted: Mapping[str, str], k: int = 5) -> Sequence[MemoryResult]:
        """What serves the query best, of the texts whose metadata have all of these values; no bar is applied."""
        ...


class JointMemory(MemoryStore, Protocol):
    """A store with the capability "joint_search": it searches several shelves in one step."""

    def joint_search(
        self, query: str, names: Sequence[str], k: int, patience: float
    ) -> AbstractAsyncContextManager[None]:
        """Search these shelves ("" is the memory itself); while it is open, their `search_quickly` has the results.

        Raises `TimeoutError` after `patience` seconds.
        """
        ...

    async def search_quickly(self, query: str, k: int = 5) -> Sequence[MemoryResult]:
        """The same as `search_similar`; may be less exact where that is faster."""
        ...


class LookupMemory(MemoryStore, Protocol):
    """A store with the capability "lookup": its texts can be read by key, and listed."""

    async def get_many(self, keys: Sequence[str]) -> Mapping[str, MemoryResult]:
        """The texts that are stored under these keys."""
        ...

    async def every(self) -> Sequence[MemoryResult]:
        """All texts."""
        ...


class NamespacedMemory(MemoryStore, Protocol):
    """A store with the capability "namespaces": it can be opened for another tenant in the same place."""

    @property
    def namespace(self) -> str:
        """Whose memory it is."""
        ...

    def for_namespace(self, namespace: str) -> MemoryStore:
        """The memory of this tenant, and of no other; always the same one by its name."""
        ...


class NotesMemory(MemoryStore, Protocol):
    """A store with the capability "notes": it keeps values by key that no search finds."""

    async def notes(self, book: str, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """The notes in a book; those with these keys, if given."""
        ...

    async def save_notes(self, book: str, notes: Mapping[str, Any]) -> None:
        """Write notes, which are JSON values, into a book; those that are None are removed."""
        ...


class SessionMemory(MemoryStore, Protocol):
    """A store with the capability "sessions": it knows what was worked on lately, and how sessions ended."""

    async def recent(self, query: str, session_id: str, since: str, k: int = 10) -> Sequence[MemoryResult]:
        """The newest memories of the session, or made since then, newest first, each with how like the query it is."""
        ...

    async def end_session(self, session_id: str, summary: str, at: str | None = None) -> None:
        """Keep what a session came to; ending it again replaces the summary."""
        ...

    async def last_session(self) -> MemoryResult | None:
        """The summary of the session that ended last."""
        ...


class ShelvedMemory(MemoryStore, Protocol):
    """A store with the capability "shelves": it has others beside it, for what a project has learned."""

    def beside(self, name: str) -> MemoryStore:
        """The memory of that name in the same place and namespace, with the same capabilities; none sees another."""
        ...


class VectorMemory(MemoryStore, Protocol):
    """A store with the capability "vectors": it gives the vectors that its embedder makes."""

    async def embedded(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector for each text."""
        ...


class WordMemory(MemoryStore, Protocol):
    """A store with the capability "words": it can search without a vector of the query, should embedding fail."""

    async def search_by_words(self, query: str, k: int = 5) -> Sequence[MemoryResult]:
        """What has the query's words, or their kin; no bar is applied."""
        ...


class FullMemory(
    AnswerMemory,
    BatchMemory,
    DeletionMemory,
    FilterMemory,
    JointMemory,
    LookupMemory,
    NamespacedMemory,
    NotesMemory,
    SessionMemory,
    ShelvedMemory,
    VectorMemory,
    WordMemory,
    Protocol,
):
    """A store with every method; `memory.adapter.full_memory` makes one of any store."""

    def beside(self, name: str) -> FullMemory:
        """The memory of that name in the same place and namespace."""
        ...


_PROTOCOLS: Mapping[Capability, type] = {
    "answers": AnswerMemory,
    "batches": BatchMemory,
    "deletion": DeletionMemory,
    "filters": FilterMemory,
    "joint_search": JointMemory,
    "lookup": LookupMemory,
    "namespaces": NamespacedMemory,
    "notes": NotesMemory,
    "sessions": SessionMemory,
    "shelves": ShelvedMemory,
    "vectors": VectorMemory,
    "words": WordMemory,
}

CAPABILITIES: frozenset[Capability] = frozenset(_PROTOCOLS)
"""All that a store may declare."""


@overload
def supports(memory: object, capability: Literal["answers"]) -> TypeGuard[AnswerMemory]: ...
@overload
def supports(memory: object, capability: Literal["batches"]) -> TypeGuard[BatchMemory]: ...
@overload
def supports(memory: object, capability: Literal["deletion"]) -> TypeGuard[DeletionMemory]: ...
@overload
def supports(memory: object, capability: Literal["filters"]) -> TypeGuard[FilterMemory]: ...
@overload
def supports(memory: object, capability: Literal["joint_search"]) -> TypeGuard[JointMemory]: ...
@overload
def supports(memory: object, capability: Literal["lookup"]) -> TypeGuard[LookupMemory]: ...
@overload
def supports(memory: object, capability: Literal["namespaces"]) -> TypeGuard[NamespacedMemory]: ...
@overload
def supports(memory: object, capability: Literal["notes"]) -> TypeGuard[NotesMemory]: ...
@overload
def supports(memory: object, capability: Literal["sessions"]) -> TypeGuard[SessionMemory]: ...
@overload
def supports(memory: object, capability: Literal["shelves"]) -> TypeGuard[ShelvedMemory]: ...
@overload
def supports(memory: object, capability: Literal["vectors"]) -> TypeGuard[VectorMemory]: ...
@overload
def supports(memory: object, capability: Literal["words"]) -> TypeGuard[WordMemory]: ...
@overload
def supports(memory: object, capability: Capability) -> bool: ...


def supports(memory: object, capability: Capability) -> bool:
    """Whether the store declares the capability."""
    return capability in getattr(memory, "capabilities", ())


def methods_of(capability: Capability) -> tuple[str, ...]:
    """What a store must have to declare the capability."""
    return _members(_PROTOCOLS[capability])


def missing(memory: object, user: str, *capabilities: Capability) -> ConfigError:
    """The error that says which of these capabilities the store would have to declare for its user, and how."""
    wanted = [f"{each!r} ({', '.join(methods_of(each))})" for each in capabilities if not supports(memory, each)]
    declared = ", ".join(sorted(map(repr, getattr(memory, "capabilities", ())))) or "none"
    return ConfigError(
        f"{user} needs a memory with {_plural('capability', wanted)} {' and '.join(wanted)}, and "
        f"{type(memory).__name__} declares {declared}: add the methods and name them in its `capabilities`, or use "
        "ChromaMemory, PostgresMemory or StoreMemory"
    )


def require(memory: object, user: str, *capabilities: Capability) -> None:
    """Raise `ConfigError` if the store does not declare all of these."""
    if not all(supports(memory, each) for each in capabilities):
        raise missing(memory, user, *capabilities)


def checked_memory(memory: object) -> MemoryStore:
    """The store; raises `ConfigError` where it lacks a method of the core, or of a capability that it declares."""
    if not isinstance(memory, MemoryStore):
        raise ConfigError(
            f"memory must be a MemoryStore, such as ChromaMemory('folder'), got {memory!r}, which has no "
            f"{', '.join(_absent(memory, MemoryStore))}"
        )
    for problem in capability_problems(memory):
        raise ConfigError(problem)
    return memory


def capability_problems(memory: object) -> Iterator[str]:
    """What is wrong with the capabilities that a store declares, a sentence each."""
    name = type(memory).__name__
    declared: Any = getattr(memory, "capabilities", frozenset())
    if isinstance(declared, str) or not CAPABILITIES.issuperset(declared):
        yield f"capabilities of {name} must be a frozenset of some of {sorted(CAPABILITIES)}, got {declared!r}"
        return
    for capability in sorted(declared):
        if absent := _absent(memory, _PROTOCOLS[capability]):
            yield f"{name} declares the capability {capability!r}, and has no {', '.join(absent)}"


def _absent(memory: object, protocol: type) -> list[str]:
    return [name for name in _members(protocol) if not hasattr(memory, name)]


def _members(protocol: type) -> tuple[str, ...]:
    return tuple(name for name in vars(protocol) if not name.startswith("_"))


def _plural(noun: str, things: Sequence[object]) -> str:
    return f"the {noun}" if len(things) == 1 else f"the {noun[:-1]}ies"


@runtime_checkable
class Opens(Protocol):
    """What takes long to start, such as a memory or a source: it is opened before a deadline begins to run."""

    async def open(self) -> None:
        """Load what the first use would load; may be called again."""
        ...


class Reranker(Protocol):
    """Puts pieces of documents in a better order. Any LangChain `BaseDocumentCompressor` is one.

    - It gives back those that it keeps, best first, and may shorten them. What it invents is left out.
    - Where it says in `metadata["relevance_score"]`, from 0 to 1, how relevant one is, that counts.
    - If it has `acompress_documents`, that is awaited; else it is called off the event loop. It may fail, or be late.
    """

    def compress_documents(self, documents: Sequence[Any], query: str) -> Sequence[Any]:
        """The documents (LangChain's) that serve the query, best first."""
        ...


@runtime_checkable
class EntityLookup(Protocol):
    """Knows the entities of a dialogue.

    - Looking up changes nothing, does no I/O, and the same text gives the same answer.
    - An entity that is gone is passed over.
    """

    def resolve(self, text: str) -> Sequence[ResolvedEntity]:
        """The entities named in the text, by name, alias or near-miss, most confident first."""
        ...

    def contexts(self, resolved: Sequence[ResolvedEntity]) -> Sequence[EntityContext]:
        """The resolved ones and the salient others, most relevant first, formatted."""
        ...

    @property
    def active_count(self) -> int:
        """How many the dialogue is about just now."""
        ...


@runtime_checkable
class Follows(Protocol):
    """What an `EntityLookup` may be as well, so that each dialogue has its own salience, whoever else is asking."""

    def after(self, texts: Sequence[str]) -> EntityLookup:
        """The lookup as it is where a dialogue has said these texts, oldest first; itself it stays as it is."""
        ...


@runtime_checkable
class Knowledge(Protocol):
    """Finds pieces of documents.

    - Nothing blocks the event loop. Nothing known gives nothing. What fails raises `StoreError`.
    - The order counts, whatever the relevance. `RetrievedChunks` also say how they were chosen, for the turn's record.
    """

    async def retrieve(
        self, query: str, entities: Sequence[ResolvedEntity] = (), limit: int | None = None
    ) -> Sequence[KnowledgeChunk]:
        """The pieces that serve the query, best first, above its floor, not yet fitted to tokens."""
        ...


@runtime_checkable
class Summarizer(Protocol):
    """Says a conversation in fewer words.

    - The text has a line `speaker: words` per turn, and may have `  (speech act)` below it.
    - The summary has about `max_tokens` at most: what is longer is cut.
    - It does not block the event loop. It may raise or be late: then sentences of the text serve as its summary.
    """

    async def summarize(self, text: str, max_tokens: int, focus: str = "") -> str:
        """What the text comes to; what bears on the focus should be kept."""
        ...
