"""Checkpoint databases, opened read-only and without importing the host's code."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph_scrum_master._internal.files import first_bytes
from langgraph_scrum_master.errors import DecodeError

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

SQLITE = b"SQLite format 3\x00"
"""The first bytes of a SQLite database."""

POSTGRES = ("postgres://", "postgresql://")
"""The schemes of PostgreSQL connection strings."""


class CheckpointDatabase(NamedTuple):
    """An open checkpoint database."""

    saver: BaseCheckpointSaver[Any]
    query: Callable[[str, Sequence[str]], list[tuple[Any, ...]]]
    """Runs a statement, with `?` as placeholders, and returns its rows."""
    name: str


def is_database(source: str | Path) -> bool:
    """Whether this is a checkpoint database, of which one thread is replayed at a time."""
    if str(source).startswith(POSTGRES):
        return True
    try:
        return first_bytes(source, len(SQLITE)) == SQLITE
    except OSError:
        return False


@contextmanager
def open_database(source: str) -> Iterator[CheckpointDatabase]:
    """Open the database read-only."""
    reader = _postgres if source.startswith(POSTGRES) else _sqlite
    serde_log, quiet = logging.getLogger("langgraph.checkpoint.serde.jsonplus"), _Quiet()
    serde_log.addFilter(quiet)
    try:
        with reader(source) as database:
            yield database
    finally:
        serde_log.removeFilter(quiet)


class _Quiet(logging.Filter):
    """Drops LangGraph's warning about types that are read as dicts, which is intended here."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("Blocked deserialization")


@contextmanager
def _sqlite(source: str) -> Iterator[CheckpointDatabase]:
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError as error:
        raise DecodeError(_missing("langgraph-checkpoint-sqlite")) from error
    path = Path(source).absolute()
    # Any other mode may write. `immutable` does not even create the -wal and -shm files.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, check_same_thread=False)) as connection:
            saver = SqliteSaver(connection, serde=_serde())
            # Its set-up would write to the database, and would detect this.
            saver.is_setup, saver._has_task_path = True, _has_task_path(connection)
            yield CheckpointDatabase(saver, lambda text, values: connection.execute(text, values).fetchall(), path.name)
    except sqlite3.Error as error:
        raise DecodeError(f"{path.name!r} is not a checkpoint database: {error}") from error


def _has_task_path(connection: sqlite3.Connection) -> bool:
    """Whether the database stores the order of concurrent writes. Those of earlier versions do not."""
    return "task_path" in {row[1] for row in connection.execute("PRAGMA table_info(writes)")}


@contextmanager
def _postgres(source: str) -> Iterator[CheckpointDatabase]:
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

            yield CheckpointDatabase(PostgresSaver(connection, serde=_serde()), query, database_name(source))
    except psycopg.Error as error:
        # The driver's message may contain the password.
        reason = str(error).replace(source, "").strip().split("\n")[0]
        raise DecodeError(f"cannot read {database_name(source)!r}: {type(error).__name__}: {reason}") from error


def _serde() -> Any:
    """Reads all custom types as dicts, because data from a database must not trigger imports."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    return JsonPlusSerializer(allowed_msgpack_modules=None)


def database_name(source: str) -> str:
    """The name of a database in output. Never its connection string, which may contain a password."""
    return "postgres" if source.startswith(POSTGRES) else Path(source).name


def _missing(packages: str) -> str:
    return f"reading checkpoints from this database needs another package: pip install {packages}"
