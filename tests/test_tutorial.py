"""The tutorial from its first line to its last, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
BLOCK = re.compile(r'```(\w+)(?: title="([^"]+)")?\n(.*?)```', re.S)
ANYTHING = "…"
MARK = "<next command>"


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    parts = re.split(r"^\$ ", block, flags=re.M)[1:]
    return [(command, printed) for command, _, printed in (part.partition("\n") for part in parts)]


def matches(printed: str, page: str) -> bool:
    """Whether that is what the page shows; an ellipsis there stands for anything."""
    pattern = ".*".join(re.escape(part) for part in page.strip().split(ANYTHING))
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


@pytest.mark.slow
def test_each_step_ends_as_the_page_says(tmp_path: Path) -> None:
    steps: list[tuple[str, str]] = []
    for kind, title, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
        elif kind == "console":
            steps += commands(text)
    script = "\n".join(["exec 2>&1", *(f"echo {MARK!r}\n{command}" for command, _ in steps)])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "200"}

    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    printed = done.stdout.split(f"{MARK}\n")[1:]
    assert len(printed) == len(steps) > 10
    for (command, page), shown in zip(steps, printed, strict=True):
        assert matches(shown, page), f"$ {command}\n{shown}"
    assert "https:" not in (tmp_path / "inspector.html").read_text(encoding="utf-8")
