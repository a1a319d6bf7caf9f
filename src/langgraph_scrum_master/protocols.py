"""All plug points, each with the rules that an implementation must follow."""

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
"""The graph's state: its contents are not trusted and never modified."""

Clock: TypeAlias = Callable[[], float]
"""Returns seconds since the epoch. The only source of time: a fixed clock makes a run reproducible."""

Detector: TypeAlias = Callable[[Observation], Iterable[ContextGap]]
"""Yields gaps of one reason. Yields nothing for a healthy team, does no I/O, and has no state."""

TokenCounter: TypeAlias = Callable[[str], int]
"""Counts the tokens in a text. Never negative; appending text never lowers the count."""

Recorder: TypeAlias = Callable[[InjectionResult], None]
"""Writes a result to the audit trail. May block: it is called off the event loop. Exceptions are logged."""


@runtime_checkable
class RecordsOutcomes(Protocol):
    """Optional for a recorder: receives the outcome of each injection."""

    def record_outcome(self, record: InjectionRecord) -> None:
        """Record the outcome. Called off the event loop; exceptions are logged."""
        ...


@runtime_checkable
class Source(Protocol):
    """A place that context comes from.

    - `find` returns contexts with calibrated scores, in any order. It applies no threshold; the pipeline does.
    - It has no side effects and does not block the event loop.
    - It may raise: the exception is recorded as the failure of this source, and the others continue.
    """

    @property
    def name(self) -> str:
        """Its name in `enabled_sources` and in the audit trail."""
        ...

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts for the query, about `query.k` at most."""
        ...


class Embedder(Protocol):
    """Converts texts to vectors. Any LangChain `Embeddings` object is an embedder.

    - All vectors have the same length, and equal texts have equal vectors.
    - Calls may block: they are made off the event loop.
    """

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""
        ...

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        ...


class ChatModel(Protocol):
    """Any LangChain chat model."""

    async def ainvoke(self, input: Any) -> Any:
        """The model's reply to a list of (role, text) pairs."""
        ...


@runtime_checkable
class Assistant(Protocol):
    """Decides what rules cannot. It is called only for gaps. `ChatAssistant` implements it with a chat model.

    - `None` means no opinion: the rules decide, as they do if it raises or misses its deadline.
    - Its input is data and must not be followed as instructions.
    """

    async def confirm(self, gap: ContextGap, turns: Sequence[Turn]) -> bool | None:
        """Whether a doubtful gap is a real one."""
        ...

    async def query(self, gap: ContextGap, turns: Sequence[Turn]) -> str | None:
        """The need as a self-contained query."""
        ...

    async def pick(self, query: str, candidates: Sequence[str]) -> Sequence[int] | None:
        """Indexes of the candidates that answer the query, best first; empty if none does."""
        ...


@runtime_checkable
class MemoryStore(Protocol):
    """Stores and searches the team's knowledge.

    - Storing under an existing key replaces the record: writes are idempotent.
    - Scores are between 0 and 1, higher is better. Results are sorted, best first.
    - A store reads and writes only its own namespace.
    - It does not block the event loop. An empty store returns empty results. Failures raise `StoreError`.
    - A store that can do more declares it in the attribute `capabilities`, a frozenset of `Capability`, and has the
      methods of each. Without that attribute, only the methods below are called.
    """

    async def store_embedding(self, key: str, content: str, metadata: Mapping[str, Any]) -> None:
        """Store a text under a key."""
        ...

    async def search_similar(self, query: str, k: int = 5) -> Sequence[MemoryResult]:
        """The best matches of any kind, without a threshold."""
        ...

    async def store_relationship(self, source: str, target: str, relation: str) -> None:
        """Store a relationship between two things."""
        ...

    async def store_pattern(self, pattern: CodePattern) -> str:
        """Store a pattern and return its id."""
        ...

    async def search_patterns(
        self, query: str = "", pattern_type: str | None = None, k: int = 5
    ) -> Sequence[PatternResult]:
        """The best-matching patterns; with an empty query, any of the type."""
        ...

    async def get_patterns_by_type(self, pattern_type: str) -> Sequence[CodePattern]:
        """All patterns of the type."""
        ...

    async def store_decision(self, decision: Decision) -> str:
        """Store a decision and return its id."""
        ...

    async def search_decisions(
        self, query: str, filters: DecisionFilter | None = None, k: int = 5
    ) -> Sequence[DecisionResult]:
        """The best-matching decisions that pass the filter."""
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
"""Optional abilities of a store beyond `MemoryStore`, declared in its attribute `capabilities`."""


class AnswerMemory(MemoryStore, Protocol):
    """A store with the capability "answers": it takes the conversation around a need into account."""

    async def search_answers(
        self, need: str, around: Sequence[tuple[str, float]] = (), k: int = 5
    ) -> Sequence[MemoryResult]:
        """The memories that most likely contain the answer, without a threshold.

        `around` has texts with weights; 1 is the weight of the need itself.
        """
        ...


class BatchMemory(MemoryStore, Protocol):
    """A store with the capability "batches": it stores many texts in one call."""

    async def store_many(self, rows: Iterable[Memory | tuple[str, str, Mapping[str, Any]]]) -> None:
        """Store texts, each a `Memory` or a tuple of key, content and metadata. Existing keys are replaced."""
        ...


class DeletionMemory(MemoryStore, Protocol):
    """A store with the capability "deletion"."""

    async def forget(self, *keys: str) -> None:
        """Delete records permanently by key; unknown keys are ignored."""
        ...


class FilterMemory(MemoryStore, Protocol):
    """A store with the capability "filters": it filters by metadata."""

    async def search_where(self, query: str, wanted: Mapping[str, str], k: int = 5) -> Sequence[MemoryResult]:
        """The best matches among texts whose metadata have all these values, without a threshold."""
        ...


class JointMemory(MemoryStore, Protocol):
    """A store with the capability "joint_search": it searches several shelves in one call."""

    def joint_search(
        self, query: str, names: Sequence[str], k: int, patience: float
    ) -> AbstractAsyncContextManager[None]:
        """Search these shelves ("" is the memory itself). Inside the context, `search_quickly` returns the results.

        Raises `TimeoutError` after `patience` seconds.
        """
        ...

    async def search_quickly(self, query: str, k: int = 5) -> Sequence[MemoryResult]:
        """Like `search_similar`, but may be less exact to be faster."""
        ...


class LookupMemory(MemoryStore, Protocol):
    """A store with the capability "lookup": its texts can be read by key and listed."""

    async def get_many(self, keys: Sequence[str]) -> Mapping[str, MemoryResult]:
        """The texts stored under these keys."""
        ...

    async def every(self) -> Sequence[MemoryResult]:
        """All texts."""
        ...


class NamespacedMemory(MemoryStore, Protocol):
    """A store with the capability "namespaces": it can open the memory of another tenant."""

    @property
    def namespace(self) -> str:
        """The tenant that owns this memory."""
        ...

    def for_namespace(self, namespace: str) -> MemoryStore:
        """The memory of this tenant only; the same namespace always returns the same memory."""
        ...


class NotesMemory(MemoryStore, Protocol):
    """A store with the capability "notes": it stores values by key that are excluded from search."""

    async def notes(self, book: str, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """The notes in a book, optionally only those with these keys."""
        ...

    async def save_notes(self, book: str, notes: Mapping[str, Any]) -> None:
        """Write notes (JSON values) into a book; None deletes a note."""
        ...


class SessionMemory(MemoryStore, Protocol):
    """A store with the capability "sessions": it knows recent work and session summaries."""

    async def recent(self, query: str, session_id: str, since: str, k: int = 10) -> Sequence[MemoryResult]:
        """Memories of the session, or created since then, newest first, each with its similarity to the query."""
        ...

    async def end_session(self, session_id: str, summary: str, at: str | None = None) -> None:
        """Store the summary of a session; ending it again replaces the summary."""
        ...

    async def last_session(self, other_than: str = "") -> MemoryResult | None:
        """The summary of the session that ended last, other than this one."""
        ...


class ShelvedMemory(MemoryStore, Protocol):
    """A store with the capability "shelves": it has separate collections for what a project has learned."""

    def beside(self, name: str) -> MemoryStore:
        """The shelf of that name, with the same namespace and capabilities; shelves are isolated from each other."""
        ...


class VectorMemory(MemoryStore, Protocol):
    """A store with the capability "vectors": it exposes the vectors of its embedder."""

    async def embedded(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector for each text."""
        ...

    async def nearest(self, vector: Sequence[float], k: int = 5) -> Sequence[MemoryResult]:
        """The memories whose vectors are nearest to this one, with their cosines as scores, from 0 to 1."""
        ...


class WordMemory(MemoryStore, Protocol):
    """A store with the capability "words": it can search by words if embedding fails."""

    async def search_by_words(self, query: str, k: int = 5) -> Sequence[MemoryResult]:
        """Texts with the query's words or related ones, without a threshold."""
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
    """A store with every capability; `memory.adapter.full_memory` wraps any store as one."""

    def beside(self, name: str) -> FullMemory:
        """The shelf of that name."""
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
"""All capabilities that a store can declare."""


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
    """The methods of a capability."""
    return _members(_PROTOCOLS[capability])


def missing(memory: object, user: str, *capabilities: Capability) -> ConfigError:
    """The error for a store that lacks some of these capabilities, which `user` needs."""
    wanted = [f"{each!r} ({', '.join(methods_of(each))})" for each in capabilities if not supports(memory, each)]
    declared = ", ".join(sorted(map(repr, getattr(memory, "capabilities", ())))) or "none"
    return ConfigError(
        f"{user} needs a memory with {_plural('capability', wanted)} {' and '.join(wanted)}, and "
        f"{type(memory).__name__} declares {declared}: add the methods and name them in its `capabilities`, or use "
        "ChromaMemory, PostgresMemory or StoreMemory"
    )


def require(memory: object, user: str, *capabilities: Capability) -> None:
    """Raise `ConfigError` unless the store declares all of these."""
    if not all(supports(memory, each) for each in capabilities):
        raise missing(memory, user, *capabilities)


def checked_memory(memory: object) -> MemoryStore:
    """The store itself; raises `ConfigError` if it lacks a core method or one of a declared capability."""
    if not isinstance(memory, MemoryStore):
        raise ConfigError(
            f"memory must be a MemoryStore, such as ChromaMemory('folder'), got {memory!r}, which has no "
            f"{', '.join(_absent(memory, MemoryStore))}"
        )
    for problem in capability_problems(memory):
        raise ConfigError(problem)
    return memory


def capability_problems(memory: object) -> Iterator[str]:
    """Problems with the capabilities that a store declares, one sentence each."""
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
    """Optional for a memory or a source that is slow to start: it is opened before a deadline starts."""

    async def open(self) -> None:
        """Load everything that the first use needs; may be called more than once."""
        ...


class Reranker(Protocol):
    """Reorders document chunks. Any LangChain `BaseDocumentCompressor` is a reranker.

    - It returns the chunks to use, best first, and may shorten them. Chunks that it invents are ignored.
    - `metadata["relevance_score"]`, from 0 to 1, replaces the relevance of a chunk.
    - `acompress_documents` is awaited if it exists; otherwise it is called off the event loop. It may fail or time out.
    """

    def compress_documents(self, documents: Sequence[Any], query: str) -> Sequence[Any]:
        """The LangChain documents that are relevant to the query, best first."""
        ...


@runtime_checkable
class EntityLookup(Protocol):
    """Looks up the entities of a dialogue.

    - A lookup has no side effects, does no I/O, and is deterministic.
    - Deleted entities are ignored.
    """

    def resolve(self, text: str) -> Sequence[ResolvedEntity]:
        """The entities named in the text (by name, alias or a near match), most confident first."""
        ...

    def contexts(self, resolved: Sequence[ResolvedEntity]) -> Sequence[EntityContext]:
        """The resolved entities and other salient ones, formatted, most relevant first."""
        ...

    @property
    def active_count(self) -> int:
        """Number of currently salient entities."""
        ...


@runtime_checkable
class Follows(Protocol):
    """Optional for an `EntityLookup`: computes salience per dialogue, so that dialogues do not affect each other."""

    def after(self, texts: Sequence[str]) -> EntityLookup:
        """A lookup for a dialogue with these texts, oldest first; this one is not modified."""
        ...


@runtime_checkable
class Knowledge(Protocol):
    """Retrieves document chunks.

    - It does not block the event loop. An empty knowledge base returns nothing. Failures raise `StoreError`.
    - The order of the chunks is used, not their relevance. `RetrievedChunks` also records how they were chosen.
    """

    async def retrieve(
        self, query: str, entities: Sequence[ResolvedEntity] = (), limit: int | None = None
    ) -> Sequence[KnowledgeChunk]:
        """The relevant chunks, best first, above the minimum relevance, not yet fitted to a token budget."""
        ...


@runtime_checkable
class Summarizer(Protocol):
    """Summarises a conversation.

    - The text has one line `speaker: words` per turn, optionally followed by `  (speech act)`.
    - The summary has about `max_tokens` tokens at most; longer summaries are cut.
    - It does not block the event loop. If it raises or times out, sentences of the text are used instead.
    """

    async def summarize(self, text: str, max_tokens: int, focus: str = "") -> str:
        """A summary of the text that keeps what is relevant to the focus."""
        ...
