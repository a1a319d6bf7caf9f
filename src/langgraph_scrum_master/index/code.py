"""Code as units: functions, classes, methods and modules, with signature and docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from langgraph_scrum_master.index.files import IndexReport, Progress, Shelf, Source, index_files, numbered
from langgraph_scrum_master.learned import CodeUnit
from langgraph_scrum_master.memories import Memory

SUFFIXES = (".py",)

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


async def index_code(
    memory: Shelf, root: str | Path, project: str = "", progress: Progress | None = None
) -> IndexReport:
    """Keep the units of a project's Python files in the memory's code; only what changed is written."""
    folder = Path(root)

    def cut(source: Source) -> list[Memory]:
        return [unit.kept() for unit in python_units(source.path, source.text, project or folder.resolve().name)]

    return await index_files(memory.beside("code"), folder, SUFFIXES, cut, "code", progress)


def python_units(path: str, text: str, project: str = "") -> list[CodeUnit]:
    """The units of a Python file; raises ValueError if it is none."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"{error.msg} in line {error.lineno}") from error
    units = [
        replace(unit, file_path=path, project=project) for unit in (_module(path, tree, text), *_units(tree, text, ""))
    ]
    names = numbered(unit.qualified_name for unit in units)
    return [replace(unit, qualified_name=name) for unit, name in zip(units, names, strict=True)]


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


def _units(node: ast.AST, text: str, inside: str, method: bool = False) -> Iterator[CodeUnit]:
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
            yield from _units(child, text, f"{name}.", method=is_class)
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _units(child, text, inside, method)


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in (*node.bases, *(keyword.value for keyword in node.keywords)))
        return f"class {node.name}({bases}):" if bases else f"class {node.name}:"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    return f"{kind} {node.name}({ast.unparse(node.args)}){returns}:"
