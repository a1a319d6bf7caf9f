"""Serves the inspector to this machine: the page, replays with other settings, and steps that become tests."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from langgraph_scrum_master.cli.page import page
from langgraph_scrum_master.cli.writing import writing
from langgraph_scrum_master.errors import ConfigError, DecodeError
from langgraph_scrum_master.model import Snapshot, digest
from langgraph_scrum_master.team.record.files import write_snapshots

Load: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
"""The page's data with the given settings, which replace the others."""

TOKEN_HEADER = "X-Inspector-Token"
"""A header that pages of other sites cannot send."""

_HOSTS = ("127.0.0.1", "localhost")

_LARGEST_REQUEST = 64_000_000
"""In bytes: a snapshot has a state of at most 1,000 messages."""

_MOST_CACHED = 8
"""Replays of an unchanged source that are kept, one for each choice of settings."""


class PageServer(ThreadingHTTPServer):
    """A server on 127.0.0.1 with a token of its own, which the page's address contains."""

    def __init__(self, load: Load, port: int, tests: Path) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.load = load
        self.tests = tests
        self.token = secrets.token_urlsafe(16)


def server_for(load: Load, port: int, tests: Path) -> PageServer:
    """A server of the page at `/`. The page asks it for its data at `/data`, and for a test at `/wrong`."""
    return PageServer(load, port, tests)


def address_of(server: PageServer) -> str:
    """The address of the page."""
    return f"http://127.0.0.1:{server.server_port}/?token={server.token}"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if not self._is_local():
            self._send(403, "text/plain", "this page is served to this machine only")
        elif url.path != "/":
            self._send(404, "text/plain", "not found: there is only /")
        elif not self._is_token(parse_qs(url.query).get("token", [""])[0]):
            self._send(403, "text/plain", "the token is missing: open the address that scrum-master inspect printed")
        else:
            self._answer(lambda: ("text/html", page({**self.server.load({}), "token": self.server.token})))

    def do_POST(self) -> None:
        if not (self._is_local() and self._is_own() and self._is_token(self.headers.get(TOKEN_HEADER, ""))):
            self._send(403, "text/plain", "only the inspector's own page may ask for this")
        elif self.path == "/data":
            self._answer(lambda: self._data(self._body()))
        elif self.path == "/wrong":
            self._answer(lambda: ("application/json", json.dumps({"file": str(self._test(self._body()))})))
        else:
            self._send(404, "text/plain", "not found: there are /data and /wrong")

    def _is_local(self) -> bool:
        """Protects against DNS rebinding by other sites."""
        return self.headers.get("Host", "").rpartition(":")[0] in _HOSTS

    def _is_own(self) -> bool:
        """Whether the request comes from the page itself. Browsers send the origin with each POST."""
        return self.headers.get("Origin", "") in [f"http://{host}:{self.server.server_port}" for host in _HOSTS]

    def _is_token(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self.server.token.encode())

    def _body(self) -> Any:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LARGEST_REQUEST:
            raise DecodeError(f"the request must have at most {_LARGEST_REQUEST} bytes, got {length!r}")
        try:
            return json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"the request is not JSON: {error}") from error

    def _data(self, asked: Any) -> tuple[str, str]:
        if not isinstance(asked, dict) or not isinstance(tried := asked.get("config", {}), dict):
            raise DecodeError(f"the request must have a config, got {asked!r:.80}")
        data = self.server.load(tried)
        return ("", "") if asked.get("digest") == data["digest"] else ("application/json", json.dumps(data))

    def _test(self, asked: Any) -> Path:
        """Write a step as a snapshot test."""
        if not isinstance(asked, dict) or not asked.get("expected"):
            raise DecodeError(f"the step must be a snapshot that says what is expected, got {asked!r:.80}")
        snapshot = Snapshot.from_dict(asked)
        thread = "".join(char if char.isalnum() else "-" for char in snapshot.thread)[:40]
        identity = digest(json.dumps(snapshot.to_dict(), sort_keys=True))
        name = "-".join(filter(None, (thread, f"step-{snapshot.step}", identity)))
        path = self.server.tests / f"{name}.snapshot.json"
        with writing(path):
            write_snapshots(path, [snapshot])
        return path

    def _answer(self, make: Callable[[], tuple[str, str]]) -> None:
        try:
            kind, text = make()
        except (ConfigError, DecodeError) as error:
            self._send(
                400 if self.path == "/wrong" or isinstance(error, ConfigError) else 503, "text/plain", str(error)
            )
        # A source that is being written may raise anything. The next request may succeed.
        except Exception as error:
            self._send(503, "text/plain", str(error))
        else:
            self._send(200 if kind else 304, kind or "text/plain", text)

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the page polls every two seconds."""


def cached_until_changed(load: Load, signature: Callable[[], object]) -> Load:
    """Wraps `load` so that it runs once for each choice of settings until the signature changes, one at a time.

    A signature of None is always a change.
    """
    lock, latest, at = threading.Lock(), dict[str, dict[str, Any]](), [object()]

    def cached(tried: Mapping[str, Any]) -> dict[str, Any]:
        with lock:
            # Taken before loading, so that writes in the meantime are seen by the next call.
            now, key = signature(), json.dumps(tried, sort_keys=True)
            if now is None or now != at[0]:
                latest.clear()
                at[0] = now
            if key not in latest:
                latest[key] = load(tried)
                for old in list(latest)[:-_MOST_CACHED]:
                    del latest[old]
            return latest[key]

    return cached


def signature_of(source: str) -> object:
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
