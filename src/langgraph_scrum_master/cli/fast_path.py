"""Runs commands that must start fast without typer.

Typer imports pydantic to parse even a single option, which takes longer than these commands themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from inspect import signature
from typing import get_args, get_type_hints

from langgraph_scrum_master.cli.settings import warn_about_unknown_variables

_FAST_COMMANDS = {("brief",): "brief", ("hook", "session-start"): "session_start"}
"""The module of each such command. It defines a function of the same name."""


def run_fast_path(arguments: Sequence[str]) -> bool:
    """Run the command if it has a fast path and plain options. Returns False if typer must handle it."""
    for words, name in _FAST_COMMANDS.items():
        if tuple(arguments[: len(words)]) == words:
            command = getattr(import_module(f"langgraph_scrum_master.cli.{name}"), name)
            options = plain_options(command, arguments[len(words) :])
            if options is not None:
                warn_about_unknown_variables()
                command(**options)
                return True
    return False


def plain_options(command: Callable[..., None], arguments: Sequence[str]) -> dict[str, str | bool] | None:
    """The options by parameter name, or None unless all are flags, or texts after a full option name."""
    known = {flag: (name, kind) for name, kind, flag in _options(command)}
    options: dict[str, str | bool] = {}
    rest = list(arguments)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        name, kind = known.get(flag, ("", None))
        if kind is bool and not equals:
            options[name] = True
        elif kind in (str, str | None) and (equals or (rest and not rest[0].startswith("-"))):
            options[name] = value if equals else rest.pop(0)
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
