"""`scrum-master detect`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.settings import scrum_master
from langgraph_scrum_master.cli.terminal import echo


def detect(
    context: typer.Context,
    state: Annotated[
        Path,
        typer.Argument(
            metavar="STATE.json", help="A graph state, a snapshot or messages, as JSON. Use - for standard input."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the gaps as a JSON array.")] = False,
) -> None:
    """Show which agents lack context in a saved state, with the evidence.

    The state is a graph's state: `messages` in LangChain or OpenAI format, and any other keys that the scrum master
    reads. Snapshots and messages of other frameworks are accepted as in `scrum-master replay`. The settings that
    `scrum-master config show` prints apply.
    """
    from langgraph_scrum_master.cli.show import gap_panel
    from langgraph_scrum_master.team.record.files import state_in

    gaps = scrum_master(context.obj).detect(
        state_in(state, typer.get_text_stream("stdin").read() if str(state) == "-" else None)
    )
    if as_json:
        echo(json.dumps([gap.to_dict() for gap in gaps], indent=2))
        return
    console = Console()
    for gap in gaps:
        console.print(gap_panel(gap))
    if not gaps:
        console.print("No gap: nobody lacks context.")
