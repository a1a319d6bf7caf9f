"""Settings from the environment and `scrum-master.toml`, with the origin of each.

Flags win over the environment, the environment over the file. Every command reads its settings, even those that must
start fast, so this module imports nothing heavy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from typer.core import TyperGroup

from langgraph_scrum_master._internal.files import LARGEST_DOCUMENT, read_text
from langgraph_scrum_master._internal.settings import ENV_PREFIX, Setting, settings_of
from langgraph_scrum_master.briefing.settings import BriefingConfig
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.config import HookConfig, InjectionConfig, PartsConfig
from langgraph_scrum_master.errors import ConfigError

if TYPE_CHECKING:
    from langgraph_scrum_master.scrum_master import ScrumMaster

FILE = "scrum-master.toml"
"""Searched for in the working directory and its parents."""

CONFIGS = (InjectionConfig, PartsConfig, BriefingConfig, HookConfig)
"""The dataclasses that declare settings."""

DECLARED: dict[str, Setting] = {each.name: each for config in CONFIGS for each in settings_of(config)}
"""All settings, by name."""

BRIEFING_SETTINGS = frozenset(each.name for each in settings_of(BriefingConfig))
"""The names of the settings of session briefings."""

HOOK_SETTINGS = frozenset(each.name for each in settings_of(HookConfig))
"""The names of the settings of hooks."""

STORE_SETTING = "global_store"
"""The setting of briefings that a project's own file cannot have."""

OTHERS = frozenset(DECLARED) - {each.name for each in settings_of(InjectionConfig)}
"""The names of the settings that are not fields of `InjectionConfig`."""

OPTIONS = {"memory_path": ("memory", "folder")}
"""Settings whose command parameters have other names."""


class SettingValue(NamedTuple):
    """The value of a setting and where it comes from."""

    value: Any
    origin: str
    """The file or the environment variable."""

    @property
    def from_environment(self) -> bool:
        """Whether it comes from an environment variable."""
        return self.origin.startswith(ENV_PREFIX)


Settings = Mapping[str, SettingValue]


def settings(
    file: Path | None, environ: Mapping[str, str] = os.environ, folder: Path | None = None
) -> dict[str, SettingValue]:
    """The settings of the file, else of the nearest `scrum-master.toml`, overridden by the environment."""
    file = file or _nearest((folder or Path.cwd()).resolve())
    from_file = {name: SettingValue(value, str(file)) for name, value in _read(file).items()} if file else {}
    return from_file | {
        name: SettingValue(environ[each.variable], each.variable)
        for name, each in DECLARED.items()
        if environ.get(each.variable)
    }


def warn_about_unknown_variables(environ: Mapping[str, str] = os.environ) -> None:
    """Warn on standard error about variables with our prefix that are not settings."""
    known = [each.variable for each in DECLARED.values()] + [f"{ENV_PREFIX}CONFIG"]
    for name in sorted(name for name in environ if name.startswith(ENV_PREFIX) and environ[name] and name not in known):
        near = _nearest_name(name.removeprefix(ENV_PREFIX), [each.removeprefix(ENV_PREFIX) for each in known])
        hint = f"did you mean {ENV_PREFIX}{near}?" if near else "`scrum-master config show` lists all settings"
        echo(f"scrum-master: {name} is not a setting and is ignored: {hint}", err=True)


def _nearest_name(name: str, known: Sequence[str]) -> str:
    """The closest known name, or an empty text."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, 1, 0.7)), "")


def defaults(command: Any, given: Settings) -> dict[str, Any]:
    """The settings as defaults of the options of a command and its sub-commands."""
    named = {option: each.value for name, each in given.items() for option in OPTIONS.get(name, (name,))}
    own = {option.name: named[option.name] for option in command.params if option.name in named}
    below = command.commands.items() if isinstance(command, TyperGroup) else ()
    return own | {name: defaults(each, given) for name, each in below}


def scrum_master(given: Settings) -> ScrumMaster:
    """A scrum master with these settings. Opens nothing yet."""
    from langgraph_scrum_master.scrum_master import ScrumMaster

    values = {
        name: each.value
        for name, each in given.items()
        if not each.from_environment and name not in BRIEFING_SETTINGS | HOOK_SETTINGS
    }
    return ScrumMaster.from_env(os.environ, **values)


def variables(folder: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment, completed with the briefing settings of a folder's `scrum-master.toml`."""
    given = settings(None, environ, folder)
    briefing = {DECLARED[name].variable: str(given[name].value) for name in BRIEFING_SETTINGS if name in given}
    return briefing | dict(environ)


def _nearest(folder: Path) -> Path | None:
    # `os.path.isfile` is False for unreadable directories, where `Path.is_file` raises.
    return next((path for each in (folder, *folder.parents) if os.path.isfile(path := each / FILE)), None)


def toml(file: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    import tomllib

    try:
        return tomllib.loads(read_text(file, LARGEST_DOCUMENT))
    except OSError as error:
        raise ConfigError(f"cannot read {str(file)!r}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(file)!r} is not TOML: {error}") from error


def _read(file: Path) -> dict[str, Any]:
    values = toml(file)
    if unknown := sorted(values.keys() - DECLARED.keys()):
        known = sorted(DECLARED)
        suggestions = [near for name in unknown if (near := _nearest_name(name, known))]
        which = f"did you mean {' and '.join(suggestions)}? Settings" if suggestions else "settings"
        raise ConfigError(f"{str(file)!r} has unknown settings {unknown}: {which} are {known}")
    texts = {name: value for name, value in values.items() if DECLARED[name].path and isinstance(value, str)}
    return values | {name: str(file.parent / text) for name, text in texts.items()}
