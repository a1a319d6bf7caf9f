"""The command and its sub-commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from langgraph_scrum_master.cli.config import config
from langgraph_scrum_master.cli.detect import detect
from langgraph_scrum_master.cli.experience import experience
from langgraph_scrum_master.cli.index import index, premortem, remember
from langgraph_scrum_master.cli.knowledge import knowledge
from langgraph_scrum_master.cli.memory import memory
from langgraph_scrum_master.cli.run import run
from langgraph_scrum_master.cli.settings import defaults, settings
from langgraph_scrum_master.cli.version import version
from langgraph_scrum_master.errors import ScrumMasterError

app = typer.Typer(
    name="scrum-master",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def configured(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(envvar="SCRUM_MASTER_CONFIG", help="The settings; else the nearest scrum-master.toml."),
    ] = None,
) -> None:
    """The scrum master of a team of LangGraph agents: notices who lacks context, finds it, and says why."""
    context.obj = settings(config)
    context.default_map = defaults(context.command, context.obj)


app.command()(run)
app.command()(detect)
app.add_typer(memory, name="memory")
app.add_typer(index, name="index")
app.add_typer(knowledge, name="knowledge")
app.command()(remember)
app.add_typer(experience, name="experience")
app.command()(premortem)
app.add_typer(config, name="config")
app.command()(version)


def main() -> None:
    """Run the command; what goes wrong in a way we know is told in one line, with exit code 2."""
    try:
        app()
    except ScrumMasterError as error:
        typer.echo(f"scrum-master: {error}", err=True)
        raise SystemExit(2) from None
