"""The settings of session briefings: from arguments, the environment and the project's settings file."""

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
"""The maximum number of lessons per session."""

LOCAL_FILE = Path(".claude", "scrum-master.local.md")
"""The project's settings file. Its front matter has the settings."""

STORE = "~/.scrum-master/knowledge-bank"
"""The default folder of the lessons that all projects share."""

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
"""The labels in warnings, where they differ from the name."""


def checked_switch(value: object) -> bool:
    """The value, if it is a bool. Raises ConfigError."""
    return bool(_SETTINGS["memory_injection_enabled"].checked(value))


def checked_limit(value: object) -> int:
    """The value, if it is a valid limit. Raises ConfigError."""
    return int(_SETTINGS["memory_injection_limit"].checked(value))


def checked_weight(value: object) -> float:
    """The value, if it is a valid weight. Raises ConfigError."""
    return float(_SETTINGS["memory_relevance_weight"].checked(value))


def strict_setting(name: str, value: object, label: str) -> Any:
    """The parsed setting. Raises ConfigError, which refers to it by the label."""
    declared = _SETTINGS[name]
    try:
        return _read(declared, str(value))
    except ValueError as error:
        # Lowercase, since the value is a text: "true or false".
        raise ConfigError(f"{label} must be {declared.values.expected.lower()}, got {value!r}") from error


def lenient_settings(
    root: Path, arguments: Mapping[str, str | None], environ: Mapping[str, str], warn: Warn
) -> dict[str, Any]:
    """All settings except the store, from arguments, environment or project. Invalid ones get their default."""
    project = _front_matter(root / LOCAL_FILE, warn)
    settings: dict[str, Any] = {}
    for name, declared in _SETTINGS.items():
        if declared is _STORE:
            continue
        text = arguments.get(name)
        if text is None:
            text = environ.get(declared.variable) or project.get(name)
        try:
            settings[name] = declared.default if text is None else _read(declared, text)
        except ValueError:
            warn(f"Invalid {_LABELS.get(name, name)} '{text}', using default {str(declared.default).lower()}")
            settings[name] = declared.default
    return settings


def global_store(folder: str | None, environ: Mapping[str, str]) -> Path | None:
    """The folder with shared lessons: the given one, else that of the environment, else the default."""
    try:
        return Path(folder or environ.get(_STORE.variable) or STORE).expanduser()
    except RuntimeError:
        # The user has no home directory.
        return None


def _read(declared: Setting, text: str) -> Any:
    return declared.checked(declared.values.parse(text.strip()))


def _front_matter(path: Path, warn: Warn) -> dict[str, str]:
    """The non-empty fields in the front matter of a file."""
    try:
        if not path.exists():
            return {}
        front = _FRONT_MATTER.match(file_text(path))
    except (ValueError, OSError) as error:
        warn(f"{path} {error}")
        return {}
    fields = (line.partition("#")[0].partition(":") for line in (front[1] if front else "").split("\n"))
    return {name.strip(): text for name, _, value in fields if (text := value.strip(" \t\"'"))}
