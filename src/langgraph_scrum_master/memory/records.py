"""What a memory holds and gives back, and the records it is stored as, whatever they are stored in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.serialisation import Plain, from_plain, json_shapes
from langgraph_scrum_master._internal.shapes import dict_of, items_of, well_formed
from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.model import clamp, digest, freeze, instant, utc_now
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.match import Match
from langgraph_scrum_master.text.references import canonical, own_reference, references


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Plain):
    """A text worth keeping, and what is known of it."""

    content: str
    key: str = ""
    """Made from session and content if there is none, so that storing twice stores once."""
    agent: str = ""
    session: str = ""
    """Texts of one session stand in the order in which they were stored."""
    created_at: str = ""
    references: tuple[str, ...] = ()
    """Names of stories, decisions, files, commits or other memories that it refers to."""
    importance: float = 0.5
    confidence: float = 1.0
    observations: int = 1
    """How often it was seen."""
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    """All else."""

    def __post_init__(self) -> None:
        for name in ("agent", "session", "created_at"):
            object.__setattr__(self, name, str(getattr(self, name)))
        given: Any = self.references
        listed = (given,) if isinstance(given, str) else sorted(given) if isinstance(given, set) else given
        object.__setattr__(self, "references", tuple(str(name) for name in listed))
        clamp(self, "importance", 0.0, 1.0)
        clamp(self, "confidence", 0.0, 1.0)
        clamp(self, "observations", 1, None)
        if not self.key:
            object.__setattr__(self, "key", f"memory:{digest(self.session, self.content)}")

    @classmethod
    def of(cls, key: str, content: str, metadata: Mapping[str, Any]) -> Memory:
        """The memory that a text with such metadata is."""
        names = ("agent", "session", "created_at", "references", "importance", "confidence", "observations")
        known = {name: metadata[name] for name in names if metadata.get(name) is not None}
        rest = {name: value for name, value in metadata.items() if name not in names}
        return cls(key=key, content=content, **known, metadata=rest)

    def fields(self) -> dict[str, Any]:
        """All but key and content as one dict, without what is empty or as usual."""
        told = {
            each.name: value
            for each in fields(self)
            if each.name not in ("key", "content", "metadata") and (value := getattr(self, each.name)) != each.default
        }
        return {**self.metadata, **{name: value for name, value in told.items() if value != ()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResult(Plain):
    """A memory found again. Scores run from 0 to 1, higher is better."""

    key: str
    content: str
    score: float
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    strengths: dict[str, float] = field(default_factory=dict, hash=False)
    """Why it was found: how like the query it is in each space that had something to say, E1 to E13."""
    weighted_agreement: float = 0.0
    """Those together, each by the weight of its space, up to 8.5."""

    @property
    def memory(self) -> Memory:
        """The same with its fields."""
        # What kind of record it is stands there too, unless its own metadata says otherwise.
        own = {name: value for name, value in self.metadata.items() if (name, value) != ("kind", "memory")}
        return Memory.of(self.key, self.content, own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Plain):
    """A choice that an agent made, and why."""

    agent_type: str
    context: str
    rationale: str = ""
    outcome: str = ""
    decision_type: str = ""
    artifact_type: str = ""
    artifact_ids: tuple[str, ...] = ()
    timestamp: str = field(default_factory=utc_now)
    id: str = ""
    """Made from agent, context and rationale if there is none, so that storing twice stores once."""

    def __post_init__(self) -> None:
        freeze(self, "artifact_ids")
        if not self.id:
            object.__setattr__(self, "id", f"decision:{digest(self.agent_type, self.context, self.rationale)}")

    @property
    def text(self) -> str:
        """The decision as prose."""
        parts = (self.context, self.rationale and f"Why: {self.rationale}", self.outcome and f"Outcome: {self.outcome}")
        return "\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFilter:
    """Which decisions count; what is None does not matter."""

    agent_type: str | None = None
    time_range_start: str | None = None
    time_range_end: str | None = None
    artifact_type: str | None = None
    decision_type: str | None = None

    def accepts(self, decision: Decision) -> bool:
        """Whether the decision passes every condition given; times compare as instants, the end included."""
        equal = all(
            wanted is None or wanted == actual
            for wanted, actual in (
                (self.agent_type, decision.agent_type),
                (self.artifact_type, decision.artifact_type),
                (self.decision_type, decision.decision_type),
            )
        )
        at = instant(decision.timestamp)
        start = self.time_range_start is None or instant(self.time_range_start) <= at
        return equal and start and (self.time_range_end is None or at <= instant(self.time_range_end))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """A decision found again."""

    decision: Decision
    similarity: float
    strengths: dict[str, float] = field(default_factory=dict, hash=False)
    """Why it was found, as of a `MemoryResult`."""
    weighted_agreement: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePattern(Plain):
    """A habit of the code base."""

    pattern_type: str
    name: str
    value: str
    confidence: float = 1.0
    examples: tuple[str, ...] = ()
    source_files: tuple[str, ...] = ()
    created_at: str = field(default_factory=utc_now)

    def __post_init__(self) -> None:
        freeze(self, "examples", "source_files")
        clamp(self, "confidence", 0.0, 1.0)

    @property
    def id(self) -> str:
        """One pattern per type and name: storing it again updates it."""
        return f"pattern:{digest(self.pattern_type, self.name)}"

    @property
    def text(self) -> str:
        """The pattern as prose."""
        examples = f"\nExamples: {', '.join(self.examples)}" if self.examples else ""
        return f"{self.name} ({self.pattern_type}): {self.value}{examples}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternResult:
    """A pattern found again."""

    pattern: CodePattern
    similarity: float
    strengths: dict[str, float] = field(default_factory=dict, hash=False)
    """Why it was found, as of a `MemoryResult`."""
    weighted_agreement: float = 0.0


Stored = TypeVar("Stored", Decision, CodePattern)

Kind: TypeAlias = Literal["memory", "decision", "pattern", "session", "relationship"]
"""What a record is; a session's is the summary it ended with."""

SEARCHED: tuple[Kind, ...] = ("memory", "decision", "pattern", "session")
"""What `search_similar` looks through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One thing remembered; `data` holds JSON shapes."""

    kind: Kind
    key: str
    text: str
    data: dict[str, Any]


class Ranked(NamedTuple):
    """A record, and how well it serves a query."""

    record: Record
    match: Match


def embedded(texts: Sequence[str], embedder: Embedder) -> list[list[float]]:
    """A unit vector for each text, as the embedder makes it."""
    from langgraph_scrum_master.rank.query import unit_vectors

    vectors: list[list[float]] = unit_vectors(texts, embedder).tolist() if texts else []
    return vectors


def session_of(record: Record) -> str:
    """The session that a record says it belongs to; nothing if it does not say."""
    session = record.data.get("session")
    return "" if session is None else well_formed(str(session))


def agent_of(record: Record) -> str:
    """The agent that a record says it is from; nothing if it does not say."""
    agent = record.data.get("agent_type") or record.data.get("agent")
    return well_formed(agent) if isinstance(agent, str) else ""


def created_of(record: Record) -> float:
    """When a record says it was made, in seconds since the epoch; 0 if it does not say."""
    at = instant(str(record.data.get("created_at") or record.data.get("timestamp") or ""))
    return at if at > 0 else 0.0


def names_of(record: Record) -> tuple[str, str]:
    """What others refer to the record by: the name in its heading, and its key."""
    return own_reference(record.text), canonical(record.key)


def linked(record: Record) -> list[str]:
    """What else a record says it refers to: the records that it lists, by the names they have in texts."""
    listed = [str(name) for field in ("references", "artifact_ids") for name in items_of(record.data.get(field))]
    return [reference for name in listed for reference in (canonical(name), *references(name))]


def memory_record(key: str, content: str, metadata: Mapping[str, Any]) -> Record:
    """A text as a record."""
    return Record(kind="memory", key=key, text=content, data=json_shapes(dict_of(metadata)))


def as_stored(record: Record) -> Record:
    """The record without characters that no database takes."""
    key, text = well_formed(record.key), well_formed(record.text)
    return record if (key, text) == (record.key, record.text) else replace(record, key=key, text=text)


def distinct_records(records: Iterable[Record]) -> list[Record]:
    """The records as they are stored, the last of those with the same kind and key."""
    return list({(record.kind, record.key): record for record in map(as_stored, records)}.values())


def decoded(kind: type[Stored], record: Record) -> Stored | None:
    """What the record holds; nothing, with a warning, if that is not what it should be."""
    try:
        return from_plain(kind, record.data)
    except DecodeError:
        logger.warning("record.skipped", kind=record.kind, key=record.key, expected=kind.__name__)
        return None


def result_of(record: Record, match: Match) -> MemoryResult:
    """The record as a search gives it."""
    return MemoryResult(
        key=record.key,
        content=record.text,
        score=match.score,
        metadata={"kind": record.kind, **record.data},
        **why(match),
    )


def why(match: Match) -> dict[str, Any]:
    """The fields of a result that tell why it was found."""
    return {"strengths": dict(match.strengths), "weighted_agreement": match.agreement}
