"""`scrum-master records`"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from langgraph_scrum_master.cli.memory import AsJson
from langgraph_scrum_master.cli.tables import folding
from langgraph_scrum_master.errors import ConfigError, DecodeError, NotFoundError, how_to_get

if TYPE_CHECKING:
    from langgraph_scrum_master.dialogue.turn_store import TurnRecords

records = typer.Typer(no_args_is_help=True, help="Show what the turns of a dialogue were given.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="The SQLite file of a LangGraph store.")]
Namespace = Annotated[str, typer.Option(help="Whose records, if they were kept under a namespace.")]


@records.command(name="list")
def list_(
    file: File,
    session: Annotated[str | None, typer.Argument(metavar="SESSION", help="Only this one.")] = None,
    namespace: Namespace = "",
    as_json: AsJson = False,
) -> None:
    """Show the sessions and their turns, oldest first."""
    with opened(file, namespace) as kept:
        found = {name: kept.turns(name) for name in kept.sessions() if session in (None, name)}
        if as_json:
            typer.echo(json.dumps(found, indent=2))
            return
        table = folding("session", "turn", "at", "tokens", "of", "strategy", "compressed")
        for name, turns in found.items():
            for turn in turns:
                table.add_row(Text(name), Text(turn), *_row(kept, name, turn))
        Console().print(table if found else "Nothing was recorded.")


@records.command()
def show(
    file: File,
    session: Annotated[str, typer.Argument(metavar="SESSION")],
    turn: Annotated[str | None, typer.Argument(metavar="TURN", help="The newest if it is left out.")] = None,
    namespace: Namespace = "",
    as_json: AsJson = False,
) -> None:
    """Show one turn's record, a line per path; with --json as one object."""
    with opened(file, namespace) as kept:
        turns = kept.turns(session)
        chosen = turn if turn is not None else next(reversed(turns), "")
        if chosen not in turns:
            what = f"turn {turn!r} of session {session!r}" if turns else f"session {session!r}"
            raise NotFoundError(f"there is no record of {what}: `scrum-master records list` shows all")
        if as_json:
            typer.echo(json.dumps(kept.read(session, chosen), indent=2))
            return
        for path, value in kept.paths(session, chosen).items():
            typer.echo(f"{path}  {json.dumps(value, ensure_ascii=False)}")


@contextmanager
def opened(file: Path, namespace: str) -> Iterator[TurnRecords]:
    """The records in a file, which is only read."""
    if not file.is_file():
        raise NotFoundError(
            f"there is no store in {str(file)!r}: give the file that a LangGraph SqliteStore was opened with"
        )
    try:
        from langgraph.store.sqlite import SqliteStore
    except ImportError as error:
        raise ConfigError(f"{error}: {how_to_get('records')}") from error
    from langgraph_scrum_master.dialogue.turn_store import TurnRecords

    uri = f"{file.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as connection:
        if not _is_store(connection):
            raise DecodeError(
                f"{str(file)!r} holds no store: give the file that a LangGraph SqliteStore was opened with"
            )
        yield TurnRecords(SqliteStore(connection), namespace=namespace)


def _is_store(connection: sqlite3.Connection) -> bool:
    try:
        return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'store'").fetchone())
    # No database at all, or one that is locked or damaged.
    except sqlite3.DatabaseError:
        return False


def _row(kept: TurnRecords, session: str, turn: str) -> tuple[str, ...]:
    record = kept.read(session, turn)
    given = {name: record.get(name, {}) for name in ("turn", "assembled", "budget", "history")}
    return (
        str(given["turn"].get("at", ""))[:19],
        str(given["assembled"].get("total_tokens", "")),
        str(given["budget"].get("total", "")),
        str(given["budget"].get("strategy", "")),
        str(given["history"].get("compression_level", "")) or "no",
    )
