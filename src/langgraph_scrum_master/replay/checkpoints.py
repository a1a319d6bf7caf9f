"""Converts checkpoints to snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph_scrum_master._internal.serialisation import from_plain
from langgraph_scrum_master._internal.shapes import dict_of, items_of, read, text_of, unwrapped
from langgraph_scrum_master.errors import DecodeError, NotFoundError
from langgraph_scrum_master.model import InjectionResult, Snapshot
from langgraph_scrum_master.replay.databases import CheckpointDatabase, open_database
from langgraph_scrum_master.replay.deltas import delta_channels, join_writes, unwrap
from langgraph_scrum_master.replay.threads import Place, checkpoints_of, not_found_message, places, subgraph_note
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
    """Snapshots in chronological order."""

    snapshots: Iterable[Placed]
    carries_state: bool = False
    """True if the graph had no scrum master. Its state keys are then carried over from step to step."""
    total: int = 0
    """Number of snapshots."""
    note: str = ""
    """What the source has beside these snapshots, and how to read it."""


def thread_steps(source: str, thread: str, subgraph: str | None = None) -> Iterator[Run]:
    """The steps of a thread, oldest first, with all branches of a fork. Each call of a subgraph is a run."""
    with open_database(source) as database:
        ids = checkpoints_of(database, thread)
        selected = places(thread, subgraph or "", ids)
        if not selected:
            raise NotFoundError(not_found_message(database.name, thread, subgraph, ids))
        newest = [_load(database, place, ids[place.namespace][-1]) for place in selected]
    note = " ".join(filter(None, (subgraph_note(thread, ids) if subgraph is None else "", _delta_note(thread, newest))))
    for place, last in zip(selected, newest, strict=True):
        carries_state = not any(last.checkpoint["channel_values"].get(key) for key in STATE_KEYS)
        yield Run(_steps(source, place, ids[place.namespace]), carries_state, len(ids[place.namespace]), note)
        note = ""


def _delta_note(thread: str, newest: Iterable[CheckpointTuple]) -> str:
    """A note on the keys that only the thread's graph can join."""
    channels = {key for each in newest for key in delta_channels(each.checkpoint, each.metadata)}
    keys = [key for key in (*HOST_KEYS, *STATE_KEYS) if key in channels and key != MESSAGES]
    return (
        f"thread {thread!r} stores {keys} as deltas, which only its graph can join. Most of them are missing here: "
        "use replay(graph.get_state_history(config))."
        if keys
        else ""
    )


def is_saved_state(thing: object) -> bool:
    """Whether this is a `StateSnapshot` of LangGraph."""
    return isinstance(thing, tuple) and {"values", "created_at", "next"}.issubset(getattr(thing, "_fields", ()))


def history_steps(states: Sequence[object]) -> Iterator[Placed]:
    """The steps of `graph.get_state_history(config)`, oldest first."""
    ordered = sorted(states, key=lambda state: text_of(read(state, "created_at")))
    for state, after in zip(ordered, (*ordered[1:], None), strict=True):
        metadata, (values, at) = dict_of(read(state, "metadata")), unwrapped(state)
        if metadata.get("source") == "input":
            continue
        followed = after is not None and _parent_of(after) == _id_of(state)
        result = _recorded_result(values, unwrapped(after)[0]) if followed else None
        ran = (followed and _is_ours(items_of(read(state, "next")))) or result is not None
        snapshot = taken(
            values,
            at=at,
            thread=str(dict_of(dict_of(read(state, "config")).get("configurable")).get("thread_id", "")),
            step=metadata.get("step", 0),
            origin="checkpoint",
            ran=ran,
            result=result,
        )
        yield Placed("", snapshot)


def _steps(source: str, place: Place, ids: Sequence[str]) -> Iterator[Placed]:
    """The step of each checkpoint. `Placed.snapshot` is None for checkpoints that are not steps."""
    with open_database(source) as database:
        current: CheckpointTuple | None = None
        for checkpoint in ids:
            try:
                after = _load(database, place, checkpoint, current)
            except DecodeError as error:
                yield Placed(database.name, None, str(error))
                continue
            if current is not None:
                yield Placed(database.name, _snapshot(place, current, after))
            current = after
        if current is not None:
            yield Placed(database.name, _snapshot(place, current, None))


def _snapshot(place: Place, current: CheckpointTuple, after: CheckpointTuple | None) -> Snapshot | None:
    # An input checkpoint still has the previous state.
    if current.metadata.get("source") == "input":
        return None
    values = current.checkpoint["channel_values"]
    followed = after is not None and _follows(after, current)
    result = _recorded_result(values, after.checkpoint["channel_values"]) if after is not None and followed else None
    # A node may have another name than ours, and is known then by what it wrote.
    ran = after is not None and (_is_ours(_nodes_between(current, after)) or result is not None)
    return taken(
        {key: unwrap(value) for key, value in values.items()},
        at=current.checkpoint["ts"],
        thread=place.name,
        step=current.metadata.get("step", 0),
        origin="checkpoint",
        ran=ran,
        result=result,
    )


def _parent_of(state: object) -> object:
    return dict_of(dict_of(read(state, "parent_config")).get("configurable")).get("checkpoint_id")


def _id_of(state: object) -> object:
    return dict_of(dict_of(read(state, "config")).get("configurable")).get("checkpoint_id")


def _is_ours(nodes: Iterable[object]) -> bool:
    """Whether one of the nodes is a scrum master, or its middleware before a model call."""
    return any(str(node).removesuffix(".before_model") in SCRUM_MASTERS for node in nodes)


def _nodes_between(before: CheckpointTuple, after: CheckpointTuple) -> set[str]:
    """The nodes that ran between two checkpoints, by their `versions_seen`. Empty where the thread forked."""
    if not _follows(after, before):
        return set()
    seen, earlier = after.checkpoint["versions_seen"], before.checkpoint["versions_seen"]
    return {name for name, versions in seen.items() if earlier.get(name) != versions}


def _follows(after: CheckpointTuple, before: CheckpointTuple) -> bool:
    parent = dict_of(dict_of(after.parent_config).get("configurable")).get("checkpoint_id")
    return bool(parent == before.checkpoint["id"])


def _recorded_result(before: Mapping[str, Any], after: Mapping[str, Any]) -> InjectionResult | None:
    """The result that was written between two states, with the injected text."""
    result = after.get(RESULT_KEY)
    if result is None or result == before.get(RESULT_KEY):
        return None
    try:
        data = dict_of(plain(result))
        texts = {payload["gap_id"]: text_of(payload.get("text")) for payload in waiting(after)}
        return from_plain(InjectionResult, {**data, "text": texts.get(dict_of(data.get("gap")).get("gap_id"), "")})
    # Written by another version, in an unknown format.
    except DecodeError:
        return None


def _load(
    database: CheckpointDatabase, place: Place, checkpoint: str, before: CheckpointTuple | None = None
) -> CheckpointTuple:
    """A checkpoint with its messages. Messages in deltas load faster with the checkpoint before."""
    where: RunnableConfig = {
        "configurable": {
            "thread_id": place.thread,
            "checkpoint_ns": place.namespace,
            "checkpoint_id": checkpoint,
        }
    }
    try:
        checkpoint_tuple = database.saver.get_tuple(where)
        if checkpoint_tuple is not None:
            _join_messages(database, where, checkpoint_tuple, before)
    # Written with a custom serializer, encrypted, or damaged.
    except Exception as error:
        raise DecodeError(
            f"{database.name!r}: cannot read checkpoint {checkpoint!r} of thread {place.name!r}: "
            f"{type(error).__name__}: {error}"
        ) from error
    if checkpoint_tuple is None:
        raise DecodeError(f"{database.name!r}: checkpoint {checkpoint!r} of thread {place.name!r} no longer exists")
    return checkpoint_tuple


def _join_messages(
    database: CheckpointDatabase, where: RunnableConfig, current: CheckpointTuple, before: CheckpointTuple | None
) -> None:
    """Complete the messages of a checkpoint that stores only the writes since an earlier one."""
    values = current.checkpoint["channel_values"]
    if MESSAGES in values or MESSAGES not in current.checkpoint["channel_versions"]:
        values.update({MESSAGES: unwrap(values[MESSAGES])} if MESSAGES in values else {})
    elif before is not None and _follows(current, before):
        writes = [value for _, channel, value in before.pending_writes or () if channel == MESSAGES]
        values[MESSAGES] = join_writes(before.checkpoint["channel_values"].get(MESSAGES), writes)
    else:
        history = database.saver.get_delta_channel_history(config=where, channels=[MESSAGES])[MESSAGES]
        values[MESSAGES] = join_writes(unwrap(history.get("seed")), [value for *_, value in history["writes"]])
