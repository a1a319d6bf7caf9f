"""Every code block of the documentation runs, in the order of its page, and gives the output that the page shows."""

from __future__ import annotations

import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from figures import head, missed, section
from pages import PAGES, ROOT, UnrunError, blocks, problems, steps
from projects import commit, new_repository

NOT_RUN = {
    ("README.md", "make run"): "`make newcomer` runs it, as the gate does, and `make test` runs this",
    ("ARCHITECTURE.md", "cli "): "a drawing",
    ("ARCHITECTURE.md", "team/node"): "a drawing",
    ("ARCHITECTURE.md", "prompts/pipeline"): "a drawing",
    ("ARCHITECTURE.md", "learning/assembler"): "a drawing",
}
"""Page and beginning of each block or command that cannot run here, and why."""
if find_spec("hyperon") is None:
    NOT_RUN["entities-and-knowledge.md", "from hyperon"] = "hyperon has no wheel for this Python"

READ_BY = {
    ("briefing.md", ".claude/settings.json"): "briefing/test_session_briefing.py",
    ("coding-agents.md", ".mcp.json"): "cli/test_mcp.py",
}
"""Files that no command of their page uses, and the test that reads each as its program would."""

IN_A_PROJECT = ("coding-agents.md", "learn.md")
"""Pages that start in an existing project, here a part of this one; all others start in an empty folder."""

LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def excluded(page: Path) -> list[str]:
    return [beginning for name, beginning in NOT_RUN if name == page.name]


def differences(page: Path, folder: Path) -> list[str]:
    """The differences from the output that the page shows, in a folder and with a home directory of its own."""
    home = folder.with_name("home")
    home.mkdir()
    return problems(list(steps(blocks(page), excluded(page))), folder, home)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.newcomer] if page.name == "tutorial.md" else [])
        for page in PAGES
    ],
)
def test_the_steps_of_a_page_give_the_output_that_it_shows(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    if page.name in IN_A_PROJECT:
        part_of_this_project(folder)
    else:
        folder.mkdir()

    assert differences(page, folder) == []


def part_of_this_project(folder: Path) -> None:
    new_repository(folder)
    for part in ("docs", "src/langgraph_scrum_master/learning/indexers"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("images", "__pycache__"))
    commit(folder, "All of it")


@pytest.mark.parametrize(("name", "beginning"), NOT_RUN)
def test_excluded_blocks_exist(name: str, beginning: str) -> None:
    (page,) = (page for page in PAGES if page.name == name)

    whole = [block.text for block in blocks(page)]
    commands = [line.removeprefix("$ ") for text in whole for line in text.splitlines() if line.startswith("$ ")]
    assert any(text.startswith(beginning) for text in (*whole, *commands))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_of_a_page_is_used_by_a_later_step_or_a_test(page: Path) -> None:
    page_blocks = blocks(page)

    for i, block in enumerate(page_blocks):
        called = Path(block.title).name.removesuffix(".py")
        if block.title and not any(called in later.text for later in page_blocks[i + 1 :]):
            test = ROOT / "tests" / READ_BY.get((page.name, block.title), "nobody")
            assert test.is_file(), f"{block.place}: nothing uses {block.title!r}"
            assert f'file_of("{page.name}", "{block.title}")' in test.read_text(encoding="utf-8")


def test_the_list_of_tests_that_read_a_pages_files_is_current() -> None:
    titles = {(page.name, block.title) for page in PAGES for block in blocks(page)}

    assert READ_BY.keys() <= titles


def a_page(text: str, folder: Path) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


GOOD = """
```json title="src/some names.json"
["Maria", "John"]
```

```console
$ ls src && cd src
some names.json
$ NAMES=$(python -c "import json; \\
    print(len(json.load(open('some names.json'))))")
$ echo $NAMES names; echo and more
2 …
$ trap 'echo Stopped.; exit' INT; echo Up.; while true; do sleep 0.05; done
Up.
^CStopped.
```

```python
import json

print(json.load(open("some names.json"))[0])
```

It prints:

```text
Maria
```
"""


@pytest.mark.slow
def test_steps_run_in_order_in_one_folder_and_one_shell(tmp_path: Path) -> None:
    page, folder = a_page(GOOD, tmp_path), tmp_path / "folder"
    folder.mkdir()

    assert differences(page, folder) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ echo said though nothing is shown\n```\n",
        "```console\n$ echo one; false\none\n```\n",
        "```console\n$ exit 0\n$ true\n```\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nprint(1)\n```\n",
        "```python\nimport sys; sys.exit(1)\n```\n",
    ],
)
def test_unexpected_output_is_reported_with_its_line(text: str, tmp_path: Path) -> None:
    page, folder = a_page(text, tmp_path), tmp_path / "folder"
    folder.mkdir()

    (problem,) = differences(page, folder)

    assert problem.startswith("page.md:1: ")


@pytest.mark.parametrize(
    "text",
    [
        "```\nscrum-master run\n```\n",
        "```bash\nscrum-master run\n```\n",
        "```console\nscrum-master run\n```\n",
        "```toml\nnamespace = 'shop'\n```\n",
        "```text\nprinted by nothing\n```\n",
        "```python hl_lines='1'\nprint(1)\n```\n",
        "```python\nprint(1)\n",
        "~~~python\nprint(1)\n~~~\n",
        "- a list\n\n  ```python\n  print(1)\n  ```\n",
        "So:\n\n    print(1)\n",
        "<pre>print(1)</pre>\n",
    ],
)
def test_code_that_would_not_run_is_rejected(text: str, tmp_path: Path) -> None:
    page = a_page(text, tmp_path)

    with pytest.raises(UnrunError, match=r"page\.md"):
        list(steps(blocks(page)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_have_existing_targets(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    ("line", "is_missed"),
    [
        ("a search: 6.9 ms against 4.2 ms: 1.63 x (CPU 6.9 against 4.2 ms: 1.65 x) (bar: 2 x)", False),
        ("a search: 9.3 ms against 3.7 ms: 2.48 x (CPU 9.3 against 3.7 ms: 2.51 x) (bar: 2 x)", True),
        ("without a checkpointer: 1.15 x (bar: 1.15 x)", False),
        ("hook: 2001 ms, 928 ms of CPU, 10.1 x `import typer` (bar: 2000 ms)", True),
        ("memory of one assembly: 0.8 MB (bar: 50 MB)", False),
        ("indexing again: 0.5 s against 7.4 s, 1/15 (bar: 1/20)", True),
        ("duplicates: 60.0 ms, 1/543 of difflib (bar: 50 ms or 1/20)", False),
        ("duplicates: 60.0 ms, 1/10 of difflib (bar: 50 ms or 1/20)", True),
        ("paraphrases: 0.44 rank first (0.44 of 64; bar: 0.40), 0.30 in one memory", False),
        ("paraphrases: 0.39 rank first (0.44 of 64; bar: 0.40), 0.30 in one memory", True),
        ("no bar: 2.6 s, then 0.19 s", False),
    ],
)
def test_a_figure_that_misses_its_bar_is_marked(line: str, is_missed: bool) -> None:
    script = ROOT / "benchmarks" / "bench_import.py"

    assert missed(line) == is_missed
    assert section(script, [line]).endswith(f"\n\n- {line} **missed**" if is_missed else f"\n\n- {line}")


def test_the_page_of_figures_has_the_current_format() -> None:
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    day, python, cores = re.findall(r"on (\S+), with Python (\S+) on a machine with (\d+) cores", page)[0]
    scripts = sorted((ROOT / "benchmarks").glob("bench_*.py"))
    printed = [re.findall(r"^- (.*?)(?: \*\*missed\*\*)?$", part, re.M) for part in page.split("\n## ")[1:]]

    parts = [section(script, lines) for script, lines in zip(scripts, printed, strict=True)]
    assert page == "\n\n".join([head(day, python, int(cores)), *parts]) + "\n"
