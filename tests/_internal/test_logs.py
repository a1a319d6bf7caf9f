"""Where events go: to structlog where the host has configured it, else to `logging`."""

from __future__ import annotations

import subprocess
import sys

import pytest

STEP = """
from langgraph_scrum_master import ScrumMaster
ScrumMaster().evaluate({"messages": [{"role": "assistant", "name": "dev", "content": "Where do we keep our keys?"}]})
"""


@pytest.mark.parametrize(
    ("configured", "out", "err"),
    [
        ("", "", ""),
        ("import structlog", "", ""),
        ("import logging; logging.basicConfig(level='INFO')", "", "INFO:langgraph_scrum_master:context.abstained "),
        ("import structlog; structlog.configure()", "context.abstained", ""),
    ],
    ids=["nothing", "structlog imported only", "logging", "structlog"],
)
def test_the_library_prints_only_what_the_host_has_configured(configured: str, out: str, err: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"{configured}\n{STEP}"], capture_output=True, text=True, check=True)

    assert (out in done.stdout, bool(done.stdout)) == (True, bool(out))
    assert (err in done.stderr, bool(done.stderr)) == (True, bool(err))
