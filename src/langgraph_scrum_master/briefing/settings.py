"""The settings of session briefings, from flags, the environment and a project's own file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph_scrum_master._internal.settings import (
    Setting,
    flag,
    number_between,
    plain_text,
    setting,
    settings_of,
    whole_number,
)
from langgraph_scrum_master._internal.shapes import file_text
from langgraph_scrum_master.briefing.bank import Warn
from langgraph_scrum_master.briefing.selection import RELEVANCE_WEIGHT
from langgraph_scrum_master.errors import ConfigError

LIMIT = 20
"""Lessons that a session gets."""

LOCAL_FILE = Path(".claude", "scrum-master.local.md")
"""Where a project may keep its settings, in the front matter."""

STORE = "~/.scrum-master/knowledge-bank"
"""Where the lessons of all projects are."""

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.S | re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefingConfig:
    """The settings of session briefings, for the command and the hook."""

    memory_injection_enabled: bool = setting(True, flag())
    """Whether [sessions are briefed](briefing.md#settings)."""
    memory_injection_limit: int = setting(LIMIT, whole_number(0))
    """Lessons that a session gets at most."""
    memory_relevance_weight: float = setting(RELEVANCE_WEIGHT, number_between(0, 1))
    """How lessons are ranked: 0 is by prominence alone, 1 by relevance alone."""
    global_store: str = setting(STORE, plain_text(), path=True)
    """Folder with the lessons of all projects."""


_SETTINGS = {each.name: each for each in settings_of(BriefingConfig)}

_STORE = _SETTINGS["global_store"]

_LABELS = {"memory_injection_limit": "limit", "memory_relevance_weight": "relevance weight"}
"""What warnings call a setting, where not by its name."""


def checked_switch(value: object) -> bool:
    """The value, if it is True or False. Raises ConfigError."""
    return bool(_SETTINGS["memory_injection_enabled"].checked(value))


def checked_limit(value: object) -> int:
    """The value, if it is a whole number of lessons. Raises ConfigError."""
    return int(_SETTINGS["memory_injection_limit"].checked(value))


def checked_weight(value: object) -> float:
    """The value, if it is a weight. Raises ConfigError."""
    return float(_SETTINGS["memory_relevance_weight"].checked(value))


def strict_setting(name: str, value: object, called: str) -> Any:
    """A setting as a briefing reads it. Raises ConfigError, which refers to it as `called`."""
    declared = _SETTINGS[name]
    try:
        return _read(declared, str(value))
    except ValueError as error:
        # A text has no True or False.
        raise ConfigError(f"{called} must be {declared.values.expected.lower()}, got {value!r}") from error


def lenient_settings(
    root: Path, given: Mapping[str, str | None], environ: Mapping[str, str], warn: Warn
) -> dict[str, Any]:
    """The settings but for the store, from `given`, the environment or the project; invalid ones take their default."""
    noted = _noted(root / LOCAL_FILE, warn)
    found: dict[str, Any] = {}
    for name, declared in _SETTINGS.items():
        if declared is _STORE:
            continue
        text = given.get(name)
        if text is None:
            text = environ.get(declared.variable) or noted.get(name)
        try:
            found[name] = declared.default if text is None else _read(declared, text)
        except ValueError:
            warn(f"Invalid {_LABELS.get(name, name)} '{text}', using default {str(declared.default).lower()}")
            found[name] = declared.default
    return found


def global_store(given: str | None, environ: Mapping[str, str]) -> Path | None:
    """The folder with the lessons of all projects: as given, else as the environment has it, else in the home."""
    try:
        return Path(given or environ.get(_STORE.variable) or STORE).expanduser()
    except RuntimeError:
        # Nobody's home.
        return None


def _read(declared: Setting, text: str) -> Any:
    return declared.checked(declared.values.parse(text.strip()))


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
