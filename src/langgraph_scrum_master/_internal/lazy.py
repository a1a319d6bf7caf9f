"""Lazy exports: a package imports a name from its stub on first use."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|([^\n]*))", re.M)


def lazy_exports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, which read its `.pyi` stub for the module of each name."""

    @cache
    def homes() -> dict[str, str]:
        stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
        return {
            name: module
            for module, several, one in _IMPORT.findall(stub)
            for name in re.findall(r"\bas (\w+)", several or one)
        }

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        # Python looks up dunder names on every import.
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes()[name]), name)

    return get, lambda: sorted(homes())
