"""`scrum-master detect`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from langgraph_scrum_master.errors import DecodeError


def detect(
    state: Annotated[
        Path, typer.Argument(metavar="STATE.json", help="A graph's state as a JSON object; - reads stdin.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the gaps as a JSON array.")] = False,
) -> None:
    """Say which agents lack context in a saved state, and what shows it.

    The state is what a graph holds: `messages` as LangChain or OpenAI writes them, and any of the keys that the scrum
    master reads. The environment's SCRUM_MASTER_* variables hold here too.
    """
    from langgraph_scrum_master.cli.show import gap_panel
    from langgraph_scrum_master.scrum_master import ScrumMaster

    gaps = ScrumMaster.from_env().detect(_read(state))
    if as_json:
        typer.echo(json.dumps([gap.to_dict() for gap in gaps], indent=2))
        return
    console = Console()
    for gap in gaps:
        console.print(gap_panel(gap))
    if not gaps:
        console.print("No gap: nobody lacks context.")


def _read(path: Path) -> dict[str, Any]:
    try:
        text = typer.get_text_stream("stdin").read() if str(path) == "-" else path.read_text(encoding="utf-8-sig")
        state = json.loads(text)
    except OSError as error:
        raise DecodeError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{str(path)!r} is not JSON: {error}") from error
    if isinstance(state, list):
        return {"messages": state}
    if not isinstance(state, dict):
        raise DecodeError(f"{str(path)!r} must hold a JSON object (a state) or array (messages), got {state!r:.80}")
    return state
