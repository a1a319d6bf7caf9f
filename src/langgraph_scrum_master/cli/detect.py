"""`scrum-master detect`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from langgraph_scrum_master.cli.settings import scrum_master


def detect(
    context: typer.Context,
    state: Annotated[
        Path,
        typer.Argument(metavar="STATE.json", help="A graph's state, a snapshot or messages as JSON; - reads stdin."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the gaps as a JSON array.")] = False,
) -> None:
    """Say which agents lack context in a saved state, and what shows it.

    The state is what a graph holds: `messages` as LangChain or OpenAI writes them, and any of the keys that the scrum
    master reads. A snapshot and the messages of other frameworks are read as by `scrum-master replay`. What
    `scrum-master config show` shows holds here too.
    """
    from langgraph_scrum_master.cli.show import gap_panel
    from langgraph_scrum_master.team.record.files import state_in

    gaps = scrum_master(context.obj).detect(
        state_in(state, typer.get_text_stream("stdin").read() if str(state) == "-" else None)
    )
    if as_json:
        typer.echo(json.dumps([gap.to_dict() for gap in gaps], indent=2))
        return
    console = Console()
    for gap in gaps:
        console.print(gap_panel(gap))
    if not gaps:
        console.print("No gap: nobody lacks context.")
