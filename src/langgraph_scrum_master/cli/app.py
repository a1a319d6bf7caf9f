"""The command and its sub-commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from langgraph_scrum_master.cli.quick import quickly
from langgraph_scrum_master.errors import ScrumMasterError

COMMANDS = {
    "run": "run",
    "detect": "detect",
    "memory": "memory",
    "index": "index",
    "remember": "index",
    "experience": "experience",
    "premortem": "index",
    "brief": "brief",
    "hook": "hook",
    "version": "version",
}
"""The file of each command: a function or a group of its name."""


class Commands(Mapping[str, Any]):
    """The commands, each loaded when it is asked for: one that must be quick does not wait for what others need."""

    def __getitem__(self, name: str) -> Any:
        made = getattr(import_module(f"langgraph_scrum_master.cli.{COMMANDS[name]}"), name)
        holder = typer.Typer()
        if isinstance(made, typer.Typer):
            holder.add_typer(made, name=name)
        else:
            holder.command(name)(made)
        return get_group(holder).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(TyperGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = Commands()


app = typer.Typer(
    name="scrum-master",
    cls=_Group,
    help="The scrum master of a team of LangGraph agents: notices who lacks context, finds it, and says why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
# With a callback it is a group, whatever it finds registered.
app.callback()(lambda: None)


def main() -> None:
    """Run the command; what goes wrong in a way we know is told in one line, with exit code 2."""
    try:
        if not quickly(sys.argv[1:]):
            app()
    except ScrumMasterError as error:
        typer.echo(f"scrum-master: {error}", err=True)
        raise SystemExit(2) from None
