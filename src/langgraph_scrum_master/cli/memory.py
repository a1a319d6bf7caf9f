"""`scrum-master memory`"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.text import Text

from langgraph_scrum_master._internal.shapes import one_of
from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.tables import folding_table
from langgraph_scrum_master.cli.terminal import echo, echo_json
from langgraph_scrum_master.errors import ConfigError, DecodeError, NotFoundError
from langgraph_scrum_master.memory.folder import is_memory
from langgraph_scrum_master.memory.jsonl import row_of
from langgraph_scrum_master.memory.records import RECORD_KINDS, Kind
from langgraph_scrum_master.model import instant

if TYPE_CHECKING:
    from langgraph_scrum_master.memory.database_memory import DatabaseMemory
    from langgraph_scrum_master.memory.maintenance import MemoryCheck
    from langgraph_scrum_master.memory.records import Record

memory = typer.Typer(no_args_is_help=True, help="Manage a memory.")

DEFAULT_MEMORY = Path(".scrum-master", "memory")
"""The default memory folder of a project."""

Folder = Annotated[
    str,
    typer.Option(
        "--memory",
        "-m",
        metavar="FOLDER|URL",
        default_factory=lambda: str(DEFAULT_MEMORY),
        show_default=False,
        help=f"The memory: a folder or a postgresql:// URL. Default: {DEFAULT_MEMORY}.",
    ),
]
Namespace = Annotated[str, typer.Option(help="The namespace (tenant) of the records.")]
Embedder = Annotated[str, typer.Option(help="The embedder that the memory was filled with: static, minilm or hash.")]
QueryArgument = Annotated[str, typer.Argument(metavar="QUERY", help="The search query.")]
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="The key of the record, as `memory list` shows it.")]
Shelf = Annotated[str, typer.Option(help="A shelf beside the memory, such as commits. `memory stats` lists them.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

SESSIONS = "sessions"
"""The shelf with what hooks keep of a coding agent's sessions."""

_MAX_SPACES = 3


@memory.command()
def check(
    folder: Folder,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Rebuild everything that is derived from the records.")
    ] = False,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Check the database, and that the derived data of the memory and its shelves matches the records.

    Exit code 1 if there are problems that were not repaired.
    """
    report = asyncio.run(memory_at(folder, namespace, embedder).check(rebuild=rebuild))
    if as_json:
        echo(json.dumps({**report.to_dict(), "records": report.records, "sound": report.sound}, indent=2))
    else:
        for line in _findings(report):
            Console(markup=False, highlight=False).print(line)
    if not report.sound:
        raise typer.Exit(1)


@memory.command()
def stats(
    folder: Folder,
    namespace: Namespace = "default",
    all_namespaces: Annotated[bool, typer.Option("--all", help="Include all namespaces.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the number of records in the memory and each of its shelves."""
    shelves = asyncio.run(memory_at(folder, namespace, "static").statistics(every_tenant=all_namespaces))
    if as_json:
        echo(json.dumps([each.to_dict() for each in shelves], indent=2))
        return
    table = folding_table("namespace", "shelf", "records", "by kind", "embedder")
    for each in shelves:
        kinds = ", ".join(f"{count} {kind}" for kind, count in each.by_kind.items())
        table.add_row(Text(each.namespace), Text(each.shelf), f"{each.records:,}", Text(kinds), Text(each.embedder))
    Console().print(table if shelves else "The memory is empty.")


@memory.command()
def backup(
    folder: Folder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to create.")],
    as_json: AsJson = False,
) -> None:
    """Back up the whole memory, with all namespaces, to one file. Safe while the memory is in use.

    To restore, put the file into an empty folder as memory.sqlite3. For PostgreSQL use pg_dump.
    """
    asyncio.run(memory_at(folder, "default", "static").backup(file))
    if as_json:
        echo(json.dumps({"memory": folder, "backup": str(file), "bytes": file.stat().st_size}))
    else:
        Console(markup=False, highlight=False).print(f"Wrote {file}.")


@memory.command()
def export(
    folder: Folder,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE.jsonl]", help="Default: standard output.")] = None,
    namespace: Namespace = "default",
) -> None:
    """Export all records of a namespace, with all shelves, as JSON Lines for `memory import`."""
    rows = memory_at(folder, namespace, "static").export()
    lines = (json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows)
    if file is None:
        for line in lines:
            echo_json(line)
        return
    from langgraph_scrum_master._internal.files import write_atomically

    written = list(lines)
    write_atomically(file, "".join(f"{line}\n" for line in written))
    Console(markup=False, highlight=False).print(f"Wrote {len(written)} records to {file}.")


@memory.command("import")
def import_(
    folder: Folder,
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="A file that `memory export` wrote.")],
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Import the records of a file that `memory export` wrote. Creates the memory if there is none."""
    rows = _rows(file)
    with progress_bar("Storing", quiet=as_json) as progress:
        store = memory_at(folder, namespace, embedder, new=True)
        asyncio.run(store.import_records(rows, lambda done: progress(done, len(rows))))
    if as_json:
        echo(json.dumps({"stored": len(rows), "memory": folder}))
    else:
        Console(markup=False, highlight=False).print(f"Stored {len(rows)} records in {folder}.")


@memory.command("list")
def list_(
    folder: Folder,
    limit: Annotated[int, typer.Option(min=1, help="Number of records.")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="Number of records to skip.")] = 0,
    kind: Annotated[str | None, typer.Option(help=f"Only records of this kind: {', '.join(RECORD_KINDS)}.")] = None,
    shelf: Shelf = "",
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """List records, those stored last first. `memory export` writes all of them with all shelves."""
    chosen = None if kind is None else cast("Kind", one_of("kind", kind, Kind))
    store = shelf_at(folder, shelf, namespace, embedder)
    records, total = asyncio.run(store.page(limit, offset, chosen))
    if as_json:
        rows = [row_of(shelf, each) for each in records]
        echo_json(json.dumps({"total": total, "offset": offset, "records": rows}, indent=2))
        return
    table = folding_table("key", "kind", "created", "text")
    for each in records:
        created = str(each.data.get("created_at") or each.data.get("timestamp") or "")[:16].replace("T", " ")
        table.add_row(Text(each.key), each.kind, Text(created), Text(" ".join(each.text.split())[:80]))
    Console().print(table if records else "No records.")
    if total > offset + len(records):
        Console().print(f"{len(records)} of {total} records: --offset {offset + len(records)} shows the next ones.")


@memory.command()
def show(
    folder: Folder,
    key: KeyArgument,
    shelf: Shelf = "",
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Show a whole record, with its metadata."""
    records = asyncio.run(shelf_at(folder, shelf, namespace, embedder).with_key(key))
    if not records:
        raise NotFoundError(f"there is no record {key!r}: `scrum-master memory list` shows all keys")
    for record in records:
        row = row_of(shelf, record)
        if as_json:
            echo_json(json.dumps(row, indent=2))
            continue
        echo(record.text)
        fields = {"key": record.key, "kind": record.kind, **record.data}
        for name, value in fields.items():
            echo(f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")


@memory.command()
def edit(
    folder: Folder,
    key: KeyArgument,
    text: Annotated[str | None, typer.Option(help="The new text.")] = None,
    category: Annotated[str | None, typer.Option(help="The new category.")] = None,
    importance: Annotated[float | None, typer.Option(min=0, max=1, help="From 0 to 1.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag, in place of the present ones. Repeat for more.")] = None,
    verified: Annotated[bool | None, typer.Option("--verified/--unverified", help="Whether it is verified.")] = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Change the text or the fields of a memory. What is not given stays, and so does its key."""
    from langgraph_scrum_master.learning.notes import change_memory

    given = {"text": text, "category": category, "importance": importance, "tags": tag, "verified": verified}
    changed = asyncio.run(change_memory(memory_at(folder, namespace, embedder), key, **given))
    if as_json:
        echo_json(json.dumps({"key": changed.key, "content": changed.content, "metadata": changed.fields()}, indent=2))
    else:
        echo(f"Changed {changed.key}.")


@memory.command()
def forget(
    folder: Folder,
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="Keys of records.")] = None,
    before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Records made before this date, such as 2026-01-31, or date and time."),
    ] = None,
    session: Annotated[str | None, typer.Option(help="Records of this session.")] = None,
    shelf: Shelf = "",
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Delete records permanently, by key, age or session.

    A session is also deleted from what hooks have kept of it.
    """
    if not keys and before is None and session is None:
        raise ConfigError("nothing to forget: pass keys, --before or --session")
    until = None if before is None else instant(before)
    if until is not None and until <= 0:
        raise ConfigError(f"--before must be a date such as 2026-01-31, got {before!r}")
    store = shelf_at(folder, shelf, namespace, embedder)
    deleted = asyncio.run(store.forget_where(keys or (), before=until, session=session))
    if session is not None and not shelf:
        deleted += asyncio.run(store.beside(SESSIONS).forget_where(session=session))
    if as_json:
        echo(json.dumps({"forgotten": deleted, "memory": folder}))
    else:
        Console(markup=False, highlight=False).print(f"Deleted {deleted} records.")


@memory.command()
def load(
    folder: Folder,
    file: Annotated[
        Path, typer.Argument(metavar="FILE.jsonl", help="JSON Lines: objects with key, content and metadata.")
    ],
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Store the texts of a JSON Lines file. Texts that are already stored unchanged are skipped.

    Creates the memory if there is none.
    """
    rows = [(record.key, record.text, record.data) for _, record in _rows(file)]
    with progress_bar("Storing", quiet=as_json) as progress:
        store = memory_at(folder, namespace, embedder, new=True).store_many
        asyncio.run(store(rows, progress=lambda done: progress(done, len(rows))))
    if as_json:
        echo(json.dumps({"kept": len(rows), "memory": folder}))
    else:
        Console(markup=False, highlight=False).print(f"Stored {len(rows)} texts in {folder}.")


@memory.command()
def search(
    folder: Folder,
    query: QueryArgument,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of results.")] = 5,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Show the best matches for a query. An agent would get those with a score of 0.7 or more."""
    from langgraph_scrum_master.rank.spaces import SPACES

    unweighted = {space.code for space in SPACES if not space.weight}
    results = asyncio.run(memory_at(folder, namespace, embedder).search_similar(non_empty(query), k=k))
    if as_json:
        echo(json.dumps([result.to_dict() for result in results], indent=2))
        return
    table = folding_table("score", "key", "text", "strongest spaces")
    for result in results:
        weighted = [pair for pair in result.strengths.items() if pair[0] not in unweighted]
        strongest = sorted(weighted, key=lambda pair: -pair[1])[:_MAX_SPACES]
        why = ", ".join(f"{space} {strength:.2f}" for space, strength in strongest if strength)
        table.add_row(f"{result.score:.2f}", Text(result.key), Text(" ".join(result.content.split())[:80]), why)
    Console().print(table if results else "The memory is empty.")


@contextmanager
def progress_bar(what: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, shown only on a terminal and removed at the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Environment variables can make rich treat any stream as a terminal.
    hidden = quiet or not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def non_empty(query: str) -> str:
    """The query. Raises `ConfigError` if it is empty."""
    if not query.strip():
        raise ConfigError(f"the query must not be empty, got {query!r}")
    return query


def memory_at(location: str, namespace: str, embedder: str, new: bool = False) -> DatabaseMemory:
    """The memory in a folder or a PostgreSQL database. A folder without one is an error unless `new`."""
    if location.startswith(("postgresql://", "postgres://")):
        from langgraph_scrum_master.memory.postgres import PostgresMemory

        return PostgresMemory(location, namespace=namespace, embedder=embedder)
    from langgraph_scrum_master.memory.chroma import ChromaMemory

    folder = Path(location)
    if not new and not is_memory(folder):
        raise NotFoundError(f"there is no memory in {location!r}: fill one, or pass its folder with --memory")
    if folder.exists() and not folder.is_dir():
        raise DecodeError(f"{location!r} is not a folder: pass one with --memory")
    return ChromaMemory(folder, namespace=namespace, embedder=embedder)


def shelf_at(location: str, shelf: str, namespace: str, embedder: str) -> DatabaseMemory:
    """The memory, or a shelf beside it, which must exist."""
    memory = memory_at(location, namespace, embedder)
    if not shelf:
        return memory
    if shelf not in (names := asyncio.run(memory.shelves())):
        raise NotFoundError(f"there is no shelf {shelf!r}: the shelves are {names}")
    return memory.beside(shelf)


def _findings(report: MemoryCheck) -> Iterator[str]:
    yield from report.problems
    for shelf in report.shelves:
        for problem in shelf.problems:
            yield f"{shelf.shelf}: {problem}" if shelf.shelf else problem
    if report.rebuilt:
        yield "Rebuilt everything that is derived from the records."
    if report.sound:
        yield f"No problems: {report.records} records in {len(report.shelves)} shelves."
    elif not report.rebuilt and not report.problems:
        yield "Run again with --rebuild to rebuild everything that is derived from the records."


def _rows(file: Path) -> list[tuple[str, Record]]:
    from langgraph_scrum_master._internal.files import LARGEST_RECORDING, load_text
    from langgraph_scrum_master.memory.jsonl import rows_in

    return list(rows_in(load_text(file, LARGEST_RECORDING), str(file)))
