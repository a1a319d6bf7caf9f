"""Runs commands that must start fast without typer.

Typer imports pydantic to parse even a single option, which takes longer than these commands themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, get_args, get_type_hints

from langgraph_scrum_master._internal.settings import ENV_PREFIX
from langgraph_scrum_master.cli.settings import OPTIONS, settings, warn_about_unknown_variables
from langgraph_scrum_master.errors import ConfigError

_HOOKS = ("user-prompt-submit", "post-tool-failure", "stop", "pre-compact", "session-end")

_FAST_COMMANDS: dict[tuple[str, ...], tuple[str, str]] = {
    ("brief",): ("brief", "brief"),
    ("hook", "session-start"): ("session_start", "session_start"),
    **{("hook", name): ("hook", name.replace("-", "_")) for name in _HOOKS},
}
"""The module and the function of each such command."""

_KINDS: dict[object, Callable[[str], Any]] = {
    str: str,
    str | None: str,
    Path: Path,
    Path | None: Path,
    float: float,
    int: int,
}
"""How the text of an option becomes a value of its type."""


def run_fast_path(arguments: Sequence[str]) -> bool:
    """Run the command if it has a fast path and plain options. Returns False if typer must handle it."""
    for words, (module, name) in _FAST_COMMANDS.items():
        if tuple(arguments[: len(words)]) == words:
            command = getattr(import_module(f"langgraph_scrum_master.cli.{module}"), name)
            options = plain_options(command, arguments[len(words) :])
            if options is not None and not (module == "hook" and _has_settings(command)):
                warn_about_unknown_variables()
                command(**options)
                return True
    return False


def _has_settings(command: Callable[..., None]) -> bool:
    """Whether a setting is the default of an option, which typer applies."""
    if os.environ.get(f"{ENV_PREFIX}CONFIG"):
        return True
    try:
        given = settings(None)
    # Typer's way reports it.
    except ConfigError:
        return True
    names = {option for name in given for option in OPTIONS.get(name, (name,))}
    return not names.isdisjoint(signature(command).parameters)


def plain_options(command: Callable[..., None], arguments: Sequence[str]) -> dict[str, Any] | None:
    """The options by parameter name, or None unless all are flags, or values after a full option name."""
    known = {flag: (name, kind) for name, kind, flag in _options(command)}
    options: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        name, kind = known.get(flag, ("", None))
        if kind is bool and not equals:
            options[name] = True
        elif kind in _KINDS and (equals or rest) and not (text := value if equals else rest.pop(0)).startswith("-"):
            try:
                options[name] = _KINDS[kind](text)
            except ValueError:
                return None
        else:
            return None
    return options


def _options(command: Callable[..., None]) -> Iterator[tuple[str, object, str]]:
    """The name, type and flag of each option, as typer defines them."""
    hints = get_type_hints(command, include_extras=True)
    for name in signature(command).parameters:
        kind, note = get_args(hints[name])
        # With `Annotated`, typer stores the first flag as the default.
        own = note.default if isinstance(note.default, str) else None
        yield name, kind, own or f"--{name.replace('_', '-')}"
