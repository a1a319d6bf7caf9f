"""Every pattern of the package takes time in proportion to the length of the text, whatever the text."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import langgraph_scrum_master

SOURCES = Path(langgraph_scrum_master.__file__).parent
SIZES = (1_600, 12_500, 100_000)
SECONDS = 0.75
"""For 100 KB, far above what linear time needs. Quadratic time takes a minute."""

_PARSER: Any = importlib.import_module("re._parser")
_SPACE, _WORD, _DIGIT, _OTHER = " ", "a", "1", "!"


def patterns() -> dict[str, tuple[str, int]]:
    """The expression and the flags of each pattern in the package, by where it is."""
    found: dict[str, tuple[str, int]] = {}
    for module in pkgutil.walk_packages([str(SOURCES)], "langgraph_scrum_master."):
        for name, value in vars(importlib.import_module(module.name)).items():
            for at, each in within(value, f"{module.name.removeprefix('langgraph_scrum_master.')}.{name}"):
                if not any(known == each for known in found.values()):
                    found[at] = each
    for path in SOURCES.rglob("*.py"):
        for line, each in called(ast.parse(path.read_text(encoding="utf-8"))):
            if not any(known == each for known in found.values()):
                found[f"{path.relative_to(SOURCES)}:{line}"] = each
    return found


def within(value: object, at: str) -> Iterator[tuple[str, tuple[str, int]]]:
    """The patterns in a value of a module, compiled or compiled on first use."""
    if type(value).__name__ == "_LazyPattern":
        yield at, (value._expression, int(value._flags))  # type: ignore[attr-defined]
    elif isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield at, (value.pattern, value.flags & ~re.UNICODE)
    elif isinstance(value, dict):
        for i, (key, item) in enumerate(value.items()):
            yield from within(key, f"{at}[{i}]")
            yield from within(item, f"{at}[{i}]")
    elif isinstance(value, list | tuple | set | frozenset):
        for i, item in enumerate(value):
            yield from within(item, f"{at}[{i}]")


def called(tree: ast.AST) -> Iterator[tuple[int, tuple[str, int]]]:
    """The patterns that are given to functions of `re`."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr != "compile"
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield node.lineno, (node.args[0].value, 0)


def methods(at: str) -> set[str]:
    """The methods that the package calls on the pattern; those that find all if that is not known."""
    module, _, name = at.rpartition(".")
    if ".py:" in at:
        return {"match" if re.search(r"re\.(?:full)?match\(", line_of(at)) else "finditer"}
    name = name.partition("[")[0]
    sources = file_of(module), *(each for each in TEXTS if re.search(rf"import .*\b{name}\b", each))
    calls = re.findall(rf"\b{name}\.(\w+)\(", "\n".join(sources)) or HELD.get(at.partition("[")[0], ["finditer"])
    return {"match" if call in ("match", "fullmatch") else "finditer" for call in calls}


def line_of(at: str) -> str:
    path, _, line = at.partition(":")
    return (SOURCES / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]


def file_of(module: str) -> str:
    path = SOURCES / module.replace(".", "/")
    return (path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py").read_text("utf-8")


HELD = {"text.domains._COMMAND_PATTERNS": ["match"]}
"""The methods of patterns that are called by another name."""

READ_AT_MOST = {
    "cli.failure._HEREDOC": 10_000,
    "text.domains._COMMAND_PATTERNS": 10_000,
    "learning.indexers.documents._LIST": 4_096,
}
"""Characters of a text that the code gives to the pattern: of a command, of a turn, and of a path."""
TEXTS = [path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")]
TEXT = "\n".join(TEXTS)
PATTERNS = patterns()


def member(items: Any) -> str:
    """A character of a set."""
    negated = [item for item in items if str(item[0]) == "NEGATE"]
    if negated:
        refused = re.compile("[" + "".join(map(re.escape, filter(None, map(sample_item, items)))) + "]")
        return next((char for char in "a1 -\n.\"'<" if not (refused.pattern != "[]" and refused.match(char))), "\u4e2d")
    return next(filter(None, map(sample_item, items)), _WORD)


def sample_item(item: Any) -> str:
    kind, value = str(item[0]), item[1]
    if kind == "LITERAL":
        return chr(value)
    if kind == "RANGE":
        return chr(value[0])
    return {"CATEGORY_SPACE": _SPACE, "CATEGORY_DIGIT": _DIGIT, "CATEGORY_WORD": _WORD}.get(str(value), _OTHER)


def walk(nodes: Any, before: str, units: set[tuple[str, str]]) -> str:
    """A text that the nodes match. Adds, for each repetition, what precedes it and what it repeats."""
    text = ""
    for kind, value in nodes:
        match str(kind):
            case "LITERAL":
                text += chr(value)
            case "NOT_LITERAL":
                text += _WORD if chr(value) != _WORD else "b"
            case "ANY":
                text += _WORD
            case "IN":
                text += member(value)
            case "BRANCH":
                several = [walk(each, before + text, units) for each in value[1]]
                units.update(("", each) for each in several)
                text += several[0]
            case "SUBPATTERN":
                text += walk(value[3], before + text, units)
            case "ATOMIC_GROUP":
                text += walk(value, before + text, units)
            case "ASSERT":
                inside = walk(value[1], before + text, units)
                text += inside if value[0] < 0 else ""
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, body = value
                unit = walk(body, before + text, units)
                if high > 100:
                    units.add((before + text, unit))
                    units.add(("", before + text + unit))
                    units.add(("", before + text))
                text += unit * min(max(low, 1), 40)
            case "GROUPREF_EXISTS":
                text += walk(value[1], before + text, units)
    return text


def hostile(expression: str, flags: int) -> list[tuple[str, str]]:
    """Texts to repeat, each with what stands before: of all that the pattern itself repeats or starts with."""
    units: set[tuple[str, str]] = {("", each) for each in (" ", "\n", "a", "1", "\n ", "a ", "- ", "a\n")}
    whole = walk(_PARSER.parse(expression, flags), "", units)
    units.update({("", whole), ("", whole[:-1]), ("", whole[: len(whole) // 2]), ("", whole[:2]), ("", whole[:1])})
    return sorted((before, unit) for before, unit in units if unit and len(before + unit) < 1_000)


@contextmanager
def at_most(seconds: float, shape: object) -> Iterator[None]:
    """Ends a search that takes more processor time than that."""

    def end(*_: object) -> None:
        raise AssertionError(f"more than {seconds:.2f} s: {shape}")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def search(pattern: re.Pattern[str], method: str, text: str) -> None:
    if method == "match":
        pattern.match(text)
    else:
        for _ in pattern.finditer(text):
            pass


@pytest.mark.parametrize("at", PATTERNS)
def test_a_pattern_takes_linear_time(at: str) -> None:
    expression, flags = PATTERNS[at]
    pattern, called_by = re.compile(expression, flags), methods(at)

    for before, unit in hostile(expression, flags):
        for method in called_by:
            taken = 0.0
            for size in (min(size, READ_AT_MOST.get(at.partition("[")[0], size)) for size in SIZES):
                # A text eight times as long takes 64 times as long in quadratic time.
                if 64 * taken < SECONDS and size == SIZES[-1] and taken:
                    continue
                text = before + unit * (size // len(unit)) + "\0"
                start = time.process_time()
                with at_most(0.15 + SECONDS * size / SIZES[-1], (before, unit, method, size)):
                    search(pattern, method, text)
                taken = time.process_time() - start


def test_the_patterns_of_every_module_are_known() -> None:
    compiled = len(re.findall(r"\b(?:re\.compile|lazy_pattern)\(", TEXT))

    assert len(PATTERNS) > 0.8 * compiled
