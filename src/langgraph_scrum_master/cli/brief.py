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
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.errors import ConfigError

Root = Annotated[str, typer.Option(metavar="FOLDER", help="The project folder.")]
Store = Annotated[
    str | None,
    typer.Option(metavar="FOLDER", help="Folder of lessons shared by all projects. [~/.scrum-master/knowledge-bank]"),
]


def brief(
    project_root: Root = ".",
    limit: Annotated[str | None, typer.Option(metavar="N", help="Maximum number of lessons. [20]")] = None,
    global_store: Store = None,
    relevance_weight: Annotated[
        str | None, typer.Option(metavar="WEIGHT", help="0 ranks by prominence only, 1 by relevance only. [0.6]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the lessons for a session in this project, as Markdown.

    Unreadable files and invalid settings are reported on standard error. The exit code is 0 all the same.
    """
    briefing = briefing_for(project_root, global_store, limit, relevance_weight)
    if as_json:
        # Same as `to_dict`, but faster.
        echo(json.dumps(asdict(briefing), indent=2))
    elif briefing.text:
        # Because the terminal's encoding may lack a character.
        echo(briefing.text, utf_8=True)
    elif not briefing.warnings:
        _warn(f"no lessons: {str(Path(project_root, BANK))!r} has none, or briefings are switched off")


def briefing_for(root: str, store: str | None = None, limit: str | None = None, weight: str | None = None) -> Briefing:
    """The briefing of a project. Problems with its settings or files are reported on standard error."""
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
    echo(f"scrum-master: {text}", err=True)
