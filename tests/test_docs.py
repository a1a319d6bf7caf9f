"""Every Python example in the documentation runs, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE = re.compile(r"```python\n(.*?)```(?:(?:\n[^`#]*?)\n```text\n(.*?)```)?", re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def examples() -> list[tuple[str, str, str]]:
    return [
        (f"{page.name}-{i}", code, printed or "")
        for page in PAGES
        for i, (code, printed) in enumerate(EXAMPLE.findall(page.read_text(encoding="utf-8")), 1)
    ]


@pytest.mark.parametrize(("code", "printed"), [e[1:] for e in examples()], ids=[e[0] for e in examples()])
def test_an_example_runs_and_prints_what_the_page_says(code: str, printed: str, tmp_path: Path) -> None:
    if "hyperon" in code:
        pytest.importorskip("hyperon", reason="hyperon has no wheel for this Python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if "[info" not in line] == printed.splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
