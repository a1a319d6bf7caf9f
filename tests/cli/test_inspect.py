"""The inspector's page and its server, without a browser; `test_inspector.py` looks at it in one."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from inspected import SCRIPT, messages, write_run, written_page
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.cli.inspect import cached_until_changed, server_for
from langgraph_scrum_master.errors import ConfigError, DecodeError, ScrumMasterError

SHOWN = {"digest": "d1", "title": "run", "steps": []}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written_page(tmp_path_factory.mktemp("page")).read_text(encoding="utf-8")


def test_the_page_is_one_file_that_loads_nothing(written: str) -> None:
    assert not re.search(r"(?:src|href|action)\s*=\s*[\"']?(?:https?:)?//", written)
    assert not re.search(r"@import|url\((?!#)", written)
    assert "default-src 'none'" in written


def test_a_message_cannot_escape_from_the_data_of_the_page(written: str) -> None:
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', written, re.S)

    assert data is not None
    assert "<" not in data[1]
    assert any(SCRIPT in turn["text"] for step in json.loads(data[1])["steps"] for turn in step["turns"])


def test_inspect_writes_the_page_and_says_where(tmp_path: Path) -> None:
    source, output = write_run(tmp_path), tmp_path / "new" / "page.html"

    done = CliRunner().invoke(app, ["inspect", str(source), "--output", str(output)])

    assert done.stdout == f"{output}\n"
    assert messages()[2]["content"] in output.read_text(encoding="utf-8")


def test_inspect_tries_other_settings(tmp_path: Path) -> None:
    source, output, config = write_run(tmp_path), tmp_path / "page.html", tmp_path / "strict.toml"
    config.write_text('min_relevance_score = 1.0\nmemory_path = "elsewhere"\n')

    done = CliRunner().invoke(app, ["inspect", str(source), "-o", str(output), "--config", str(config), "--json"])

    summary = json.loads(done.stdout)
    assert (summary["page"], summary["steps"]) == (str(output), len(messages()))
    assert "injected" not in summary["outcomes"]
    assert '"min_relevance_score": 1.0' in output.read_text(encoding="utf-8")


def test_invalid_settings_are_reported_before_a_page_is_served(tmp_path: Path) -> None:
    config = tmp_path / "odd.json"
    config.write_text('{"min_relevance": 1}')

    done = CliRunner().invoke(app, ["inspect", str(write_run(tmp_path)), "--config", str(config), "--serve"])

    assert isinstance(done.exception, ConfigError)
    assert "unknown settings ['min_relevance']" in str(done.exception)


def test_inspect_reports_unreadable_files(tmp_path: Path) -> None:
    source = write_run(tmp_path)
    (tmp_path / "broken.json").write_text("{")

    done = CliRunner().invoke(app, ["inspect", str(source.parent), "--output", str(tmp_path / "page.html")])

    assert "scrum-master: 'broken.json' is not JSON" in done.stderr
    assert "'broken.json' is not JSON" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("rows", "output", "expected"),
    [
        (None, "page.html", "there is no "),
        ("{}\n", "page.html", "there is nothing to inspect in "),
        ('{"role": "user", "content": "Hello."}\n', "x.jsonl/page.html", "cannot write "),
    ],
    ids=["no source", "nothing in it", "no such place"],
)
def test_bad_input_is_reported(tmp_path: Path, rows: str | None, output: str, expected: str) -> None:
    source = tmp_path / "x.jsonl"
    if rows is not None:
        source.write_text(rows)

    done = CliRunner().invoke(app, ["inspect", str(source), "--output", str(tmp_path / output)])

    assert isinstance(done.exception, ScrumMasterError)
    assert expected in str(done.exception)


@contextmanager
def serving(look: Callable[[], dict[str, Any]]) -> Iterator[Callable[..., tuple[HTTPResponse, str]]]:
    """Asks a server that shows this."""
    with server_for(look, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def get(path: str, **headers: str) -> tuple[HTTPResponse, str]:
            connection = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET", path, headers=named)
            answer = connection.getresponse()
            body = answer.read().decode()
            connection.close()
            return answer, body

        try:
            yield get
        finally:
            server.shutdown()


@pytest.mark.allow_hosts(["127.0.0.1"])
def test_the_server_gives_the_page_and_its_data_to_this_machine_alone() -> None:
    with serving(lambda: SHOWN) as get:
        page, data, other = get("/"), get("/data", Host="localhost:80"), get("/elsewhere")
        foreign = [get(path, Host="evil.example:80")[0].status for path in ("/", "/data")]

    assert "<!doctype html>" in page[1]
    assert json.loads(data[1]) == SHOWN
    assert data[0].headers["Cache-Control"] == "no-store"
    assert (page[0].status, data[0].status, other[0].status, foreign) == (200, 200, 404, [403, 403])


@pytest.mark.allow_hosts(["127.0.0.1"])
def test_unchanged_data_is_not_sent_again() -> None:
    with serving(lambda: SHOWN) as get:
        same, changed = get("/data", If_None_Match="d1"), get("/data", If_None_Match="d0")

    assert (same[0].status, same[1]) == (304, "")
    assert changed[0].status == 200


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize("error", [DecodeError("there is no 'x'"), OSError("disk")], ids=["known", "unknown"])
def test_a_broken_source_is_reported_and_the_server_continues(error: Exception) -> None:
    broken = [error]

    def look() -> dict[str, Any]:
        if broken:
            raise broken.pop()
        return SHOWN

    with serving(look) as get:
        first, second = get("/data"), get("/data")

    assert (first[0].status, first[1]) == (503, str(error))
    assert second[0].status == 200


def test_a_source_is_read_again_only_when_it_has_changed() -> None:
    looks: list[int] = []
    signature: list[object] = ["a"]

    def look() -> dict[str, Any]:
        looks.append(1)
        return {"digest": str(len(looks))}

    cached = cached_until_changed(look, lambda: signature[0])
    digests = [cached()["digest"], cached()["digest"]]
    signature[0] = "b"
    digests.append(cached()["digest"])
    signature[0] = None
    digests += [cached()["digest"], cached()["digest"]]

    assert digests == ["1", "1", "2", "3", "4"]
