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

from langgraph_scrum_master.cli.memory import AsJson, Embedder, Namespace, counting
from langgraph_scrum_master.cli.replay import (
    Config,
    Source,
    Subgraph,
    Thread,
    list_threads,
    logs_aside,
    named_before,
    nothing_to,
    settings_to_try,
    shown_name,
    tell_of_memory,
    tell_what_is_missing,
)
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
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("inspector.html"),
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve it on loopback instead, renewed as the source grows.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="For --serve; a free one if it is 0 or left out.")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    memory: Annotated[Path | None, typer.Option(help="The folder of a memory, which is read in a copy.")] = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Show a run as a page: turns by agent, gaps, cycles, and for each injection why it was what it was.

    The page is one file that loads nothing from elsewhere. Nothing is written to the source, nor to a memory. Settings
    of the project stay out of it unless --config names them, and its memory unless --memory does.
    """
    from langgraph_scrum_master.replay import borrowed, replay
    from langgraph_scrum_master.replay.databases import is_database

    if port is not None and not serve:
        raise ConfigError(f"--port {port} is for --serve: add it, or leave the port out")
    if thread is None and is_database(source):
        list_threads(source, as_json)
    chosen = settings_to_try(config or named_before(context))
    lent: AbstractContextManager[Any] = borrowed(memory, namespace, embedder) if memory is not None else nullcontext()
    with logs_aside(), lent as opened:

        def look() -> Replay:
            with counting("Replaying", quiet=as_json) as progress:
                return replay(source, config=chosen, memory=opened, thread=thread, subgraph=subgraph, progress=progress)

        title = " ".join(filter(None, (Path(shown_name(source)).name, thread, subgraph)))
        if serve:
            _serve(
                renewed(lambda: _data(look(), title, live=True), lambda: _signature(source)), port or 0, show, as_json
            )
        else:
            shown = look()
            if memory is None:
                tell_of_memory(shown, context.obj)
            _write(shown, source, title, output, show, as_json)


def _data(shown: Replay, title: str, live: bool = False) -> dict[str, Any]:
    from langgraph_scrum_master.cli.page import page_data

    return page_data(shown, title, live=live)


def _write(shown: Replay, source: str, title: str, output: Path, show: bool, as_json: bool) -> None:
    tell_what_is_missing(shown)
    if not shown.steps:
        raise nothing_to("inspect", source, told=bool(shown.problems))
    with writing(output):
        output.write_text(_page(_data(shown, title)), encoding="utf-8")
    told = {"page": str(output), "steps": len(shown.steps), "outcomes": shown.outcomes}
    typer.echo(json.dumps(told) if as_json else str(output))
    if show:
        webbrowser.open(output.resolve().as_uri())


def _serve(look: Callable[[], dict[str, Any]], port: int, show: bool, as_json: bool) -> None:
    try:
        server = server_for(look, port)
    except OSError as error:
        raise ScrumMasterError(f"cannot serve on port {port}: {error.strerror}; --port 0 takes a free one") from error
    address = f"http://127.0.0.1:{server.server_port}/"
    typer.echo(json.dumps({"address": address}) if as_json else f"{address} (stop with Ctrl-C)")
    if show:
        webbrowser.open(address)
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("Stopped.", err=as_json)


def renewed(look: Callable[[], dict[str, Any]], signature: Callable[[], object]) -> Callable[[], dict[str, Any]]:
    """The same look, taken anew only when the signature has changed, or there is none; one at a time."""
    lock, last = threading.Lock(), dict[object, dict[str, Any]]()

    def looked() -> dict[str, Any]:
        with lock:
            # Before the look: what is written meanwhile is seen by the next one.
            now = signature()
            if now is None or now not in last:
                seen = look()
                last.clear()
                last[now] = seen
            return last[now]

    return looked


def _signature(source: str) -> object:
    """By what a change of the source is told; none for a database server, which must be asked."""
    if "://" in source:
        return None
    path = Path(source)
    files = sorted(path.rglob("*")) if path.is_dir() else [path, path.with_name(f"{path.name}-wal")]
    return tuple((str(each), *_stamp(each)) for each in files)


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size


def server_for(look: Callable[[], dict[str, Any]], port: int) -> ThreadingHTTPServer:
    """A server on loopback with the page at `/`, and at `/data` what it shows, looked at anew each time."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # Another site's page must not read it by a name of its own that leads here.
            if self.headers.get("Host", "").rpartition(":")[0] not in ("127.0.0.1", "localhost"):
                self._answer(403, "text/plain", "only for this machine")
            elif self.path == "/":
                self._look("text/html", _page)
            elif self.path == "/data":
                self._look("application/json", json.dumps)
            else:
                self._answer(404, "text/plain", "there is / and /data")

        def _look(self, kind: str, form: Callable[[dict[str, Any]], str]) -> None:
            try:
                data = look()
            # Whatever a source that is being written raises: the next look may do.
            except Exception as error:
                self._answer(503, "text/plain", str(error))
                return
            if self.headers.get("If-None-Match") == data["digest"]:
                self._answer(304, kind, "")
            else:
                self._answer(200, kind, form(data))

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the page asks every other second."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def _page(data: dict[str, Any]) -> str:
    from langgraph_scrum_master.cli.page import page

    return page(data)
