"""`scrum-master inspect`"""

from __future__ import annotations

import json
import threading
import webbrowser
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langgraph_scrum_master.cli.memory import AsJson, Embedder, Namespace, progress_bar
from langgraph_scrum_master.cli.replay import (
    Config,
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
    from langgraph_scrum_master.replay import Replay


def inspect(
    context: typer.Context,
    source: Source,
    thread: Thread = None,
    subgraph: Subgraph = None,
    config: Config = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("inspector.html"),
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the page on 127.0.0.1 instead, and refresh it as the source grows.")
    ] = False,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port for --serve. Default: a free port.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    memory: Annotated[
        Path | None, typer.Option(help="A memory folder to search. It is copied, not written to.")
    ] = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Write a run as an HTML page: turns by agent, gaps, cycles, and the reasons for each injection.

    The page is one self-contained file. The source and the memory are only read. The project's settings apply only if
    --config names them, and its memory is searched only if --memory names it.
    """
    from langgraph_scrum_master.replay import memory_copy, replay

    if port is not None and not serve:
        raise ConfigError(f"--port {port} needs --serve: add --serve, or remove --port")
    overrides = load_settings(config or config_option(context))
    source_memory: AbstractContextManager[Any] = (
        memory_copy(memory, namespace, embedder) if memory is not None else nullcontext()
    )
    with logging_to_stderr(), source_memory as opened:

        def load() -> Replay:
            with progress_bar("Replaying", quiet=as_json) as progress:
                return replay(
                    source, config=overrides, memory=opened, thread=thread, subgraph=subgraph, progress=progress
                )

        title = " ".join(filter(None, (Path(display_name(source)).name, thread, subgraph)))
        if serve:
            _serve(
                cached_until_changed(lambda: _data(load(), title, live=True), lambda: _signature(source)),
                port or 0,
                show,
                as_json,
            )
        else:
            shown = load()
            if memory is None:
                warn_about_unread_memory(shown, context.obj)
            _write(shown, source, title, output, show, as_json)


def _data(shown: Replay, title: str, live: bool = False) -> dict[str, Any]:
    from langgraph_scrum_master.cli.page import page_data

    return page_data(shown, title, live=live)


def _write(shown: Replay, source: str, title: str, output: Path, show: bool, as_json: bool) -> None:
    print_problems(shown)
    if not shown.steps:
        raise empty_source_error("inspect", source, explained=bool(shown.problems))
    with writing(output):
        output.write_text(_page(_data(shown, title)), encoding="utf-8")
    summary = {"page": str(output), "steps": len(shown.steps), "outcomes": shown.outcomes}
    echo(json.dumps(summary) if as_json else str(output))
    if show:
        webbrowser.open(output.resolve().as_uri())


def _serve(load: Callable[[], dict[str, Any]], port: int, show: bool, as_json: bool) -> None:
    try:
        server = server_for(load, port)
    except OSError as error:
        raise ScrumMasterError(
            f"cannot serve on port {port}: {error.strerror}; use --port 0 for a free port"
        ) from error
    address = f"http://127.0.0.1:{server.server_port}/"
    echo(json.dumps({"address": address}) if as_json else f"{address} (stop with Ctrl-C)")
    if show:
        webbrowser.open(address)
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            echo("Stopped.", err=as_json)


def cached_until_changed(
    load: Callable[[], dict[str, Any]], signature: Callable[[], object]
) -> Callable[[], dict[str, Any]]:
    """Wraps `load` so that it runs again only when the signature changes or is None, and in one thread at a time."""
    lock, last = threading.Lock(), dict[object, dict[str, Any]]()

    def cached() -> dict[str, Any]:
        with lock:
            # Taken before loading, so that writes in the meantime are seen by the next call.
            now = signature()
            if now is None or now not in last:
                data = load()
                last.clear()
                last[now] = data
            return last[now]

    return cached


def _signature(source: str) -> object:
    """Changes when the source's files change. None for a database server, which must be queried each time."""
    if "://" in source:
        return None
    path = Path(source)
    files = sorted(path.rglob("*")) if path.is_dir() else [path, path.with_name(f"{path.name}-wal")]
    return tuple((str(each), *_stamp(each)) for each in files)


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size


def server_for(load: Callable[[], dict[str, Any]], port: int) -> ThreadingHTTPServer:
    """A server on 127.0.0.1 with the page at `/` and its data at `/data`, loaded for each request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # Protects against DNS rebinding by other sites.
            if self.headers.get("Host", "").rpartition(":")[0] not in ("127.0.0.1", "localhost"):
                self._send(403, "text/plain", "this page is served to this machine only")
            elif self.path == "/":
                self._send_data("text/html", _page)
            elif self.path == "/data":
                self._send_data("application/json", json.dumps)
            else:
                self._send(404, "text/plain", "not found: there are / and /data")

        def _send_data(self, kind: str, render: Callable[[dict[str, Any]], str]) -> None:
            try:
                data = load()
            # A source that is being written may raise anything. The next request may succeed.
            except Exception as error:
                self._send(503, "text/plain", str(error))
                return
            if self.headers.get("If-None-Match") == data["digest"]:
                self._send(304, kind, "")
            else:
                self._send(200, kind, render(data))

        def _send(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: the page polls every two seconds."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def _page(data: dict[str, Any]) -> str:
    from langgraph_scrum_master.cli.page import page

    return page(data)
