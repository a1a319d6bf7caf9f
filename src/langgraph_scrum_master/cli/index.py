"""`scrum-master index`, `remember`, `assemble` and `premortem`"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from langgraph_scrum_master.cli.memory import AsJson, Embedder, Folder, Namespace, counting, opened
from langgraph_scrum_master.text.domains import DOMAINS

if TYPE_CHECKING:
    from langgraph_scrum_master.learning.assembler import ContextAssembler, FormattedContext
    from langgraph_scrum_master.learning.indexers import IndexReport

index = typer.Typer(no_args_is_help=True, help="Fill a memory from a project; only what changed is written.")

Root = Annotated[Path, typer.Argument(metavar="PROJECT", help="The project's folder.")]
_SHOWN = 10


@index.command()
def code(
    folder: Folder,
    root: Root = Path(),
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Keep the functions, classes, methods, modules and constants of a project's files.

    Python is always read; JavaScript, TypeScript, Go, Rust and Java with the extra `code`.
    """
    from langgraph_scrum_master.learning.indexers import index_code

    memory = opened(folder, namespace, embedder, new=True)
    _run(index_code, memory, root, kept="Units", looked_at="files", as_json=as_json)


@index.command()
def commits(
    folder: Folder,
    root: Root = Path(),
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Keep the commits of a git repository."""
    from langgraph_scrum_master.learning.indexers import index_commits

    memory = opened(folder, namespace, embedder, new=True)
    _run(index_commits, memory, root, kept="Commits", looked_at="commits", as_json=as_json)


@index.command()
def docs(
    folder: Folder,
    root: Root = Path(),
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Keep the sections of a project's documents, ADRs among them."""
    from langgraph_scrum_master.learning.indexers import index_documents

    memory = opened(folder, namespace, embedder, new=True)
    _run(index_documents, memory, root, kept="Sections", looked_at="files", as_json=as_json)


@index.command()
def values(
    folder: Folder, namespace: Namespace = "default", embedder: Embedder = "static", as_json: AsJson = False
) -> None:
    """Find what a memory's resolved experiences have in common, and keep it as values.

    Needs the extra `values`, and 20 experiences on an axis.
    """
    from langgraph_scrum_master.learning.indexers import index_values

    memory = opened(folder, namespace, embedder)
    _run(index_values, memory, kept="Values", looked_at="values", as_json=as_json)


def _run(
    work: Callable[..., Awaitable[IndexReport]], *arguments: object, kept: str, looked_at: str, as_json: bool
) -> None:
    with counting("Indexing", quiet=as_json) as progress:

        async def told() -> IndexReport:
            return await work(*arguments, progress=progress)

        report = asyncio.run(told())
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2))
    else:
        for line in _told(report, kept, looked_at):
            typer.echo(line)


def _told(report: IndexReport, kept: str, looked_at: str) -> Iterator[str]:
    skipped = len(report.skipped)
    yield (
        f"{kept} written: {report.written}, removed: {report.removed}; "
        f"{looked_at} unchanged: {report.unchanged}, skipped: {skipped}."
    )
    yield from (f"Skipped {path}: {why}" for path, why in list(report.skipped.items())[:_SHOWN])
    if skipped > _SHOWN:
        yield f"Skipped {skipped - _SHOWN} more; --json names them all."


def remember(
    folder: Folder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember.")],
    category: Annotated[
        str, typer.Option(help="preference, fact, event, workflow, context, error or decision.")
    ] = "fact",
    importance: Annotated[float, typer.Option(min=0, max=1, help="From 0 to 1.")] = 0.5,
    tag: Annotated[list[str] | None, typer.Option(help="What it is about; may be given several times.")] = None,
    verified: Annotated[bool, typer.Option("--verified", help="Say that it was checked, now.")] = False,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Keep a text in a memory; prints its key. The same text again takes its place."""
    from langgraph_scrum_master.learning.records import noted

    kept = noted(text, category, importance, tags=tag or (), verified=verified)
    asyncio.run(opened(folder, namespace, embedder, new=True).store_many([kept]))
    typer.echo(json.dumps({"key": kept.key}) if as_json else kept.key)


def assemble(
    folder: Folder,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question, or a task.")],
    among: Annotated[
        list[str] | None,
        typer.Option(help="memories, code, experiences, values or commits; may be given several times, else all."),
    ] = None,
    limit: Annotated[int, typer.Option(help="How many of each at most.")] = 20,
    max_tokens: Annotated[int, typer.Option(help="How long it may be.")] = 2000,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Show all that serves a question or a task, as Markdown."""
    from langgraph_scrum_master.learning.assembler import WEIGHTS

    assembler = _assembler(folder, namespace, embedder)
    _show(asyncio.run(assembler.assemble_context(query, among or list(WEIGHTS), limit, max_tokens)), as_json)


def premortem(
    folder: Folder,
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help=f"One of {', '.join(DOMAINS)}.")],
    strategy: Annotated[str | None, typer.Option(help="Such as read-the-error.")] = None,
    max_tokens: Annotated[int, typer.Option(help="How long it may be.")] = 1500,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Tell what went wrong before in a domain."""
    assembler = _assembler(folder, namespace, embedder)
    _show(asyncio.run(assembler.get_premortem_context(domain, strategy, max_tokens=max_tokens)), as_json)


def _assembler(folder: str, namespace: str, embedder: str) -> ContextAssembler:
    from langgraph_scrum_master.learning.assembler import ContextAssembler
    from langgraph_scrum_master.learning.searcher import Searcher

    return ContextAssembler(Searcher(opened(folder, namespace, embedder)), deadline=60)


def _show(found: FormattedContext, as_json: bool) -> None:
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else found.markdown or "Nothing was learned there yet.")
