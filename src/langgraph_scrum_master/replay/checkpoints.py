"""Checkpoints → snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph_scrum_master._internal.serialisation import from_plain
from langgraph_scrum_master._internal.shapes import dict_of, items_of, read, text_of, unwrapped
from langgraph_scrum_master.errors import DecodeError, NotFoundError
from langgraph_scrum_master.model import InjectionResult, Snapshot
from langgraph_scrum_master.replay.databases import CheckpointDatabase, named, open_database
from langgraph_scrum_master.replay.deltas import in_deltas, joined, whole
from langgraph_scrum_master.replay.threads import Place, checkpoints_of, none_such, places, unread_part
from langgraph_scrum_master.team.history import waiting
from langgraph_scrum_master.team.observe.observation import SCRUM_MASTERS
from langgraph_scrum_master.team.record.files import Placed
from langgraph_scrum_master.team.record.snapshots import plain, taken
from langgraph_scrum_master.team.state import HOST_KEYS, STATE_KEYS

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointTuple

RESULT_KEY = "injection_result"

MESSAGES = "messages"


class Run(NamedTuple):
    """Snapshots in the order of time."""

    snapshots: Iterable[Placed]
    carried: bool = False
    """Whether there was no scrum master: then what one would have written goes on from step to step."""
    total: int = 0
    """How many snapshots there are."""
    note: str = ""
    """What else there is, and how to have it."""


def thread_steps(source: str, thread: str | None, subgraph: str | None = None) -> Iterator[Run]:
    """The steps of a thread, oldest first, of all its branches if it forked; each call of a subgraph is a run."""
    if thread is None:
        raise DecodeError(
            f"{named(source)!r} is a database of checkpoints: say which thread, as `scrum-master replay` lists"
        )
    with open_database(source) as database:
        ids = checkpoints_of(database, thread)
        found = places(thread, subgraph or "", ids)
        if not found:
            raise NotFoundError(none_such(database.name, thread, subgraph, ids))
        newest = [_loaded(database, place, ids[place.namespace][-1]) for place in found]
    note = " ".join(filter(None, (unread_part(thread, ids) if subgraph is None else "", _apart(thread, newest))))
    for place, last in zip(found, newest, strict=True):
        carried = not any(last.checkpoint["channel_values"].get(key) for key in STATE_KEYS)
        yield Run(_steps(source, place, ids[place.namespace]), carried, len(ids[place.namespace]), note)
        note = ""


def _apart(thread: str, newest: Iterable[CheckpointTuple]) -> str:
    """What of a thread only its graph can put together."""
    kept = {key for each in newest for key in in_deltas(each.checkpoint, each.metadata)}
    keys = [key for key in (*HOST_KEYS, *STATE_KEYS) if key in kept and key != MESSAGES]
    return (
        f"thread {thread!r} keeps {keys} in deltas, which only its graph can join and which are mostly missing here: "
        "replay(graph.get_state_history(config)) has them."
        if keys
        else ""
    )


def is_saved_state(thing: object) -> bool:
    """Whether this is one of LangGraph's own snapshots."""
    return isinstance(thing, tuple) and {"values", "created_at", "next"}.issubset(getattr(thing, "_fields", ()))


def history_steps(states: Sequence[object]) -> Iterator[Placed]:
    """The steps of `graph.get_state_history(config)`, which gives the newest first, oldest first."""
    ordered = sorted(states, key=lambda state: text_of(read(state, "created_at")))
    for state, after in zip(ordered, (*ordered[1:], None), strict=True):
        metadata, (values, at) = dict_of(read(state, "metadata")), unwrapped(state)
        if metadata.get("source") == "input":
            continue
        ran = bool(set(items_of(read(state, "next"))).intersection(SCRUM_MASTERS))
        snapshot = taken(
            values,
            at=at,
            thread=str(dict_of(dict_of(read(state, "config")).get("configurable")).get("thread_id", "")),
            step=metadata.get("step", 0),
            origin="checkpoint",
            ran=ran and after is not None,
            result=_recorded(values, unwrapped(after)[0]) if ran else None,
        )
        yield Placed("", snapshot)


def _steps(source: str, place: Place, ids: Sequence[str]) -> Iterator[Placed]:
    """For each checkpoint its step; nothing for one that is none."""
    with open_database(source) as database:
        current: CheckpointTuple | None = None
        for checkpoint in ids:
            try:
                after = _loaded(database, place, checkpoint, current)
            except DecodeError as error:
                yield Placed(database.name, None, str(error))
                continue
            if current is not None:
                yield Placed(database.name, _snapshot(place, current, after))
            current = after
        if current is not None:
            yield Placed(database.name, _snapshot(place, current, None))


def _snapshot(place: Place, current: CheckpointTuple, after: CheckpointTuple | None) -> Snapshot | None:
    # Where an input was only taken, the state is still the one before.
    if current.metadata.get("source") == "input":
        return None
    values = current.checkpoint["channel_values"]
    ran = after is not None and bool(_acted(current, after).intersection(SCRUM_MASTERS))
    return taken(
        {key: whole(value) for key, value in values.items()},
        at=current.checkpoint["ts"],
        thread=place.name,
        step=current.metadata.get("step", 0),
        origin="checkpoint",
        ran=ran,
        result=_recorded(values, after.checkpoint["channel_values"]) if ran and after is not None else None,
    )


def _acted(before: CheckpointTuple, after: CheckpointTuple) -> set[str]:
    """The nodes that ran between the two: what they have seen has changed. None where the thread forked."""
    if not _follows(after, before):
        return set()
    seen, earlier = after.checkpoint["versions_seen"], before.checkpoint["versions_seen"]
    return {name for name, versions in seen.items() if earlier.get(name) != versions}


def _follows(after: CheckpointTuple, before: CheckpointTuple) -> bool:
    parent = dict_of(dict_of(after.parent_config).get("configurable")).get("checkpoint_id")
    return bool(parent == before.checkpoint["id"])


def _recorded(before: Mapping[str, Any], after: Mapping[str, Any]) -> InjectionResult | None:
    """The result that was written in between, with the text that the agent got."""
    found = after.get(RESULT_KEY)
    if found is None or found == before.get(RESULT_KEY):
        return None
    try:
        data = dict_of(plain(found))
        texts = {payload["gap_id"]: text_of(payload.get("text")) for payload in waiting(after)}
        return from_plain(InjectionResult, {**data, "text": texts.get(dict_of(data.get("gap")).get("gap_id"), "")})
    # Of another version, in a shape that is no longer known.
    except DecodeError:
        return None


def _loaded(
    database: CheckpointDatabase, place: Place, checkpoint: str, before: CheckpointTuple | None = None
) -> CheckpointTuple:
    """A checkpoint, with its messages; where they are kept in deltas, it is quicker with the one before."""
    where: RunnableConfig = {
        "configurable": {
            "thread_id": place.thread,
            "checkpoint_ns": place.namespace,
            "checkpoint_id": checkpoint,
        }
    }
    try:
        found = database.saver.get_tuple(where)
        if found is not None:
            _join(database, where, found, before)
    # Written with a serializer of the host's, encrypted for one, or damaged.
    except Exception as error:
        raise DecodeError(
            f"{database.name!r}: checkpoint {checkpoint!r} of thread {place.name!r} cannot be read: "
            f"{type(error).__name__}: {error}"
        ) from error
    if found is None:
        raise DecodeError(f"{database.name!r}: checkpoint {checkpoint!r} of thread {place.name!r} is gone")
    return found


def _join(
    database: CheckpointDatabase, where: RunnableConfig, found: CheckpointTuple, before: CheckpointTuple | None
) -> None:
    """Give a checkpoint its messages where it has only what was written since an earlier one."""
    values = found.checkpoint["channel_values"]
    if MESSAGES in values or MESSAGES not in found.checkpoint["channel_versions"]:
        values.update({MESSAGES: whole(values[MESSAGES])} if MESSAGES in values else {})
    elif before is not None and _follows(found, before):
        writes = [value for _, channel, value in before.pending_writes or () if channel == MESSAGES]
        values[MESSAGES] = joined(before.checkpoint["channel_values"].get(MESSAGES), writes)
    else:
        history = database.saver.get_delta_channel_history(config=where, channels=[MESSAGES])[MESSAGES]
        values[MESSAGES] = joined(whole(history.get("seed")), [value for *_, value in history["writes"]])
