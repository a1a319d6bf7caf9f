"""`scrum-master version`"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version as installed_version

import typer

from langgraph_scrum_master.cli.memory import AsJson


def version(as_json: AsJson = False) -> None:
    """Print the installed version. With --json also the versions of Python and LangGraph."""
    own = installed_version("langgraph-scrum-master")
    if as_json:
        others = {"langgraph": installed_version("langgraph"), "python": platform.python_version()}
        typer.echo(json.dumps({"langgraph-scrum-master": own, **others}))
    else:
        typer.echo(own)
