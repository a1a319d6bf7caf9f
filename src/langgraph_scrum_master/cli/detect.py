"""`scrum-master detect`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from langgraph_scrum_master.cli.settings import scrum_master
from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.record.files import read_json


def detect(
    context: typer.Context,
    state: Annotated[
        Path, typer.Argument(metavar="STATE.json", help="A graph's state as a JSON object; - reads stdin.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the gaps as a JSON array.")] = False,
) -> None:
    """Say which agents lack context in a saved state, and what shows it.

    The state is what a graph holds: `messages` as LangChain or OpenAI writes them, and any of the keys that the scrum
    master reads. What `scrum-master config show` shows holds here too.
    """
    from langgraph_scrum_master.cli.show import gap_panel

    gaps = scrum_master(context.obj).detect(_read(state))
    if as_json:
        typer.echo(json.dumps([gap.to_dict() for gap in gaps], indent=2))
        return
    console = Console()
    for gap in gaps:
        console.print(gap_panel(gap))
    if not gaps:
        console.print("No gap: nobody lacks context.")


def _read(path: Path) -> dict[str, Any]:
    state = read_json(path, typer.get_text_stream("stdin").read() if str(path) == "-" else None)
    if isinstance(state, list):
        return {"messages": state}
    if not isinstance(state, dict):
        raise DecodeError(f"{str(path)!r} must hold a JSON object (a state) or array (messages), got {state!r:.80}")
    return state
