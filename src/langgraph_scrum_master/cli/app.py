"""The command and its sub-commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_group

from langgraph_scrum_master.cli.examples import below
from langgraph_scrum_master.cli.fast_path import quickly
from langgraph_scrum_master.cli.settings import defaults, settings, warn_of_strangers
from langgraph_scrum_master.errors import ConfigError, ScrumMasterError

COMMANDS = {
    "run": "run",
    "detect": "detect",
    "snapshot": "snapshot",
    "replay": "replay",
    "train": "train",
    "report": "report",
    "inspect": "inspect",
    "memory": "memory",
    "index": "index",
    "remember": "index",
    "experience": "experience",
    "assemble": "index",
    "premortem": "index",
    "knowledge": "knowledge",
    "brief": "brief",
    "records": "records",
    "hook": "hook",
    "mcp": "mcp",
    "config": "config",
    "version": "version",
}
"""The file of each command: a function or a group of its name."""

PLUG_INS = "langgraph_scrum_master.commands"
"""The entry-point group of other packages' commands: a function is a command, a Typer app a group of commands."""

PURE = ("replay", "report", "inspect")
"""Those that give the same for the same source: only a memory that is named is read."""


class Commands(Mapping[str, Any]):
    """The commands, each loaded when it is asked for: one that must be quick does not wait for what others need.

    Other packages are looked at only for a name that is not ours, and for a list of all commands.
    """

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            return _loaded(_plug_ins()[name])
        made = getattr(import_module(f"langgraph_scrum_master.cli.{COMMANDS[name]}"), name)
        return _helpful(_command(made, name), name)

    def __iter__(self) -> Iterator[str]:
        return iter((*COMMANDS, *_sound_plug_ins()))

    def __len__(self) -> int:
        return len((*COMMANDS, *_sound_plug_ins()))


def _command(made: Any, name: str) -> Any:
    holder = typer.Typer()
    if isinstance(made, typer.Typer):
        holder.add_typer(made, name=name)
    else:
        holder.command(name)(made)
    return get_group(holder).commands[name]


@cache
def _plug_ins() -> dict[str, EntryPoint]:
    """The commands of other packages by name; ours keep their names."""
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=PLUG_INS) if each.name not in COMMANDS}


@cache
def _sound_plug_ins() -> tuple[str, ...]:
    """The names of those that can be loaded; each other one is reported on standard error."""
    sound = []
    for name, each in _plug_ins().items():
        try:
            _loaded(each)
            sound.append(name)
        except ConfigError as error:
            typer.echo(f"scrum-master: {error}", err=True)
    return tuple(sound)


@cache
def _loaded(plug_in: EntryPoint) -> Any:
    try:
        made = plug_in.load()
        if not callable(made):
            raise TypeError(f"expected a function or a Typer app, got {made!r}")
        return _command(made, plug_in.name)
    # Another package's import may raise anything, also an exit.
    except (Exception, SystemExit) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"the command {plug_in.name!r} ({plug_in.value}) cannot be loaded: {why}") from error


def _helpful(command: Any, path: str) -> Any:
    """The command, and those below it, with calls to copy, and with help that fills the line as typer does not."""
    command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", command.help or "")
    command.epilog = below(path)
    for name, each in getattr(command, "commands", {}).items():
        _helpful(each, f"{path} {name}")
    return command


class _Group(TyperGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = Commands()


app = typer.Typer(
    name="scrum-master",
    cls=_Group,
    no_args_is_help=True,
    epilog=below(""),
    pretty_exceptions_enable=False,
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        from langgraph_scrum_master.cli.version import version

        version()
        raise typer.Exit


@app.callback()
def configured(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(envvar="SCRUM_MASTER_CONFIG", help="The settings; else the nearest scrum-master.toml."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Print the installed version.")
    ] = False,
) -> None:
    """The scrum master of a team of LangGraph agents: notices who lacks context, finds it, and says why."""
    warn_of_strangers()
    context.obj = settings(config)
    if name := context.invoked_subcommand:
        out = ("memory_path",) if name in PURE else ()
        given = {each: value for each, value in context.obj.items() if each not in out}
        context.default_map = {name: defaults(Commands()[name], given)}


def main() -> None:
    """Run the command; what goes wrong in a way we know is told in one line, with exit code 2."""
    try:
        if not quickly(sys.argv[1:]):
            app()
    except SystemExit as end:
        raise SystemExit(1 if end.code == 2 and _is_hook() else end.code) from None
    except ScrumMasterError as error:
        _give_up(str(error))
    # The disk is full, or a file is somebody else's.
    except OSError as error:
        _give_up(f"{error.strerror or type(error).__name__}: {error.filename!r}" if error.filename else str(error))


def _give_up(why: str) -> NoReturn:
    typer.echo(f"scrum-master: {why}", err=True)
    raise SystemExit(0 if _is_hook() else 2) from None


def _is_hook() -> bool:
    """Whether a coding agent calls: it takes a hook's exit code 2 as an order to stop, which a mistake is not."""
    return "hook" in sys.argv[1:4]
