"""`scrum-master knowledge`"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from langgraph_scrum_master.cli.memory import AsJson, Embedder, Folder, Namespace, Wanted, counting, opened, wanted
from langgraph_scrum_master.errors import ConfigError, NotFoundError

if TYPE_CHECKING:
    from langgraph_scrum_master.dialogue.knowledge import Document, KnowledgeBase

knowledge = typer.Typer(no_args_is_help=True, help="Keep documents, and look things up in them.")


@knowledge.command()
def add(
    folder: Folder,
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Texts or Markdown, in UTF-8.")],
    date: Annotated[str, typer.Option(help="Of when they are, such as 2026-03-02.")] = "",
    doc_type: Annotated[str, typer.Option("--type", help="Such as email, page or ticket.")] = "document",
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Keep documents, each under its path as its id; one that is kept already is replaced."""
    documents = [_document(file, date, doc_type) for file in files]

    kept: list[str] = []

    async def work() -> None:
        base = _base(folder, namespace, embedder, new=True)
        for document in documents:
            progress(len(kept), len(documents))
            kept.append(await base.index_document(document))

    with counting("Keeping", quiet=as_json) as progress:
        asyncio.run(work())
    typer.echo(json.dumps({"documents": kept}, indent=2) if as_json else "\n".join(kept))


@knowledge.command()
def remove(
    folder: Folder,
    identity: Annotated[str, typer.Argument(metavar="ID", help="As `add` printed it.")],
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Let go of a document."""
    if not asyncio.run(_base(folder, namespace, embedder).remove_document(identity)):
        raise NotFoundError(f"there is no document {identity!r}: give an id as `scrum-master knowledge add` printed it")
    if as_json:
        typer.echo(json.dumps({"removed": identity}))


@knowledge.command()
def search(
    folder: Folder,
    query: Wanted,
    k: Annotated[int | None, typer.Option("-k", min=1, help="How many at most.")] = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Show the pieces that a prompt would be given."""
    found = asyncio.run(_base(folder, namespace, embedder).retrieve(wanted(query), limit=k))
    if as_json:
        typer.echo(json.dumps([chunk.to_dict() for chunk in found], indent=2))
    else:
        typer.echo("\n\n".join(chunk.formatted for chunk in found) or "Nothing serves that query.")


def _base(folder: str, namespace: str, embedder: str, new: bool = False) -> KnowledgeBase:
    from langgraph_scrum_master.dialogue.knowledge import KnowledgeBase

    return KnowledgeBase(opened(folder, namespace, embedder, new=new))


def _document(file: Path, date: str, doc_type: str) -> Document:
    from langgraph_scrum_master._internal.files import LARGEST_DOCUMENT, load_text
    from langgraph_scrum_master.dialogue.knowledge import Document
    from langgraph_scrum_master.text.sections import sections_of

    text = load_text(file, LARGEST_DOCUMENT)
    title = next((section.title for section in sections_of(text) if section.title), file.stem)
    try:
        return Document(title=title, text=text, date=date, doc_type=doc_type, id=file.as_posix())
    except ConfigError as error:
        raise ConfigError(f"{str(file)!r}: {error}") from error
