"""Every block of the documentation runs as it stands, in the page's order, and ends as the page says."""

from __future__ import annotations

import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from pages import PAGES, ROOT, Block, UnrunError, blocks, problems, steps
from projects import commit, git

NOT_RUN = {
    ("README.md", "make run"): "the gate runs it, by `make newcomer`",
    ("README.md", "make test"): "it runs this",
    ("ARCHITECTURE.md", "state ─▶"): "a drawing",
    ("figures.md", ""): "what `make figures` wrote, which takes a quarter of an hour",
}
"""Pages, and how blocks or commands begin that cannot run here; and why."""
if find_spec("hyperon") is None:
    NOT_RUN["entities-and-knowledge.md", "from hyperon"] = "hyperon has no wheel for this Python"

READ_BY = {
    ("briefing.md", ".claude/settings.json"): "test_session_briefing.py",
    ("coding-agents.md", ".claude/settings.json"): "test_hooks.py",
    ("coding-agents.md", ".mcp.json"): "test_mcp.py",
}
"""Files that are for other programs than those of their page, and which test does with them what these would."""

IN_A_PROJECT = ("coding-agents.md", "learn.md")
"""Pages that begin in a project of their reader's: this one, but small. All others begin in an empty folder."""

LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def left_out(page: Path) -> list[str]:
    return [beginning for name, beginning in NOT_RUN if name == page.name]


def a_page(text: str, folder: Path) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.newcomer] if page.name == "tutorial.md" else [])
        for page in PAGES
    ],
)
def test_each_step_of_a_page_ends_as_it_says(page: Path, tmp_path: Path) -> None:
    folder, home = tmp_path / "folder", tmp_path / "home"
    home.mkdir()
    folder.mkdir()
    if page.name in IN_A_PROJECT:
        this_project(folder)

    assert not problems(list(steps(blocks(page), left_out(page))), folder, home)


def this_project(folder: Path) -> None:
    """Some of this project, as a repository."""
    for part in ("docs", "src/langgraph_scrum_master/index"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("images", "__pycache__"))
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "All of it")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
