"""Databases of checkpoints → snapshots. Nothing is written to them, and no code of the host's is loaded."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph_scrum_master.codec import from_plain
from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.history import waiting
from langgraph_scrum_master.model import InjectionResult, Snapshot
from langgraph_scrum_master.observe.observation import SCRUM_MASTERS
from langgraph_scrum_master.record.files import Placed
from langgraph_scrum_master.record.snapshots import plain, taken
from langgraph_scrum_master.shapes import dict_of, items_of, read, text_of, unwrapped
from langgraph_scrum_master.state import STATE_KEYS

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

SQLITE = b"SQLite format 3\x00"
"""How a SQLite database begins."""

POSTGRES = ("postgres://", "postgresql://")
"""How a connection string of PostgreSQL begins."""

RESULT_KEY = "injection_result"


class Thread(NamedTuple):
    """A thread of a database."""

    thread: str
    steps: int
    newest: str
    """When its newest checkpoint was written."""


class _Database(NamedTuple):
    saver: BaseCheckpointSaver[Any]
    query: Callable[[str, Sequence[str]], list[tuple[Any, ...]]]
    """The rows of a statement, with `?` for values."""
    name: str


def is_database(source: str | Path) -> bool:
    """Whether this is a database of checkpoints, of which one thread is replayed at a time."""
    if str(source).startswith(POSTGRES):
        return True
    try:
        with Path(source).open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def threads(source: str) -> list[Thread]:
    """The threads of a database, the latest first."""
    with _opened(source) as database:
        rows = database.query(
            "SELECT thread_id, COUNT(*) AS steps, MAX(checkpoint_id) AS newest FROM checkpoints "
            "WHERE checkpoint_ns = '' GROUP BY thread_id",
            (),
        )
    latest = sorted(rows, key=lambda row: (row[2], row[0]), reverse=True)
    return [Thread(str(row[0]), int(row[1]), _written(str(row[2]))) for row in latest]


def thread_steps(source: str, thread: str | None) -> tuple[Iterator[Placed], bool]:
    """The steps of a thread, oldest first, of all its branches if it forked; and whether it had no scrum master."""
    if thread is None:
        raise DecodeError(
            f"{_named(source)!r} is a database of checkpoints: say which thread, as `scrum-master replay` lists"
        )
    with _opened(source) as database:
        ids = _ids(database, thread)
        newest = _loaded(database, thread, ids[-1]).checkpoint["channel_values"]
    return _steps(source, thread, ids), not any(newest.get(key) for key in STATE_KEYS)


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


def _steps(source: str, thread: str, ids: Sequence[str]) -> Iterator[Placed]:
    with _opened(source) as database:
        current: CheckpointTuple | None = None
        for checkpoint in ids:
            try:
                after = _loaded(database, thread, checkpoint)
            except DecodeError as error:
                yield Placed(database.name, None, str(error))
                continue
            if current is not None and _is_step(current):
                yield Placed(database.name, _snapshot(thread, current, after))
            current = after
        if current is not None and _is_step(current):
            yield Placed(database.name, _snapshot(thread, current, None))


def _is_step(checkpoint: CheckpointTuple) -> bool:
    # Where an input was only taken, the state is still the one before.
    return checkpoint.metadata.get("source") != "input"


def _snapshot(thread: str, current: CheckpointTuple, after: CheckpointTuple | None) -> Snapshot:
    values = current.checkpoint["channel_values"]
    ran = after is not None and bool(_acted(current, after).intersection(SCRUM_MASTERS))
    return taken(
        {key: _value(value) for key, value in values.items()},
        at=current.checkpoint["ts"],
        thread=thread,
        step=current.metadata.get("step", 0),
        origin="checkpoint",
        ran=ran,
        result=_recorded(values, after.checkpoint["channel_values"]) if ran and after is not None else None,
    )


def _acted(before: CheckpointTuple, after: CheckpointTuple) -> set[str]:
    """The nodes that ran between the two: what they have seen has changed. None where the thread forked."""
    parent = dict_of(dict_of(after.parent_config).get("configurable")).get("checkpoint_id")
    if parent != before.checkpoint["id"]:
        return set()
    seen, earlier = after.checkpoint["versions_seen"], before.checkpoint["versions_seen"]
    return {name for name, versions in seen.items() if earlier.get(name) != versions}


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


def _value(value: object) -> Any:
    # A channel that is written in deltas keeps its whole value wrapped.
    return getattr(value, "value", value) if type(value).__name__ == "_DeltaSnapshot" else value


def _ids(database: _Database, thread: str) -> list[str]:
    rows = database.query(
        "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id",
        (thread,),
    )
    if not rows:
        raise DecodeError(f"there is no thread {thread!r} in {database.name!r}: without --thread all are listed")
    return [str(row[0]) for row in rows]


def _loaded(database: _Database, thread: str, checkpoint: str) -> CheckpointTuple:
    where = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint}
    try:
        found = database.saver.get_tuple({"configurable": where})
    # Written with a serializer of the host's, encrypted for one, or damaged.
    except Exception as error:
        raise DecodeError(
            f"{database.name!r}: checkpoint {checkpoint!r} of thread {thread!r} cannot be read: "
            f"{type(error).__name__}: {error}"
        ) from error
    if found is None:
        raise DecodeError(f"{database.name!r}: checkpoint {checkpoint!r} of thread {thread!r} is gone")
    if "messages" in found.checkpoint["channel_versions"] and "messages" not in found.checkpoint["channel_values"]:
        raise DecodeError(
            f"{database.name!r}: thread {thread!r} keeps its messages in deltas, which only its graph can join: "
            "use replay(graph.get_state_history(config))"
        )
    return found


@contextmanager
def _opened(source: str) -> Iterator[_Database]:
    opened = _postgres if source.startswith(POSTGRES) else _sqlite
    serde_log, quiet = logging.getLogger("langgraph.checkpoint.serde.jsonplus"), _Quiet()
    serde_log.addFilter(quiet)
    try:
        with opened(source) as database:
            yield database
    finally:
        serde_log.removeFilter(quiet)


class _Quiet(logging.Filter):
    """Drops LangGraph's notice of types that come back as dicts: here that is meant."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("Blocked deserialization")


@contextmanager
def _sqlite(source: str) -> Iterator[_Database]:
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError as error:
        raise DecodeError(_missing("langgraph-checkpoint-sqlite")) from error
    path = Path(source).absolute()
    # Opening it in any other way may write: where nobody has it open, not even the files beside it are made.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, check_same_thread=False)) as connection:
            saver = SqliteSaver(connection, serde=_serde())
            # Its own set-up writes.
            saver.is_setup = True
            yield _Database(saver, lambda text, values: connection.execute(text, values).fetchall(), path.name)
    except sqlite3.Error as error:
        raise DecodeError(f"{path.name!r} is no database of checkpoints: {error}") from error


@contextmanager
def _postgres(source: str) -> Iterator[_Database]:
    try:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
    except ImportError as error:
        raise DecodeError(_missing("langgraph-checkpoint-postgres psycopg[binary]")) from error
    try:
        with psycopg.Connection.connect(
            source, autocommit=True, prepare_threshold=0, row_factory=dict_row
        ) as connection:
            connection.execute("SET default_transaction_read_only = on")

            def query(text: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
                rows = connection.execute(text.replace("?", "%s").encode(), values).fetchall()
                return [tuple(row.values()) for row in rows]

            yield _Database(PostgresSaver(connection, serde=_serde()), query, _named(source))
    except psycopg.Error as error:
        # What the driver says may hold the password.
        told = str(error).replace(source, "").strip().split("\n")[0]
        raise DecodeError(f"{_named(source)!r} cannot be read: {type(error).__name__}: {told}") from error


def _serde() -> Any:
    """Gives the host's types, and ours, as dicts: a database is data, and must not have modules imported."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    return JsonPlusSerializer(allowed_msgpack_modules=None)


def _named(source: str) -> str:
    """What a database is called in output: never its connection string."""
    return "postgres" if source.startswith(POSTGRES) else Path(source).name


def _missing(packages: str) -> str:
    return f"checkpoints in such a database are read with another package: pip install {packages}"


_GREGORIAN = 0x01B21DD213814000
"""Ticks of 100 ns from the start of the calendar that UUIDs count in to the epoch."""


def _written(checkpoint: str) -> str:
    """When a checkpoint was written, as its id tells; nothing if it does not."""
    digits = checkpoint.replace("-", "")
    try:
        ticks = int(digits[:12] + digits[13:16], 16) - _GREGORIAN
        return datetime.fromtimestamp(ticks / 1e7, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""
