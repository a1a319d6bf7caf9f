"""The command and its sub-commands."""

from __future__ import annotations

import typer

from langgraph_scrum_master.cli.version import version

app = typer.Typer(
    name="scrum-master",
    help="The scrum master of a team of LangGraph agents: notices who lacks context, finds it, and says why.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.command()(version)


def main() -> None:
    """Run the command."""
    app()
