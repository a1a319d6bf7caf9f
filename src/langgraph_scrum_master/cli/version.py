"""`scrum-master version`"""

from __future__ import annotations

from importlib.metadata import version as installed_version

import typer


def version() -> None:
    """Print the installed version."""
    typer.echo(installed_version("langgraph-scrum-master"))
