"""The short way into commands that must start at once.

To read a single option typer loads pydantic, which takes longer than all the rest of these commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from inspect import signature
from typing import get_args, get_type_hints

from langgraph_scrum_master.cli.settings import warn_of_strangers

_QUICK = {("brief",): "brief", ("hook", "session-start"): "session_start"}
"""The file of each such command, which has a function of its name."""


def quickly(arguments: Sequence[str]) -> bool:
    """Run the command, if it is one of these and its options are plain; whether that was so: all else is typer's."""
    for words, name in _QUICK.items():
        if tuple(arguments[: len(words)]) == words:
            command = getattr(import_module(f"langgraph_scrum_master.cli.{name}"), name)
            options = plain_options(command, arguments[len(words) :])
            if options is not None:
                warn_of_strangers()
                command(**options)
                return True
    return False


def plain_options(command: Callable[..., None], arguments: Sequence[str]) -> dict[str, str | bool] | None:
    """The command's options by parameter, if all are flags or texts after their full name; else None."""
    known = {flag: (name, kind) for name, kind, flag in _options(command)}
    found: dict[str, str | bool] = {}
    rest = list(arguments)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        name, kind = known.get(flag, ("", None))
        if kind is bool and not equals:
            found[name] = True
        elif kind in (str, str | None) and (equals or (rest and not rest[0].startswith("-"))):
            found[name] = value if equals else rest.pop(0)
        else:
            return None
    return found


def _options(command: Callable[..., None]) -> Iterator[tuple[str, object, str]]:
    """The name, the type and the flag of each option, as typer has them."""
    hints = get_type_hints(command, include_extras=True)
    for name in signature(command).parameters:
        kind, note = get_args(hints[name])
        # Beside a type, the first flag stands where a default would.
        own = note.default if isinstance(note.default, str) else None
        yield name, kind, own or f"--{name.replace('_', '-')}"
