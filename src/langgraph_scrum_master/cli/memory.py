"""`scrum-master memory`"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from langgraph_scrum_master.cli.tables import folding
from langgraph_scrum_master.errors import ConfigError, DecodeError, NotFoundError
from langgraph_scrum_master.memory.folder import is_memory
from langgraph_scrum_master.model import instant

if TYPE_CHECKING:
    from langgraph_scrum_master.memory.database_memory import DatabaseMemory
    from langgraph_scrum_master.memory.maintenance import MemoryCheck
    from langgraph_scrum_master.memory.records import Record

memory = typer.Typer(no_args_is_help=True, help="Look after a memory.")

PLACE = Path(".scrum-master", "memory")
"""Where a project's memory is unless told otherwise."""

Folder = Annotated[
    str,
    typer.Option(
        "--memory",
        "-m",
        metavar="PLACE",
        default_factory=lambda: str(PLACE),
        show_default=False,
        help=f"The memory: a folder, or a postgresql:// URL; else {PLACE}.",
    ),
]
Namespace = Annotated[str, typer.Option(help="Whose memory.")]
Embedder = Annotated[str, typer.Option(help="The embedder it was filled with: static, minilm or hash.")]
Wanted = Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_STRONGEST = 3


@memory.command()
def check(
    folder: Folder,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make everything again that is derived from the records.")
    ] = False,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Check the database, and that what is derived from records agrees with them, in the memory and all its shelves.

    Exit code 1 if something is wrong and was not made right.
    """
    found = asyncio.run(opened(folder, namespace, embedder).check(rebuild=rebuild))
    if as_json:
        typer.echo(json.dumps({**found.to_dict(), "records": found.records, "sound": found.sound}, indent=2))
    else:
        for line in _findings(found):
            Console(markup=False, highlight=False).print(line)
    if not found.sound:
        raise typer.Exit(1)


@memory.command()
def stats(
    folder: Folder,
    namespace: Namespace = "default",
    everybody: Annotated[bool, typer.Option("--all", help="Of all namespaces.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how much the memory and each of its shelves hold."""
    found = asyncio.run(opened(folder, namespace, "static").statistics(every_tenant=everybody))
    if as_json:
        typer.echo(json.dumps([each.to_dict() for each in found], indent=2))
        return
    table = folding("namespace", "shelf", "records", "of which", "embedder")
    for each in found:
        kinds = ", ".join(f"{count} {kind}" for kind, count in each.by_kind.items())
        table.add_row(Text(each.namespace), Text(each.shelf), f"{each.records:,}", kinds, each.embedder)
    Console().print(table if found else "The memory is empty.")


@memory.command()
def backup(
    folder: Folder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.")],
    as_json: AsJson = False,
) -> None:
    """Copy the whole memory, of all namespaces, into one file, also while it is in use.

    To restore it, put it into an empty folder as memory.sqlite3. For PostgreSQL use pg_dump.
    """
    asyncio.run(opened(folder, "default", "static").backup(file))
    if as_json:
        typer.echo(json.dumps({"memory": folder, "backup": str(file), "bytes": file.stat().st_size}))
    else:
        Console(markup=False, highlight=False).print(f"Wrote {file}.")


@memory.command()
def export(
    folder: Folder,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE.jsonl]", help="Else standard output.")] = None,
    namespace: Namespace = "default",
) -> None:
    """Write all records of a namespace, of all its shelves, as JSON lines that `memory import` reads."""
    rows = opened(folder, namespace, "static").export()
    lines = (json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows)
    if file is None:
        for line in lines:
            typer.echo(line)
        return
    from langgraph_scrum_master._internal.files import write_atomically

    written = list(lines)
    write_atomically(file, "".join(f"{line}\n" for line in written))
    Console(markup=False, highlight=False).print(f"Wrote {len(written)} records to {file}.")


@memory.command("import")
def import_(
    folder: Folder,
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="What `memory export` wrote.")],
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Store the records of a file that `memory export` wrote. A memory that is not there is made."""
    rows = list(_exported(file))
    with counting("Storing", quiet=as_json) as progress:
        store = opened(folder, namespace, embedder, new=True)
        asyncio.run(store.import_records(rows, lambda done: progress(done, len(rows))))
    if as_json:
        typer.echo(json.dumps({"stored": len(rows), "memory": folder}))
    else:
        Console(markup=False, highlight=False).print(f"Stored {len(rows)} records in {folder}.")


@memory.command()
def forget(
    folder: Folder,
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="Records by their keys.")] = None,
    before: Annotated[
        str | None, typer.Option(metavar="TIME", help="What was made before, as 2026-01-31 or with a time of day.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="What belongs to this session.")] = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Remove records for good, by their keys, their age or their session."""
    if not keys and before is None and session is None:
        raise ConfigError("nothing to forget: give keys, --before or --session")
    until = None if before is None else instant(before)
    if until is not None and until <= 0:
        raise ConfigError(f"--before must be a date such as 2026-01-31, got {before!r}")
    store = opened(folder, namespace, embedder)
    gone = asyncio.run(store.forget_where(keys or (), before=until, session=session))
    if as_json:
        typer.echo(json.dumps({"forgotten": gone, "memory": folder}))
    else:
        Console(markup=False, highlight=False).print(f"Forgot {gone} records.")


@memory.command()
def load(
    folder: Folder,
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="Objects with key, content and metadata.")],
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Keep the texts of a file of JSON lines; what is kept already, word for word, is not written again.

    A memory that is not there is made.
    """
    rows = [_row(row, where) for row, where in _objects(file)]
    with counting("Keeping", quiet=as_json) as progress:
        store = opened(folder, namespace, embedder, new=True).store_many
        asyncio.run(store(rows, progress=lambda done: progress(done, len(rows))))
    if as_json:
        typer.echo(json.dumps({"kept": len(rows), "memory": folder}))
    else:
        Console().print(f"Kept {len(rows)} texts in {folder}.")


@memory.command()
def search(
    folder: Folder,
    query: Wanted,
    k: Annotated[int, typer.Option("-k", min=1, help="How many.")] = 5,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Show what serves a query best; at 0.7 and above it would be given to an agent."""
    found = asyncio.run(opened(folder, namespace, embedder).search_similar(wanted(query), k=k))
    if as_json:
        typer.echo(json.dumps([result.to_dict() for result in found], indent=2))
        return
    table = folding("score", "key", "text", "alike most in")
    for result in found:
        strongest = sorted(result.strengths.items(), key=lambda pair: -pair[1])[:_STRONGEST]
        why = ", ".join(f"{space} {strength:.2f}" for space, strength in strongest if strength)
        table.add_row(f"{result.score:.2f}", Text(result.key), Text(" ".join(result.content.split())[:80]), why)
    Console().print(table if found else "The memory is empty.")


@contextmanager
def counting(what: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Shows how many of how many are done: on standard error, where somebody can see it, and gone in the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Not what rich takes for a terminal, which it can be made to by the environment.
    hidden = quiet or not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def wanted(query: str) -> str:
    """The query, which must not be empty."""
    if not query.strip():
        raise ConfigError(f"the query must be a text that is not empty, got {query!r}")
    return query


def opened(place: str, namespace: str, embedder: str, new: bool = False) -> DatabaseMemory:
    """The memory in a folder or a PostgreSQL database; a folder without one is an error, unless it may be made."""
    if place.startswith(("postgresql://", "postgres://")):
        from langgraph_scrum_master.memory.postgres import PostgresMemory

        return PostgresMemory(place, namespace=namespace, embedder=embedder)
    from langgraph_scrum_master.memory.chroma import ChromaMemory

    folder = Path(place)
    if not new and not is_memory(folder):
        raise NotFoundError(f"there is no memory in {place!r}: fill one, or give its folder with --memory")
    if folder.exists() and not folder.is_dir():
        raise DecodeError(f"{place!r} is no folder: give one with --memory")
    return ChromaMemory(folder, namespace=namespace, embedder=embedder)


def _findings(found: MemoryCheck) -> Iterator[str]:
    yield from found.problems
    for shelf in found.shelves:
        for problem in shelf.problems:
            yield f"{shelf.shelf}: {problem}" if shelf.shelf else problem
    if found.rebuilt:
        yield "Everything that is derived from the records was made again."
    if found.sound:
        yield f"Sound: {found.records} records in {len(found.shelves)} shelves."
    elif not found.rebuilt and not found.problems:
        yield "Run it again with --rebuild to make everything again that is derived from the records."


def _exported(file: Path) -> Iterator[tuple[str, Record]]:
    from langgraph_scrum_master.memory.maintenance import RECORD_KINDS
    from langgraph_scrum_master.memory.records import Record

    for row, where in _objects(file):
        key, content, metadata = _row(row, where)
        kind, shelf = row.get("kind", "memory"), row.get("shelf", "")
        if kind not in RECORD_KINDS:
            raise DecodeError(f"{where}: 'kind' must be among {RECORD_KINDS}, got {kind!r}")
        if not isinstance(shelf, str):
            raise DecodeError(f"{where}: 'shelf' must be a text, got {shelf!r}")
        yield shelf, Record(kind=kind, key=key, text=content, data=metadata)


def _objects(file: Path) -> Iterator[tuple[dict[str, Any], str]]:
    from langgraph_scrum_master._internal.files import LARGEST_RECORDING, load_text

    for number, line in enumerate(load_text(file, LARGEST_RECORDING).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DecodeError(f"{where} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise DecodeError(f"{where} must be an object with the texts 'key' and 'content', got {line:.80}")
        yield row, where


def _row(row: dict[str, Any], where: str) -> tuple[str, str, dict[str, Any]]:
    if not isinstance(row.get("key"), str) or not isinstance(row.get("content"), str):
        raise DecodeError(f"{where} must be an object with the texts 'key' and 'content', got {json.dumps(row):.80}")
    metadata = row.get("metadata", {})
    if not isinstance(metadata, dict):
        raise DecodeError(f"{where}: 'metadata' must be an object, got {metadata!r:.80}")
    return row["key"], row["content"], metadata
