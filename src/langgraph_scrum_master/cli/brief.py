"""`scrum-master brief`"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from langgraph_scrum_master.briefing.session import BANK, Briefing, SessionBriefing
from langgraph_scrum_master.cli.settings import variables
from langgraph_scrum_master.errors import ConfigError

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
    briefing = briefing_in(project_root, global_store, limit, relevance_weight)
    if as_json:
        # Quicker than its `to_dict`, and the same.
        typer.echo(json.dumps(asdict(briefing), indent=2))
    elif briefing.text:
        # As bytes: the terminal's encoding may lack a character.
        typer.echo(briefing.text.encode())
    elif not briefing.warnings:
        _warn(f"no lessons to tell: there are none in {str(Path(project_root, BANK))!r}, or briefings are switched off")


def briefing_in(root: str, store: str | None = None, limit: str | None = None, weight: str | None = None) -> Briefing:
    """The briefing of a project by its settings; what is wrong with them, or with its files, is told."""
    try:
        environ = variables(Path(root))
    except ConfigError as error:
        _warn(str(error))
        environ = dict(os.environ)
    briefing = SessionBriefing.from_env(
        root, global_store=store, limit=limit, relevance_weight=weight, environ=environ
    ).brief()
    for warning in briefing.warnings:
        _warn(warning)
    return briefing


def _warn(text: str) -> None:
    typer.echo(f"scrum-master: {text}", err=True)
