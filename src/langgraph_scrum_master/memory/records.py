"""Records: what every memory stores, whatever it is stored in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from langgraph_scrum_master.codec import from_plain, json_shapes
from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.logs import logger
from langgraph_scrum_master.memories import CodePattern, Decision, Match, MemoryResult
from langgraph_scrum_master.model import instant
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.shapes import dict_of, items_of, well_formed
from langgraph_scrum_master.text.references import canonical, own_reference, references

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
    from langgraph_scrum_master.rank.asked import unit_vectors

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


def distinct(records: Iterable[Record]) -> list[Record]:
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
