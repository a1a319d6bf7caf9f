"""The command and its sub-commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_group

from langgraph_scrum_master.cli.examples import examples_for
from langgraph_scrum_master.cli.fast_path import run_fast_path
from langgraph_scrum_master.cli.logs import show_warnings
from langgraph_scrum_master.cli.settings import defaults, settings, warn_about_unknown_variables
from langgraph_scrum_master.cli.terminal import echo, narrow_width
from langgraph_scrum_master.errors import ConfigError, ScrumMasterError
from langgraph_scrum_master.text.sanitize import visible

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
"""The module of each command. It defines a function or a Typer app of the command's name."""

PLUG_INS = "langgraph_scrum_master.commands"
"""The entry-point group of other packages' commands: a function is a command, a Typer app a group of commands."""

REPRODUCIBLE = ("replay", "report", "inspect")
"""Commands whose output depends only on the source: the project's memory is not their default."""


_INDENT = 8
"""The columns before the meaning of an option on narrow terminals."""


class Commands(Mapping[str, Any]):
    """The commands, each imported on first use, so that fast commands do not pay for the imports of others.

    Entry points are read only for names that are not built in, and to list all commands.
    """

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            return _load(_plug_ins()[name])
        made = getattr(import_module(f"langgraph_scrum_master.cli.{COMMANDS[name]}"), name)
        return _with_help(_command(made, name), name)

    def __iter__(self) -> Iterator[str]:
        return iter((*COMMANDS, *_loadable_plug_ins()))

    def __len__(self) -> int:
        return len((*COMMANDS, *_loadable_plug_ins()))


def _command(made: Any, name: str) -> Any:
    holder = typer.Typer()
    if isinstance(made, typer.Typer):
        holder.add_typer(made, name=name)
    else:
        holder.command(name)(made)
    return get_group(holder).commands[name]


@cache
def _plug_ins() -> dict[str, EntryPoint]:
    """The commands of other packages by name. Built-in commands take precedence."""
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=PLUG_INS) if each.name not in COMMANDS}


@cache
def _loadable_plug_ins() -> tuple[str, ...]:
    """The names of the plug-ins that load. The others are reported on standard error."""
    names = []
    for name, each in _plug_ins().items():
        try:
            _load(each)
            names.append(name)
        except ConfigError as error:
            echo(f"scrum-master: {error}", err=True)
    return tuple(names)


@cache
def _load(plug_in: EntryPoint) -> Any:
    try:
        made = plug_in.load()
        if not callable(made):
            raise TypeError(f"expected a function or a Typer app, got {made!r}")
        return _command(made, plug_in.name)
    # Importing another package may raise anything, even SystemExit.
    except (Exception, SystemExit) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"the command {plug_in.name!r} ({plug_in.value}) cannot be loaded: {why}") from error


def _with_help(command: Any, path: str) -> Any:
    """Add examples to the help of a command and its sub-commands, and join wrapped lines, which typer does not."""
    command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", command.help or "")
    command.epilog = examples_for(path)
    if narrow_width() is not None:
        _lay_out_narrowly(command)
    for name, each in getattr(command, "commands", {}).items():
        _with_help(each, f"{path} {name}")
    return command


def _lay_out_narrowly(command: Any) -> None:
    """Print help as plain lines, and each meaning below its option: panels would squeeze columns to a few letters."""
    context: Any = command.context_class

    class Formatter(context.formatter_class):  # type: ignore[misc]
        def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
            super().write_dl(rows, _INDENT, col_spacing)

    command.context_class = type("NarrowContext", (context,), {"formatter_class": Formatter})
    command.rich_markup_mode = None
    # Lines of one paragraph are joined.
    command.epilog = command.epilog and command.epilog.replace("\n", "\n\n")


class _Group(TyperGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = Commands()
        if (width := narrow_width()) is not None:
            _lay_out_narrowly(self)
            self.context_settings = {**self.context_settings, "terminal_width": width}

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _visible_errors():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _visible_errors():
            return super().invoke(ctx)


@contextmanager
def _visible_errors() -> Iterator[None]:
    """Remove control characters from the messages of typer's errors, which quote arguments and names of files."""
    try:
        yield
    except Exception as error:
        # Typer has no public base class for its errors.
        if hasattr(error, "format_message") and isinstance(message := getattr(error, "message", None), str):
            error.message = visible(message)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    name="scrum-master",
    cls=_Group,
    no_args_is_help=True,
    epilog=examples_for(""),
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        from langgraph_scrum_master.cli.version import version

        version()
        raise typer.Exit


@app.callback()
def callback(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(envvar="SCRUM_MASTER_CONFIG", help="Settings file. Default: the nearest scrum-master.toml."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the installed version.")
    ] = False,
) -> None:
    """The scrum master for a team of LangGraph agents: detects who lacks context, finds it, and explains why."""
    warn_about_unknown_variables()
    context.obj = settings(config)
    if name := context.invoked_subcommand:
        excluded = ("memory_path",) if name in REPRODUCIBLE else ()
        given = {each: value for each, value in context.obj.items() if each not in excluded}
        context.default_map = {name: defaults(Commands()[name], given)}


def main() -> None:
    """Run the command line. Known errors are printed as one line, with exit code 2."""
    try:
        if not run_fast_path(sys.argv[1:]):
            show_warnings()
            app()
    except SystemExit as end:
        raise SystemExit(1 if end.code == 2 and _is_hook() else end.code) from None
    except ScrumMasterError as error:
        _give_up(str(error))
    # For example a full disk, or missing permissions.
    except OSError as error:
        _give_up(f"{error.strerror or type(error).__name__}: {error.filename!r}" if error.filename else str(error))


def _give_up(why: str) -> NoReturn:
    echo(f"scrum-master: {why}", err=True)
    raise SystemExit(0 if _is_hook() else 2) from None


def _is_hook() -> bool:
    """Whether a coding agent runs a hook: it would treat exit code 2 as an order to stop."""
    return "hook" in sys.argv[1:4] and not {"install", "uninstall"} & set(sys.argv)
