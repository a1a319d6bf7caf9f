"""The graphs as `langgraph dev` serves them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import create_agent
import deep_agent
import supervisor
import swarm

ROOT = Path(__file__).parents[1]

pytestmark = [pytest.mark.slow, pytest.mark.allow_hosts(["127.0.0.1"])]


def post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ok", timeout=1):
            return True
    except OSError:
        return False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("langgraph")), "dev", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--no-browser", "--no-reload", "--config", str(ROOT / "langgraph.json")],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "LANGGRAPH_NO_VERSION_CHECK": "true"},
        )
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 90
    while not is_up(url):
        if time.monotonic() > deadline or process.poll() is not None:
            pytest.fail((tmp_path / "server.log").read_text()[-3000:])
        time.sleep(0.2)
    yield url
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(timeout=30)


def wait_for(server: str, graph: str, task: str) -> Any:
    messages = {"messages": [{"role": "user", "content": task}]}
    return post(f"{server}/runs/wait", {"assistant_id": graph, "input": messages})


def test_a_request_over_the_servers_api_shows_the_injection(server: str) -> None:
    end = wait_for(server, "delivery_team", "PAY-42: charge once for a repeated request.")

    assert end["gate_passed"] is True
    assert end["injection_result"]["injected"] is True
    assert end["injection_result"]["gap"]["agent"] == "dev"
    # On the one server, which takes long to start.
    for graph in (create_agent, supervisor, swarm, deep_agent):
        assert wait_for(server, graph.__name__, graph.TASK)["injection_result"]["injected"] is True, graph.__name__
