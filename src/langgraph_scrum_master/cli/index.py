"""`scrum-master index`, `remember`, `assemble` and `premortem`"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from langgraph_scrum_master._internal.shapes import one_of
from langgraph_scrum_master.cli.memory import AsJson, Embedder, Folder, Namespace, memory_at, progress_bar
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.learning.records import MemoryCategory, Strategy
from langgraph_scrum_master.text.domains import DOMAINS, Domain

if TYPE_CHECKING:
    from langgraph_scrum_master.learning.assembler import ContextAssembler, FormattedContext
    from langgraph_scrum_master.learning.indexers import IndexReport

index = typer.Typer(no_args_is_help=True, help="Index a project into a memory. Only changes are written.")

Root = Annotated[Path, typer.Argument(metavar="PROJECT", help="The project folder.")]
_MAX_SKIPPED_SHOWN = 10


@index.command()
def code(
    folder: Folder,
    root: Root = Path(),
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Index the functions, classes, methods, modules and constants of a project.

    Python is built in. JavaScript, TypeScript, Go, Rust and Java need the extra `code`.
    """
    from langgraph_scrum_master.learning.indexers import index_code

    memory = memory_at(folder, namespace, embedder, new=True)
    _run(index_code, memory, root, unit="Units", source="files", as_json=as_json)


@index.command()
def commits(
    folder: Folder,
    root: Root = Path(),
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Index the commits of a git repository."""
    from langgraph_scrum_master.learning.indexers import index_commits

    memory = memory_at(folder, namespace, embedder, new=True)
    _run(index_commits, memory, root, unit="Commits", source="commits", as_json=as_json)


@index.command()
def docs(
    folder: Folder,
    root: Root = Path(),
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Index the sections of a project's documents, including ADRs."""
    from langgraph_scrum_master.learning.indexers import index_documents

    memory = memory_at(folder, namespace, embedder, new=True)
    _run(index_documents, memory, root, unit="Sections", source="files", as_json=as_json)


@index.command()
def values(
    folder: Folder, namespace: Namespace = "default", embedder: Embedder = "static", as_json: AsJson = False
) -> None:
    """Derive values from what a memory's resolved experiences have in common.

    Needs the extra `values`, and at least 20 experiences on an axis.
    """
    from langgraph_scrum_master.learning.indexers import index_values

    memory = memory_at(folder, namespace, embedder)
    _run(index_values, memory, unit="Values", source="values", as_json=as_json)


def _run(
    work: Callable[..., Awaitable[IndexReport]], *arguments: object, unit: str, source: str, as_json: bool
) -> None:
    with progress_bar("Indexing", quiet=as_json) as progress:

        async def run() -> IndexReport:
            return await work(*arguments, progress=progress)

        report = asyncio.run(run())
    if as_json:
        echo(json.dumps(report.to_dict(), indent=2))
    else:
        for line in _summary(report, unit, source):
            echo(line)


def _summary(report: IndexReport, unit: str, source: str) -> Iterator[str]:
    skipped = len(report.skipped)
    yield (
        f"{unit} written: {report.written}, removed: {report.removed}; "
        f"{source} unchanged: {report.unchanged}, skipped: {skipped}."
    )
    yield from (f"Skipped {path}: {why}" for path, why in list(report.skipped.items())[:_MAX_SKIPPED_SHOWN])
    if skipped > _MAX_SKIPPED_SHOWN:
        yield f"Skipped {skipped - _MAX_SKIPPED_SHOWN} more; --json lists them all."


def remember(
    folder: Folder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to store.")],
    category: Annotated[str, typer.Option(help=f"One of {', '.join(get_args(MemoryCategory))}.")] = "fact",
    importance: Annotated[float, typer.Option(min=0, max=1, help="From 0 to 1.")] = 0.5,
    tag: Annotated[list[str] | None, typer.Option(help="A tag. Repeat for more.")] = None,
    verified: Annotated[bool, typer.Option("--verified", help="Mark the text as verified now.")] = False,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Store a text in a memory and print its key. Storing the same text again replaces it."""
    from langgraph_scrum_master.learning.notes import noted

    memory = noted(text, category, importance, tags=tag or (), verified=verified)
    asyncio.run(memory_at(folder, namespace, embedder, new=True).store_many([memory]))
    echo(json.dumps({"key": memory.key}) if as_json else memory.key)


def assemble(
    folder: Folder,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question or a task.")],
    among: Annotated[
        list[str] | None,
        typer.Option(help="One of memories, code, experiences, values, commits. Repeat for more. Default: all."),
    ] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of results of each kind.")] = 20,
    max_tokens: Annotated[int, typer.Option(help="Maximum length in tokens.")] = 2000,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Assemble the context for a question or a task, as Markdown."""
    from langgraph_scrum_master.learning.assembler import WEIGHTS

    assembler = _assembler(folder, namespace, embedder)
    _show(asyncio.run(assembler.assemble_context(query, among or list(WEIGHTS), limit, max_tokens)), as_json)


def premortem(
    folder: Folder,
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help=f"One of {', '.join(DOMAINS)}.")],
    strategy: Annotated[str | None, typer.Option(help=f"One of {', '.join(get_args(Strategy))}.")] = None,
    max_tokens: Annotated[int, typer.Option(help="Maximum length in tokens.")] = 1500,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Show past failures in a domain: surprises, root causes and principles."""
    # Before the memory, which may be missing.
    one_of("domain", domain, Domain)
    assembler = _assembler(folder, namespace, embedder)
    _show(asyncio.run(assembler.get_premortem_context(domain, strategy, max_tokens=max_tokens)), as_json)


def _assembler(folder: str, namespace: str, embedder: str) -> ContextAssembler:
    from langgraph_scrum_master.learning.assembler import ContextAssembler
    from langgraph_scrum_master.learning.searcher import Searcher

    return ContextAssembler(Searcher(memory_at(folder, namespace, embedder)), deadline=60)


def _show(context: FormattedContext, as_json: bool) -> None:
    echo(json.dumps(context.to_dict(), indent=2) if as_json else context.markdown or "Nothing found.")
