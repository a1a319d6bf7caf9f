"""The inspector's page and its server, without a browser; `test_inspector.py` looks at it in one."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from inspected import SCRIPT, messages, write_database, write_run, written_page
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.cli.page_server import address_of, cached_until_changed, server_for
from langgraph_scrum_master.cli.page_snapshots import SnapshotPool
from langgraph_scrum_master.errors import ConfigError, DecodeError, ScrumMasterError
from langgraph_scrum_master.replay import replay
from langgraph_scrum_master.replay.report import report
from langgraph_scrum_master.team.record.files import Growing

SHOWN = {"digest": "d1", "title": "run", "steps": []}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written_page(tmp_path_factory.mktemp("page")).read_text(encoding="utf-8")


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    assert "<" not in found[1]
    return json.loads(found[1])


def test_the_page_is_one_file_that_loads_nothing(written: str) -> None:
    assert not re.search(r"(?:src|href|action)\s*=\s*[\"']?(?:https?:)?//", written)
    assert not re.search(r"@import|url\((?!#)", written)
    assert "default-src 'none'" in written


def test_the_policy_allows_only_the_pages_own_style_and_script(written: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', written)

    assert policy is not None
    assert "unsafe" not in policy[1]
    assert len(re.findall(r"(?:style|script)-src 'sha256-[\w+/=]+'", policy[1])) == 2
    assert not re.search(r"<[^>]+\s(?:on\w+|style)=", written.partition("<script")[0])


def test_a_message_cannot_escape_from_the_data_of_the_page(written: str) -> None:
    assert any(SCRIPT in turn["text"] for step in data_of(written)["steps"] for turn in step["turns"])


def test_the_summary_of_a_database_is_that_of_the_report(tmp_path: Path) -> None:
    shown = data_of(written_page(tmp_path, write_database).read_text(encoding="utf-8"))

    rows = report(tmp_path / "team.sqlite").rows
    counts = ("gaps", "served", "used", "ignored", "asked_again", "tokens")
    assert rows
    for name in counts:
        assert sum(row[name] for row in shown["tallies"]) == sum(getattr(row, name) for row in rows)
    assert shown["source"] == "team.sqlite: SQLite checkpoint database, 2 threads, 44 steps"


def test_each_step_of_a_page_can_be_put_together_again_as_its_snapshot(tmp_path: Path) -> None:
    said = messages() * 100
    pool = SnapshotPool()
    snapshots = [*Growing(said), *Growing(said[5:40])]
    for snapshot in snapshots:
        pool.add(snapshot)

    for snapshot, packed in zip(snapshots, pool.snapshots, strict=True):
        (start, end), *_ = packed["messages"]
        assert pool.messages[start:end] == snapshot.state["messages"]
    assert len(pool.messages) < len(said) + 100


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
    assert summary["recorded"] == {"no record": len(messages())}
    assert "injected" not in summary["hypothetical"]
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


class Asked:
    """Asks a server as its own page does, but for the headers that are given."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.token = token

    def get(self, path: str, **headers: str) -> tuple[HTTPResponse, str]:
        return self._ask("GET", path, None, headers)

    def post(self, path: str, body: Any, **headers: str) -> tuple[HTTPResponse, str]:
        own = {"Origin": f"http://127.0.0.1:{self.port}", "X-Inspector-Token": self.token}
        text = body if isinstance(body, str) else json.dumps(body)
        return self._ask("POST", path, text, own | {name.replace("_", "-"): value for name, value in headers.items()})

    def _ask(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> tuple[HTTPResponse, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, body=body, headers=dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text


@contextmanager
def serving(look: Callable[[Mapping[str, Any]], dict[str, Any]], tests: Path = Path("nowhere")) -> Iterator[Asked]:
    """A server that shows this."""
    with server_for(look, 0, tests) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield Asked(server.server_port, address_of(server).partition("token=")[2])
        finally:
            server.shutdown()


@pytest.mark.allow_hosts(["127.0.0.1"])
def test_the_server_gives_the_page_and_its_data_to_its_own_page_alone() -> None:
    with serving(lambda tried: SHOWN) as asked:
        home = f"/?token={asked.token}"
        page, data, other = asked.get(home), asked.post("/data", {"config": {}}), asked.get("/elsewhere")
        refused = [
            asked.get(home, Host="evil.example:80"),
            asked.get("/"),
            asked.get("/?token=guessed"),
            asked.get("/data"),
            asked.post("/data", {}, Host="evil.example:80"),
            asked.post("/data", {}, Origin="http://evil.example"),
            asked.post("/data", {}, Origin=""),
            asked.post("/data", {}, X_Inspector_Token="guessed"),
            asked.post("/data", {}, X_Inspector_Token="gu\u00e9ssed"),
            asked.post("/wrong", {}, X_Inspector_Token=""),
        ]

    assert "<!doctype html>" in page[1]
    assert data_of(page[1])["token"] == asked.token
    assert json.loads(data[1]) == SHOWN
    assert data[0].headers["Cache-Control"] == "no-store"
    assert (page[0].status, data[0].status, other[0].status) == (200, 200, 404)
    assert [answer.status for answer, _ in refused] == [403, 403, 403, 404, *[403] * 6]


@pytest.mark.allow_hosts(["127.0.0.1"])
def test_unchanged_data_is_not_sent_again() -> None:
    with serving(lambda tried: SHOWN) as asked:
        same, changed = asked.post("/data", {"digest": "d1"}), asked.post("/data", {"digest": "d0"})

    assert (same[0].status, same[1]) == (304, "")
    assert changed[0].status == 200


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize("error", [DecodeError("there is no 'x'"), OSError("disk")], ids=["known", "unknown"])
def test_a_broken_source_is_reported_and_the_server_continues(error: Exception) -> None:
    broken = [error]

    def look(tried: Mapping[str, Any]) -> dict[str, Any]:
        if broken:
            raise broken.pop()
        return SHOWN

    with serving(look) as asked:
        first, second = asked.post("/data", {}), asked.post("/data", {})

    assert (first[0].status, first[1]) == (503, str(error))
    assert second[0].status == 200


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize(
    ("path", "body", "status", "expected"),
    [
        ("/data", {"config": 7}, 503, "the request must have a config"),
        ("/data", "{", 503, "the request is not JSON"),
        ("/data", {"config": {"x": 1}}, 400, "unknown settings"),
        ("/wrong", {"schema": 2, "state": {}}, 400, "must be a snapshot that says what is expected"),
        ("/wrong", [], 400, "must be a snapshot that says what is expected"),
        ("/wrong", {"state": 7, "expected": {"outcome": "silent"}}, 400, "not a Snapshot"),
        ("/wrong", {"state": {}, "expected": {"outcome": "../.."}}, 400, "not a Snapshot"),
    ],
)
def test_bad_requests_are_refused_with_the_reason(
    tmp_path: Path, path: str, body: Any, status: int, expected: str
) -> None:
    def look(tried: Mapping[str, Any]) -> dict[str, Any]:
        if tried:
            raise ConfigError(f"unknown settings {list(tried)}")
        return SHOWN

    with serving(look, tmp_path / "tests") as asked:
        answer, text = asked.post(path, body)

    assert answer.status == status
    assert expected in text
    assert not (tmp_path / "tests").exists()


@pytest.mark.allow_hosts(["127.0.0.1"])
def test_a_step_that_was_wrong_is_written_where_its_thread_cannot_lead_out(tmp_path: Path) -> None:
    wrong = {"state": {"messages": []}, "thread": "../../x", "step": 3, "expected": {"outcome": "silent"}}

    with serving(lambda tried: SHOWN, tmp_path / "tests") as asked:
        answer, text = asked.post("/wrong", wrong)

    file = Path(json.loads(text)["file"])
    assert answer.status == 200
    assert file.parent == tmp_path / "tests"
    assert re.fullmatch(r"------x-step-3-\w+\.snapshot\.json", file.name)
    assert [step.step for step in replay(file).steps] == [3]


def test_a_source_is_read_again_only_when_it_or_the_settings_have_changed() -> None:
    looks: list[Mapping[str, Any]] = []
    signature: list[object] = ["a"]

    def look(tried: Mapping[str, Any]) -> dict[str, Any]:
        looks.append(tried)
        return {"digest": str(len(looks))}

    cached = cached_until_changed(look, lambda: signature[0])
    digests = [cached({})["digest"], cached({})["digest"], cached({"a": 1})["digest"], cached({})["digest"]]
    signature[0] = "b"
    digests.append(cached({})["digest"])
    signature[0] = None
    digests += [cached({})["digest"], cached({})["digest"]]

    assert digests == ["1", "1", "2", "1", "3", "4", "5"]
