"""`scrum-master run`"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.cli.writing import writing

WIDTH = 118


def run(
    svg: Annotated[Path | None, typer.Option(help="Also write the output to this SVG file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print both runs as JSON.")] = False,
) -> None:
    """Run the example team without and with its scrum master, and show the difference.

    The agents' models are scripted and the memory is in-process: no network, no keys, no files.
    """
    from langgraph_scrum_master.cli import show
    from langgraph_scrum_master.cli.demo import FROZEN, load_team, play

    console = Console(record=svg is not None, width=WIDTH if svg else None, stderr=as_json, quiet=as_json and not svg)
    with console.status("Filling the team's memory …"):
        from langgraph_scrum_master.memory.chroma import ChromaMemory

        team = load_team()
        memory = asyncio.run(team.remember(ChromaMemory()))
    with console.status("Running the team without and with its scrum master …"):
        alone = play(team, None)
        helped = play(team, team.scrum_master(memory, clock=lambda: FROZEN))
    show.comparison(console, team.TASK, alone, helped)
    if svg is not None:
        with writing(svg):
            svg.write_text(show.svg(console), encoding="utf-8")
    if as_json:
        echo(json.dumps({"task": team.TASK, "without": alone.to_dict(), "with": helped.to_dict()}, indent=2))
    if alone.passed or not helped.passed:
        raise typer.Exit(1)
