"""`scrum-master inspect`"""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langgraph_scrum_master.cli.memory import AsJson, Embedder, Namespace, progress_bar
from langgraph_scrum_master.cli.replay import (
    Config,
    checked_settings,
    config_option,
    display_name,
    empty_source_error,
    load_settings,
    logging_to_stderr,
    print_problems,
    warn_about_unread_memory,
)
from langgraph_scrum_master.cli.source import Source, Subgraph, Thread
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.cli.writing import writing
from langgraph_scrum_master.errors import ConfigError, ScrumMasterError

if TYPE_CHECKING:
    from langgraph_scrum_master.cli.page_server import Load
    from langgraph_scrum_master.replay import Replay


def inspect(
    context: typer.Context,
    source: Source,
    thread: Thread = None,
    subgraph: Subgraph = None,
    config: Config = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("inspector.html"),
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Serve the page on 127.0.0.1 instead: it follows the source and tries settings."),
    ] = False,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port for --serve. Default: a free port.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    tests: Annotated[
        Path, typer.Option(metavar="FOLDER", help="With --serve: where steps that were wrong are written as tests.")
    ] = Path("snapshots"),
    memory: Annotated[
        Path | None, typer.Option(help="A memory folder to search. It is copied, not written to.")
    ] = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Write a run as an HTML page: turns by agent, gaps, cycles, what was injected and what became of it.

    What was recorded comes first; what a replay does is marked as hypothetical. The page is one self-contained file.
    The source and the memory are only read. The project's settings apply only if --config names them, and its memory
    is searched only if --memory names it.
    """
    from langgraph_scrum_master.cli.page import page_data
    from langgraph_scrum_master.cli.page_snapshots import SnapshotPool
    from langgraph_scrum_master.replay import memory_copy, replay

    if port is not None and not serve:
        raise ConfigError(f"--port {port} needs --serve: add --serve, or remove --port")
    overrides = load_settings(config or config_option(context))
    source_memory: AbstractContextManager[Any] = (
        memory_copy(memory, namespace, embedder) if memory is not None else nullcontext()
    )
    title = " ".join(filter(None, (Path(display_name(source)).name, thread, subgraph)))
    with logging_to_stderr(), source_memory as opened:

        def load(tried: Mapping[str, Any]) -> tuple[Replay, dict[str, Any]]:
            pool, settings = SnapshotPool(), checked_settings({**(overrides or {}), **tried})
            with progress_bar("Replaying", quiet=as_json or bool(tried)) as progress:
                shown = replay(
                    source,
                    config=settings or overrides,
                    memory=opened,
                    thread=thread,
                    subgraph=subgraph,
                    progress=progress,
                    keep=pool.add,
                )
            return shown, page_data(shown, title, pool=pool, live=serve, folder=str(tests) if serve else "")

        if serve:
            from langgraph_scrum_master.cli.page_server import cached_until_changed, signature_of

            _serve(
                cached_until_changed(lambda tried: load(tried)[1], lambda: signature_of(source)),
                tests,
                port or 0,
                show,
                as_json,
            )
        else:
            shown, data = load({})
            if memory is None:
                warn_about_unread_memory(shown, context.obj)
            _write(shown, data, source, output, show, as_json)


def _write(shown: Replay, data: dict[str, Any], source: str, output: Path, show: bool, as_json: bool) -> None:
    from langgraph_scrum_master.cli.page import page

    print_problems(shown)
    if not shown.steps:
        raise empty_source_error("inspect", source, explained=bool(shown.problems))
    with writing(output):
        output.write_text(page(data), encoding="utf-8")
    summary = {
        "page": str(output),
        "source": shown.source,
        "steps": len(shown.steps),
        "recorded": shown.recorded_outcomes,
        "hypothetical": shown.outcomes,
    }
    echo(json.dumps(summary) if as_json else str(output))
    if show:
        webbrowser.open(output.resolve().as_uri())


def _serve(load: Load, tests: Path, port: int, show: bool, as_json: bool) -> None:
    from langgraph_scrum_master.cli.page_server import address_of, server_for

    try:
        server = server_for(load, port, tests)
    except OSError as error:
        raise ScrumMasterError(
            f"cannot serve on port {port}: {error.strerror}; use --port 0 for a free port"
        ) from error
    address = address_of(server)
    echo(json.dumps({"address": address}) if as_json else f"{address} (stop with Ctrl-C)")
    if show:
        webbrowser.open(address)
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            echo("Stopped.", err=as_json)
