"""Checks what linter and types do not see: one home for each public name, documented settings.

Run by `make lint`.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from settings_table import PAGE, settings_table, with_table

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "langgraph_scrum_master"

FAMILIES = ("cli", "rank/spaces")
"""Files that are alike on purpose: commands are named after what they show, and spaces have the same parts."""

EVERYWHERE = {"T"}


def public_names(module: Path) -> Iterator[str]:
    """What a module defines at its top level without an underscore."""
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names = [node.name]
            case ast.Assign():
                names = [each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from (name for name in names if not name.startswith("_"))


def homes() -> dict[str, list[str]]:
    """The modules that define each public name."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in sorted(SOURCE.rglob("*.py")):
        path = module.relative_to(SOURCE).as_posix()
        if not path.startswith(FAMILIES):
            # A function with overloads has several definitions.
            for name in set(public_names(module)):
                found[name].append(path)
    return found


def problems() -> Iterator[str]:
    """What is wrong, a line each."""
    for name, modules in sorted(homes().items()):
        if len(modules) > 1 and name not in EVERYWHERE:
            yield f"{name} has {len(modules)} homes: {', '.join(modules)}"
    page = PAGE.read_text(encoding="utf-8")
    if page != with_table(page, settings_table()):
        yield "docs/reference.md differs from the declared settings: run python tests/settings_table.py"


if __name__ == "__main__":
    found = list(problems())
    sys.stderr.writelines(f"{line}\n" for line in found)
    sys.exit(bool(found))
