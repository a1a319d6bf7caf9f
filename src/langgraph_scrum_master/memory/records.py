"""The types that a memory stores and returns, and the records behind them."""

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
    """A text to remember, with its metadata."""

    content: str
    key: str = ""
    """By default a hash of session and content, so that storing a text twice stores it once."""
    agent: str = ""
    session: str = ""
    """Texts of a session are ordered by when they were stored."""
    created_at: str = ""
    references: tuple[str, ...] = ()
    """Names of stories, decisions, files, commits or other memories that it refers to."""
    importance: float = 0.5
    confidence: float = 1.0
    observations: int = 1
    """How often it was observed."""
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    """Any other fields."""

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
        """A memory from key, content and metadata."""
        names = ("agent", "session", "created_at", "references", "importance", "confidence", "observations")
        known = {name: metadata[name] for name in names if metadata.get(name) is not None}
        rest = {name: value for name, value in metadata.items() if name not in names}
        return cls(key=key, content=content, **known, metadata=rest)

    def fields(self) -> dict[str, Any]:
        """All fields but key and content in one dict, without defaults."""
        changed = {
            each.name: value
            for each in fields(self)
            if each.name not in ("key", "content", "metadata") and (value := getattr(self, each.name)) != each.default
        }
        return {**self.metadata, **{name: value for name, value in changed.items() if value != ()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResult(Plain):
    """A search result. Scores run from 0 to 1, higher is better."""

    key: str
    content: str
    score: float
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    strengths: dict[str, float] = field(default_factory=dict, hash=False)
    """The strength in each space that applies to the query, by code (E1 to E13)."""
    weighted_agreement: float = 0.0
    """The weighted sum of the strengths, at most 8.5 by default."""

    @property
    def memory(self) -> Memory:
        """The result as a `Memory`."""
        # Results have the kind of record in their metadata, unless the metadata had a field `kind` already.
        own = {name: value for name, value in self.metadata.items() if (name, value) != ("kind", "memory")}
        return Memory.of(self.key, self.content, own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Plain):
    """A decision of an agent, with its rationale."""

    agent_type: str
    context: str
    rationale: str = ""
    outcome: str = ""
    decision_type: str = ""
    artifact_type: str = ""
    artifact_ids: tuple[str, ...] = ()
    timestamp: str = field(default_factory=utc_now)
    id: str = ""
    """By default a hash of agent, context and rationale, so that storing a decision twice stores it once."""

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
    """Conditions on decisions; None matches all."""

    agent_type: str | None = None
    time_range_start: str | None = None
    time_range_end: str | None = None
    artifact_type: str | None = None
    decision_type: str | None = None

    def accepts(self, decision: Decision) -> bool:
        """Whether the decision meets every condition. The time range includes its end."""
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
    """A search result for decisions."""

    decision: Decision
    similarity: float
    strengths: dict[str, float] = field(default_factory=dict, hash=False)
    """As in `MemoryResult`."""
    weighted_agreement: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePattern(Plain):
    """A convention of the code base."""

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
        """Derived from type and name: storing a pattern again updates it."""
        return f"pattern:{digest(self.pattern_type, self.name)}"

    @property
    def text(self) -> str:
        """The pattern as prose."""
        examples = f"\nExamples: {', '.join(self.examples)}" if self.examples else ""
        return f"{self.name} ({self.pattern_type}): {self.value}{examples}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternResult:
    """A search result for patterns."""

    pattern: CodePattern
    similarity: float
    strengths: dict[str, float] = field(default_factory=dict, hash=False)
    """As in `MemoryResult`."""
    weighted_agreement: float = 0.0


RecordType = TypeVar("RecordType", Decision, CodePattern)

Kind: TypeAlias = Literal["memory", "decision", "pattern", "session", "relationship"]
"""The kind of a record; `session` is the summary of a session."""

SEARCHED: tuple[Kind, ...] = ("memory", "decision", "pattern", "session")
"""The kinds that `search_similar` searches."""

RECORD_KINDS: tuple[Kind, ...] = (*SEARCHED, "relationship")
"""All kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One stored text; `data` holds JSON values."""

    kind: Kind
    key: str
    text: str
    data: dict[str, Any]


class Ranked(NamedTuple):
    """A record and its match with a query."""

    record: Record
    match: Match


def embedded(texts: Sequence[str], embedder: Embedder) -> list[list[float]]:
    """A unit vector for each text, from the embedder alone."""
    from langgraph_scrum_master.rank.query import unit_vectors

    vectors: list[list[float]] = unit_vectors(texts, embedder).tolist() if texts else []
    return vectors


def session_of(record: Record) -> str:
    """The session of a record; empty if it has none."""
    session = record.data.get("session")
    return "" if session is None else well_formed(str(session))


def agent_of(record: Record) -> str:
    """The agent of a record; empty if it has none."""
    agent = record.data.get("agent_type") or record.data.get("agent")
    return well_formed(agent) if isinstance(agent, str) else ""


def created_of(record: Record) -> float:
    """The creation time of a record in seconds since the epoch; 0 if it has none."""
    at = instant(str(record.data.get("created_at") or record.data.get("timestamp") or ""))
    return at if at > 0 else 0.0


def names_of(record: Record) -> tuple[str, str]:
    """The names by which others cite a record: the one in its heading, and its key."""
    return own_reference(record.text), canonical(record.key)


def references_of(record: Record) -> list[str]:
    """The records that a record lists in its metadata, by their names in texts."""
    listed = [str(name) for field in ("references", "artifact_ids") for name in items_of(record.data.get(field))]
    return [reference for name in listed for reference in (canonical(name), *references(name))]


def memory_record(key: str, content: str, metadata: Mapping[str, Any]) -> Record:
    """A text as a record."""
    return Record(kind="memory", key=key, text=content, data=json_shapes(dict_of(metadata)))


def as_stored(record: Record) -> Record:
    """The record without characters that databases reject."""
    key, text = well_formed(record.key), well_formed(record.text)
    return record if (key, text) == (record.key, record.text) else replace(record, key=key, text=text)


def distinct_records(records: Iterable[Record]) -> list[Record]:
    """The records in storable form; of several with the same kind and key, the last."""
    return list({(record.kind, record.key): record for record in map(as_stored, records)}.values())


def decode(kind: type[RecordType], record: Record) -> RecordType | None:
    """The decision or pattern in a record. Logs a warning and returns None if it is invalid."""
    try:
        return from_plain(kind, record.data)
    except DecodeError:
        logger.warning("record.skipped", kind=record.kind, key=record.key, expected=kind.__name__)
        return None


def result_of(record: Record, match: Match) -> MemoryResult:
    """The record as a search result."""
    return MemoryResult(
        key=record.key,
        content=record.text,
        score=match.score,
        metadata={"kind": record.kind, **record.data},
        **why(match),
    )


def why(match: Match) -> dict[str, Any]:
    """The fields of a result that explain its score."""
    return {"strengths": dict(match.strengths), "weighted_agreement": match.agreement}
