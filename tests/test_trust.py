"""The threat model promises only what a test shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_each_test_that_the_threat_model_names_exists() -> None:
    named = NAMED.findall((ROOT / "docs" / "trust.md").read_text(encoding="utf-8"))
    missing = [f"{file}::{name}" for file, name in named if name not in functions(ROOT / file)]

    assert len(named) > 15
    assert missing == []


def test_each_row_of_what_an_attacker_cannot_do_names_a_test() -> None:
    page = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    rows = [row for table in re.findall(r"\| test \|\n\|[-|]+\n((?:\|.*\n)+)", page) for row in table.splitlines()]

    assert len(rows) > 10
    assert [row for row in rows if not NAMED.search(row)] == []


def functions(file: Path) -> set[str]:
    """The names of the test functions in a file."""
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.exists() else ast.Module([], [])
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
