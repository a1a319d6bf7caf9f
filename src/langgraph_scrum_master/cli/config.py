"""`scrum-master config`"""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer
from rich.text import Text

from langgraph_scrum_master.briefing.settings import strict_setting
from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.settings import (
    BRIEFING_SETTINGS,
    DECLARED,
    HOOK_SETTINGS,
    Settings,
    SettingValue,
    scrum_master,
)
from langgraph_scrum_master.cli.tables import folding_table
from langgraph_scrum_master.cli.terminal import echo

config = typer.Typer(no_args_is_help=True, help="Show the settings.")


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
