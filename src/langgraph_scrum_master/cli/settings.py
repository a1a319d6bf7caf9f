"""Settings from the environment and `scrum-master.toml`, and where each came from.

Flags win over the environment, the environment over the file. Nothing heavy is imported here: every command, also one
that must be quick, reads its settings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from typer.core import TyperGroup

from langgraph_scrum_master.errors import ConfigError

if TYPE_CHECKING:
    from langgraph_scrum_master.scrum_master import ScrumMaster

_FILE = "scrum-master.toml"
"""Looked for in the working folder and in those above it."""

PREFIX = "SCRUM_MASTER_"

KNOBS = (
    "max_context_items",
    "min_relevance_score",
    "max_context_size_bytes",
    "enabled_sources",
    "log_injections",
    "max_context_tokens",
    "deadline",
    "assistant_deadline",
    "view_window",
    "max_attempts",
    "deliver",
    "escalate",
    "user_questions",
    "assumptions",
    "architecture_path",
    "namespace",
    "requirements",
)
"""The fields of `InjectionConfig`."""

BRIEFING_SETTINGS: dict[str, object] = {
    "memory_injection_enabled": True,
    "memory_injection_limit": 20,
    "memory_relevance_weight": 0.6,
    "global_store": "~/.scrum-master/knowledge-bank",
}
"""The settings of session briefings, with what each is otherwise."""

OTHERS: dict[str, object] = {
    "memory_path": None,
    "audit_log": None,
    "snapshots": None,
    "redact": None,
    "asking": None,
    "embedder": "static",
    **BRIEFING_SETTINGS,
}
"""What else can be set, with what it is otherwise."""

PATHS = ("architecture_path", "memory_path", "audit_log", "snapshots", "asking", "global_store")
"""In a file, these are told from its folder on."""

OPTIONS = {"memory_path": ("memory", "folder")}
"""The parameters that are not called as their setting."""


class Given(NamedTuple):
    """A setting that somebody gave."""

    value: Any
    origin: str
    """The file, or the variable."""


Settings = Mapping[str, Given]


def settings(
    file: Path | None, environ: Mapping[str, str] = os.environ, folder: Path | None = None
) -> dict[str, Given]:
    """What the file says, or else the nearest `scrum-master.toml`, and what the environment says instead."""
    told = file or _nearest((folder or Path.cwd()).resolve())
    found = {name: Given(value, str(told)) for name, value in _read(told).items()} if told else {}
    variables = {name: f"{PREFIX}{name.upper()}" for name in (*KNOBS, *OTHERS)}
    return found | {
        name: Given(environ[variable], variable) for name, variable in variables.items() if environ.get(variable)
    }


def warn_of_strangers(environ: Mapping[str, str] = os.environ) -> None:
    """Say on standard error which variables look like settings and are none."""
    known = [f"{PREFIX}{name.upper()}" for name in ("config", *KNOBS, *OTHERS)]
    for name in sorted(name for name in environ if name.startswith(PREFIX) and environ[name] and name not in known):
        near = _nearest_name(name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in known])
        told = f"did you mean {PREFIX}{near}?" if near else "`scrum-master config show` shows all that there are"
        typer.echo(f"scrum-master: {name} is no setting, and is ignored: {told}", err=True)


def _nearest_name(name: str, known: Sequence[str]) -> str:
    """The one that was probably meant; empty if none is near."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, 1, 0.7)), "")


def defaults(command: Any, given: Settings) -> dict[str, Any]:
    """The settings as the defaults of a command's options, and of all its sub-commands'."""
    named = {option: each.value for name, each in given.items() for option in OPTIONS.get(name, (name,))}
    own = {option.name: named[option.name] for option in command.params if option.name in named}
    below = command.commands.items() if isinstance(command, TyperGroup) else ()
    return own | {name: defaults(each, given) for name, each in below}


def scrum_master(given: Settings) -> ScrumMaster:
    """The scrum master that the settings describe; nothing is opened yet."""
    from langgraph_scrum_master.scrum_master import ScrumMaster

    values = {
        name: each.value
        for name, each in given.items()
        if not each.origin.startswith(PREFIX) and name not in BRIEFING_SETTINGS
    }
    return ScrumMaster.from_env(os.environ, **values)


def variables(folder: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment, with the settings of a folder for session briefings as variables where it has none."""
    given = settings(None, environ, folder)
    return {f"{PREFIX}{name.upper()}": str(given[name].value) for name in BRIEFING_SETTINGS if name in given} | dict(
        environ
    )


def _nearest(folder: Path) -> Path | None:
    # Of a folder that may not be looked into, this says no.
    return next((path for each in (folder, *folder.parents) if os.path.isfile(path := each / _FILE)), None)


def toml(file: Path) -> dict[str, Any]:
    """What a TOML file holds."""
    import tomllib

    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read {str(file)!r}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(file)!r} is not TOML: {error}") from error


def _read(file: Path) -> dict[str, Any]:
    told = toml(file)
    if unknown := sorted(told.keys() - {*KNOBS, *OTHERS}):
        known = sorted((*KNOBS, *OTHERS))
        meant = [near for name in unknown if (near := _nearest_name(name, known))]
        which = f"did you mean {' and '.join(meant)}? Settings" if meant else "settings"
        raise ConfigError(f"{str(file)!r} sets {unknown}: {which} are {known}")
    paths = {name: str(file.parent / told[name]) for name in PATHS if isinstance(told.get(name), str)}
    return told | paths
