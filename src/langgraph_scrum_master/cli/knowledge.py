"""`scrum-master knowledge`"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from langgraph_scrum_master.cli.memory import (
    AsJson,
    Embedder,
    Folder,
    Namespace,
    QueryArgument,
    memory_at,
    non_empty,
    progress_bar,
)
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.errors import ConfigError, NotFoundError

if TYPE_CHECKING:
    from langgraph_scrum_master.dialogue.knowledge import Document, KnowledgeBase

knowledge = typer.Typer(no_args_is_help=True, help="Store documents and search them.")


@knowledge.command()
def add(
    folder: Folder,
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Text or Markdown files in UTF-8.")],
    date: Annotated[str, typer.Option(help="Date of the documents, such as 2026-03-02.")] = "",
    doc_type: Annotated[
        str, typer.Option("--type", help="Type of the documents, such as email, page or ticket.")
    ] = "document",
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Store documents with their paths as ids. A document with the same id is replaced."""
    documents = [_document(file, date, doc_type) for file in files]

    ids: list[str] = []

    async def work() -> None:
        base = _base(folder, namespace, embedder, new=True)
        for document in documents:
            progress(len(ids), len(documents))
            ids.append(await base.index_document(document))

    with progress_bar("Storing", quiet=as_json) as progress:
        asyncio.run(work())
    echo(json.dumps({"documents": ids}, indent=2) if as_json else "\n".join(ids))


@knowledge.command()
def remove(
    folder: Folder,
    identity: Annotated[str, typer.Argument(metavar="ID", help="The id that `add` printed.")],
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Remove a document."""
    if not asyncio.run(_base(folder, namespace, embedder).remove_document(identity)):
        raise NotFoundError(f"there is no document {identity!r}: pass an id that `scrum-master knowledge add` printed")
    if as_json:
        echo(json.dumps({"removed": identity}))


@knowledge.command()
def search(
    folder: Folder,
    query: QueryArgument,
    k: Annotated[int | None, typer.Option("-k", min=1, help="Maximum number of results.")] = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Show the chunks that a prompt would get."""
    chunks = asyncio.run(_base(folder, namespace, embedder).retrieve(non_empty(query), limit=k))
    if as_json:
        echo(json.dumps([chunk.to_dict() for chunk in chunks], indent=2))
    else:
        echo("\n\n".join(chunk.formatted for chunk in chunks) or "No matches.")


def _base(folder: str, namespace: str, embedder: str, new: bool = False) -> KnowledgeBase:
    from langgraph_scrum_master.dialogue.knowledge import KnowledgeBase

    return KnowledgeBase(memory_at(folder, namespace, embedder, new=new))


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
