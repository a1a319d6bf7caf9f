"""The settings of session briefings, from flags, the environment and a project's own file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from langgraph_scrum_master._internal.shapes import file_text, switch
from langgraph_scrum_master.briefing.bank import Warn
from langgraph_scrum_master.briefing.selection import RELEVANCE_WEIGHT
from langgraph_scrum_master.errors import ConfigError

LIMIT = 20
"""Lessons that a session gets."""

LOCAL_FILE = Path(".claude", "scrum-master.local.md")
"""Where a project may keep its settings, in the front matter."""

STORE = "~/.scrum-master/knowledge-bank"
"""Where the lessons of all projects are."""

STORE_VARIABLE = "SCRUM_MASTER_GLOBAL_STORE"

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.S | re.M)


def checked_switch(value: object) -> bool:
    """The value, if it is on or off."""
    if not isinstance(value, bool):
        raise ConfigError(f"memory_injection_enabled must be True or False, got {value!r}")
    return value


def checked_limit(value: object) -> int:
    """The value, if it is a whole number of lessons."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigError(f"memory_injection_limit must be a whole number, 0 or more, got {value!r}")
    return value


def checked_weight(value: object) -> float:
    """The value, if it is a weight."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ConfigError(f"memory_relevance_weight must be a number from 0 to 1, got {value!r}")
    return float(value)


_SETTINGS: dict[str, tuple[str, Callable[[str], Any], Any]] = {
    "memory_injection_enabled": ("memory_injection_enabled", switch, True),
    "memory_injection_limit": ("limit", lambda text: checked_limit(int(text)), LIMIT),
    "memory_relevance_weight": ("relevance weight", lambda text: checked_weight(float(text)), RELEVANCE_WEIGHT),
}
"""What each is called in a warning, how it is read, and its default."""


_EXPECTED = {
    "memory_injection_enabled": "true or false",
    "memory_injection_limit": "a whole number, 0 or more",
    "memory_relevance_weight": "a number from 0 to 1",
}


def strict_setting(name: str, value: object, told_as: str) -> Any:
    """A setting as a briefing reads it; one that cannot work is refused, under the name that it was told by."""
    if name not in _SETTINGS:
        return value
    try:
        return _SETTINGS[name][1](str(value).strip())
    except ValueError as error:
        raise ConfigError(f"{told_as} must be {_EXPECTED[name]}, got {value!r}") from error


def lenient_settings(
    root: Path, given: Mapping[str, str | None], environ: Mapping[str, str], warn: Warn
) -> dict[str, Any]:
    """All settings: as given, else as the environment has them, else as the project does; a bad one is the default."""
    noted = _noted(root / LOCAL_FILE, warn)
    found: dict[str, Any] = {}
    for name, (label, parsed, default) in _SETTINGS.items():
        text = given.get(name)
        if text is None:
            text = environ.get(f"SCRUM_MASTER_{name.upper()}") or noted.get(name)
        try:
            found[name] = default if text is None else parsed(text.strip())
        except ValueError:
            warn(f"Invalid {label} '{text}', using default {str(default).lower()}")
            found[name] = default
    return found


def global_store(given: str | None, environ: Mapping[str, str]) -> Path | None:
    """The folder with the lessons of all projects: as given, else as the environment has it, else in the home."""
    try:
        return Path(given or environ.get(STORE_VARIABLE) or STORE).expanduser()
    except RuntimeError:
        # Nobody's home.
        return None


def _noted(path: Path, warn: Warn) -> dict[str, str]:
    """The fields in the front matter of a project's file that say anything."""
    try:
        if not path.exists():
            return {}
        front = _FRONT_MATTER.match(file_text(path))
    except (ValueError, OSError) as error:
        warn(f"{path} {error}")
        return {}
    fields = (line.partition("#")[0].partition(":") for line in (front[1] if front else "").split("\n"))
    return {name.strip(): said for name, _, value in fields if (said := value.strip(" \t\"'"))}
