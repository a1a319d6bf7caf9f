"""`scrum-master config`"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from langgraph_scrum_master.briefing.settings import LOCAL_FILE, strict_setting
from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.settings import (
    BRIEFING_SETTINGS,
    DECLARED,
    FILE,
    HOOK_SETTINGS,
    Settings,
    SettingValue,
    scrum_master,
)
from langgraph_scrum_master.cli.settings_template import briefing_template, toml_template
from langgraph_scrum_master.cli.tables import folding_table
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.errors import ConfigError

config = typer.Typer(no_args_is_help=True, help="Show the settings, or write a file of them.")


@config.command()
def show(context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the value of every setting and where it comes from. An invalid value ends with exit code 2."""
    rows = _rows(context.obj)
    if as_json:
        echo(json.dumps({name: {"value": value, "from": origin} for name, value, origin in rows}, indent=2))
        return
    table = folding_table("setting", "value", "from")
    for name, value, origin in rows:
        where = os.path.relpath(origin) if os.path.isfile(origin) else origin
        table.add_row(name, Text(json.dumps(value)), Text(where, style="dim" if origin == "default" else ""))
    Console().print(table)


@config.command()
def write(
    briefing: Annotated[
        bool, typer.Option("--briefing", help=f"Write the project's {LOCAL_FILE.as_posix()} instead.")
    ] = False,
    folder: Annotated[Path, typer.Option("--folder", metavar="FOLDER", help="The project folder.")] = Path(),
    stdout: Annotated[bool, typer.Option("--print", help="Print the file instead of writing it.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a settings file with the meaning and the default of every setting, commented out.

    An existing file is only overwritten with --force.
    """
    text = briefing_template() if briefing else toml_template()
    if stdout:
        echo(text.rstrip("\n"))
        return
    file = folder / (LOCAL_FILE if briefing else FILE)
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        message = f"{str(file)!r} exists: pass --force to overwrite it, or --print to see what would be written"
        raise ConfigError(message) from error
    echo(f"Wrote {file}.")


def _rows(given: Settings) -> list[tuple[str, object, str]]:
    injection = scrum_master(given).config.to_dict()
    values = {name: injection[name] if name in injection else _value(name, given.get(name)) for name in DECLARED}
    return [(name, value, given[name].origin if name in given else "default") for name, value in values.items()]


def _value(name: str, given: SettingValue | None) -> object:
    """The value of a setting that is not a field of `InjectionConfig`."""
    if given is None:
        return DECLARED[name].default
    if name in HOOK_SETTINGS:
        setting = DECLARED[name]
        return setting.checked(setting.parsed(given.value) if given.from_environment else given.value)
    if name not in BRIEFING_SETTINGS:
        return given.value
    return strict_setting(name, given.value, given.origin if given.from_environment else name)
