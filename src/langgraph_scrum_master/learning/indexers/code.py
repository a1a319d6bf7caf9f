"""Indexes code units: functions, classes, methods, modules and constants."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from langgraph_scrum_master.learning.indexers.files import (
    ChangedFile,
    IndexProgress,
    IndexReport,
    index_files,
    indexed_memory,
    numbered,
)
from langgraph_scrum_master.learning.indexers.grammars import GRAMMARS, LONGEST_SIGNATURE, parse_units
from langgraph_scrum_master.learning.records import CodeUnit
from langgraph_scrum_master.memory.records import Memory
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.protocols import MemoryStore

SUFFIXES = (".py", *GRAMMARS)

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]+")


async def index_code(
    memory: MemoryStore, root: str | Path, project: str = "", progress: IndexProgress | None = None
) -> IndexReport:
    """Store the code units of a project on the memory's shelf `code`. Only changed units are written.

    Python needs no extra. JavaScript, TypeScript, Go, Rust and Java need the extra `code`; without it their files are
    reported as skipped.
    """
    shelf = indexed_memory(memory, "index_code", "shelves").beside("code")
    folder = Path(root)

    def cut(source: ChangedFile) -> list[Memory]:
        return [unit.to_memory() for unit in code_units(source.path, source.text, project or folder.resolve().name)]

    return await index_files(shelf, folder, SUFFIXES, cut, "code", progress)


def code_units(path: str, text: str, project: str = "") -> list[CodeUnit]:
    """The units of a file, parsed by its suffix. Raises ValueError if it cannot be parsed."""
    units = python_units(path, text) if path.endswith(".py") else parse_units(path, text)
    names = numbered(unit.qualified_name for unit in units)
    lines = text.split("\n")
    return [
        replace(unit, qualified_name=name, project=project, content_hash=_content_hash(unit, lines))
        for unit, name in zip(units, names, strict=True)
    ]


def _content_hash(unit: CodeUnit, lines: Sequence[str]) -> str:
    # The members of a class or a module are units themselves: their changes do not count as changes of the whole.
    is_leaf = unit.unit_type not in ("class", "module")
    source = "\n".join(lines[unit.start_line - 1 : unit.end_line]) if is_leaf else unit.docstring
    return digest(unit.signature, source)


def python_units(path: str, text: str) -> list[CodeUnit]:
    """The units of a Python file, the module first. Raises ValueError for invalid syntax."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"{error.msg} in line {error.lineno}") from error
    units = [_module(path, tree, text), *_constants(tree), *_units(tree, "")]
    return [replace(unit, file_path=path) for unit in units]


def _module(path: str, tree: ast.Module, text: str) -> CodeUnit:
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return CodeUnit(
        file_path=path,
        qualified_name=name,
        unit_type="module",
        signature=f"module {name}",
        docstring=ast.get_docstring(tree) or "",
        end_line=max(1, text.count("\n")),
    )


def _constants(tree: ast.Module) -> Iterator[CodeUnit]:
    """Module-level assignments in capitals, or with a docstring."""
    for node, below in zip_longest(tree.body, tree.body[1:]):
        if isinstance(node, ast.Assign | ast.AnnAssign) and (name := _target_name(node)):
            docstring = _docstring(below)
            if docstring or _CONSTANT.fullmatch(name):
                yield CodeUnit(
                    file_path="",
                    qualified_name=name,
                    unit_type="constant",
                    signature=" ".join(ast.unparse(node).split())[:LONGEST_SIGNATURE],
                    docstring=docstring,
                    start_line=node.lineno,
                    end_line=node.end_lineno or node.lineno,
                )


def _target_name(node: ast.Assign | ast.AnnAssign) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _docstring(node: ast.stmt | None) -> str:
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value.strip() if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _units(node: ast.AST, inside: str, method: bool = False) -> Iterator[CodeUnit]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _DEFINITIONS):
            name = f"{inside}{child.name}"
            is_class = isinstance(child, ast.ClassDef)
            yield CodeUnit(
                file_path="",
                qualified_name=name,
                unit_type="class" if is_class else "method" if method else "function",
                signature=_signature(child),
                docstring=ast.get_docstring(child) or "",
                start_line=min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)]),
                end_line=child.end_lineno or child.lineno,
            )
            yield from _units(child, f"{name}.", method=is_class)
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _units(child, inside, method)


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in (*node.bases, *(keyword.value for keyword in node.keywords)))
        return f"class {node.name}({bases}):" if bases else f"class {node.name}:"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    return f"{kind} {node.name}({ast.unparse(node.args)}){returns}:"
