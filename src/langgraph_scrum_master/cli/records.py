"""`scrum-master records`"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.memory import AsJson
from langgraph_scrum_master.cli.tables import folding_table
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.errors import ConfigError, DecodeError, NotFoundError, how_to_get

if TYPE_CHECKING:
    from langgraph_scrum_master.dialogue.turn_store import TurnRecords

records = typer.Typer(no_args_is_help=True, help="Show the recorded prompts of a dialogue.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="The SQLite file of a LangGraph store.")]
Namespace = Annotated[str, typer.Option(help="The namespace of the records, if they have one.")]


@records.command(name="list")
def list_(
    file: File,
    session: Annotated[str | None, typer.Argument(metavar="SESSION", help="Only this session.")] = None,
    namespace: Namespace = "",
    as_json: AsJson = False,
) -> None:
    """List the sessions and their turns, oldest first."""
    with open_records(file, namespace) as store:
        sessions = {name: store.turns(name) for name in store.sessions() if session in (None, name)}
        if as_json:
            echo(json.dumps(sessions, indent=2))
            return
        table = folding_table("session", "turn", "at", "tokens", "of", "strategy", "compressed")
        for name, turns in sessions.items():
            for turn in turns:
                table.add_row(Text(name), Text(turn), *map(Text, _row(store, name, turn)))
        Console().print(table if sessions else "No records.")


@records.command()
def show(
    file: File,
    session: Annotated[str, typer.Argument(metavar="SESSION")],
    turn: Annotated[str | None, typer.Argument(metavar="TURN", help="Default: the latest turn.")] = None,
    namespace: Namespace = "",
    as_json: AsJson = False,
) -> None:
    """Show the record of one turn, one line per path, or one object with --json."""
    with open_records(file, namespace) as store:
        turns = store.turns(session)
        chosen = turn if turn is not None else next(reversed(turns), "")
        if chosen not in turns:
            what = f"turn {turn!r} of session {session!r}" if turns else f"session {session!r}"
            raise NotFoundError(f"there is no record of {what}: `scrum-master records list` lists all")
        if as_json:
            echo(json.dumps(store.read(session, chosen), indent=2))
            return
        for path, value in store.paths(session, chosen).items():
            echo(f"{path}  {json.dumps(value, ensure_ascii=False)}")


@contextmanager
def open_records(file: Path, namespace: str) -> Iterator[TurnRecords]:
    """The records in a file, opened read-only."""
    if not file.is_file():
        raise NotFoundError(f"there is no store in {str(file)!r}: pass the file of a LangGraph SqliteStore")
    try:
        from langgraph.store.sqlite import SqliteStore
    except ImportError as error:
        raise ConfigError(f"{error}: {how_to_get('records')}") from error
    from langgraph_scrum_master.dialogue.turn_store import TurnRecords

    uri = f"{file.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as connection:
        if not _is_store(connection):
            raise DecodeError(f"{str(file)!r} is not a LangGraph store: pass the file of a LangGraph SqliteStore")
        yield TurnRecords(SqliteStore(connection), namespace=namespace)


def _is_store(connection: sqlite3.Connection) -> bool:
    try:
        return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'store'").fetchone())
    # Not a database, or locked, or damaged.
    except sqlite3.DatabaseError:
        return False


def _row(store: TurnRecords, session: str, turn: str) -> tuple[str, ...]:
    record = store.read(session, turn)
    parts = {name: record.get(name, {}) for name in ("turn", "assembled", "budget", "history")}
    return (
        str(parts["turn"].get("at", ""))[:19],
        str(parts["assembled"].get("total_tokens", "")),
        str(parts["budget"].get("total", "")),
        str(parts["budget"].get("strategy", "")),
        str(parts["history"].get("compression_level", "")) or "no",
    )
