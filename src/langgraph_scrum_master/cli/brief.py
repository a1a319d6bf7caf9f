"""`scrum-master brief`"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from langgraph_scrum_master.doors.session_briefing import Briefing, SessionBriefing

Root = Annotated[str, typer.Option(metavar="FOLDER", help="The project.")]
Store = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="The lessons of all projects. [~/.scrum-master/knowledge-bank]")
]


def brief(
    project_root: Root = ".",
    limit: Annotated[str | None, typer.Option(metavar="N", help="Lessons at most. [20]")] = None,
    global_store: Store = None,
    relevance_weight: Annotated[
        str | None, typer.Option(metavar="WEIGHT", help="From 0, by prominence alone, to 1, by relevance alone. [0.6]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the lessons that serve a session in this project, as Markdown.

    What cannot be read, and settings that cannot work, are told on standard error; the rest goes on, with exit code 0.
    """
    briefing = SessionBriefing.from_env(
        project_root, global_store=global_store, limit=limit, relevance_weight=relevance_weight
    ).brief()
    tell(briefing)
    if as_json:
        # Quicker than its `to_dict`, and the same.
        typer.echo(json.dumps(asdict(briefing), indent=2))
    elif briefing.text:
        # As bytes: the terminal's encoding may lack a character.
        typer.echo(briefing.text.encode())


def tell(briefing: Briefing) -> None:
    """Print a briefing's warnings on standard error."""
    for warning in briefing.warnings:
        typer.echo(f"scrum-master: {warning}", err=True)
