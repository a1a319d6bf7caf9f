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
from langgraph_scrum_master.errors import ConfigError, DecodeError
from langgraph_scrum_master.memories import is_memory

if TYPE_CHECKING:
    from langgraph_scrum_master.memory.check import MemoryCheck
    from langgraph_scrum_master.memory.chroma import ChromaMemory

memory = typer.Typer(no_args_is_help=True, help="Look after a memory's folder.")

PLACE = Path(".scrum-master", "memory")
"""Where a project's memory is unless told otherwise."""

Folder = Annotated[
    Path,
    typer.Option(
        "--memory",
        "-m",
        metavar="FOLDER",
        default_factory=lambda: PLACE,
        show_default=False,
        help=f"The memory; else {PLACE}.",
    ),
]
Namespace = Annotated[str, typer.Option(help="Whose memory.")]
Embedder = Annotated[str, typer.Option(help="The embedder it was filled with: static, minilm or hash.")]
Wanted = Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_SHOWN = 5
_STRONGEST = 3


@memory.command()
def check(
    folder: Folder,
    repair: Annotated[
        bool, typer.Option("--repair", help="Fill Chroma again from the ledger where it is wrong.")
    ] = False,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Say whether the memory, and each shelf beside it, finds what it keeps: code, commits, experiences and all else.

    Exit code 1 if one does not, and was not repaired.
    """
    found = asyncio.run(_checked(opened(folder, namespace, embedder), repair))
    if as_json:
        shelves = {name: each.to_dict() for name, each in found.items() if name}
        typer.echo(json.dumps({**found[""].to_dict(), "shelves": shelves}, indent=2))
    else:
        for name, each in found.items():
            for line in _told(each):
                Console(markup=False, highlight=False).print(f"{name}: {line}" if name else line)
    if any(not each.sound and not each.repaired for each in found.values()):
        raise typer.Exit(1)


async def _checked(memory: ChromaMemory, repair: bool) -> dict[str, MemoryCheck]:
    """What is found in the memory, under no name, and on each shelf beside it."""
    from langgraph_scrum_master.memory.records import SHELF

    found = {"": await memory.check(repair=repair)}
    for name in await memory.shelves(_known_shelves()):
        found[name.replace(SHELF, "/")] = await memory.beside(name).check(repair=repair)
    return found


def _known_shelves() -> list[str]:
    from langgraph_scrum_master.learned import AXES, experiences_on
    from langgraph_scrum_master.memory.records import SHELF

    indexed = [f"{name}{SHELF}index-{name}" for name in ("code", "commits", "values")]
    kept = ["code", "commits", "values", "knowledge", "knowledge-documents", *map(experiences_on, AXES)]
    return [*kept, *indexed, "index-documents"]


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
    rows = list(_rows(file))
    with counting("Keeping", quiet=as_json) as progress:
        store = opened(folder, namespace, embedder, new=True).store_many
        asyncio.run(store(rows, progress=lambda done: progress(done, len(rows))))
    if as_json:
        typer.echo(json.dumps({"kept": len(rows), "memory": str(folder)}))
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


def opened(folder: Path, namespace: str, embedder: str, new: bool = False) -> ChromaMemory:
    """The memory of a folder; one that is not there is an error, unless it may be made."""
    from langgraph_scrum_master.memory.chroma import ChromaMemory

    if not new and not is_memory(folder):
        raise DecodeError(f"there is no memory in {str(folder)!r}: fill one, or give its folder with --memory")
    if folder.exists() and not folder.is_dir():
        raise DecodeError(f"{str(folder)!r} is no folder: give one with --memory")
    return ChromaMemory(folder, namespace=namespace, embedder=embedder)


def _told(found: MemoryCheck) -> Iterator[str]:
    if found.sound:
        yield f"Sound: {found.records} records, all where they belong, and found."
        return
    for keys, what in (
        (found.missing, "are not in Chroma"),
        (found.strangers, "are only in Chroma"),
        (found.unfound, "are not found by their own vector"),
    ):
        if keys:
            more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
            yield f"{len(keys)} of {found.records} records {what}: {', '.join(keys[:_SHOWN])}{more}"
    if found.repaired:
        yield f"Repaired: Chroma was filled again with {found.repaired} records."
    elif not found.sound:
        yield "Run it again with --repair to fill Chroma from the ledger."


def _rows(file: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    from langgraph_scrum_master.record.files import read_text

    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            yield _row(line, f"{file}:{number}")


def _row(line: str, where: str) -> tuple[str, str, dict[str, Any]]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DecodeError(f"{where} is not JSON: {error}") from error
    if not isinstance(row, dict) or not isinstance(row.get("key"), str) or not isinstance(row.get("content"), str):
        raise DecodeError(f"{where} must be an object with the texts 'key' and 'content', got {line:.80}")
    metadata = row.get("metadata", {})
    if not isinstance(metadata, dict):
        raise DecodeError(f"{where}: 'metadata' must be an object, got {metadata!r:.80}")
    return row["key"], row["content"], metadata
