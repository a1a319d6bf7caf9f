"""`scrum-master config`"""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from langgraph_scrum_master.cli.settings import OTHERS, PREFIX, Settings, scrum_master
from langgraph_scrum_master.cli.tables import folding

config = typer.Typer(no_args_is_help=True, help="Look at the settings.")


@config.command()
def show(context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Say what every setting is, and where it came from. A value that cannot work is told, with exit code 2."""
    rows = _rows(context.obj)
    if as_json:
        typer.echo(json.dumps({name: {"value": value, "from": origin} for name, value, origin in rows}, indent=2))
        return
    table = folding("setting", "value", "from")
    for name, value, origin in rows:
        where = os.path.relpath(origin) if os.path.isfile(origin) else origin
        table.add_row(name, Text(json.dumps(value)), Text(where, style="dim" if origin == "default" else ""))
    Console().print(table)


def _rows(given: Settings) -> list[tuple[str, object, str]]:
    from langgraph_scrum_master.briefing.settings import strict_setting

    knobs = scrum_master(given).config.to_dict()
    told_as = {name: each.origin if each.origin.startswith(PREFIX) else name for name, each in given.items()}
    others = {
        name: strict_setting(name, given[name].value, told_as[name]) if name in given else value
        for name, value in OTHERS.items()
    }
    return [
        (name, value, given[name].origin if name in given else "default") for name, value in (knobs | others).items()
    ]
