"""Regular expressions that are compiled on their first use, to keep the import fast."""

from __future__ import annotations

import re
from typing import Any, cast


class _LazyPattern:
    """Has the attributes of the compiled pattern. Each is stored when it is first read, so later reads cost nothing."""

    def __init__(self, expression: str, flags: int) -> None:
        self._expression = expression
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        # `re` caches the compiled pattern. Special methods, which `copy` and `pickle` look for, are not the pattern's.
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(re.compile(self._expression, self._flags), name)
        setattr(self, name, value)
        return value


def lazy_pattern(expression: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern, compiled when one of its methods is first used."""
    return cast("re.Pattern[str]", _LazyPattern(expression, flags))
