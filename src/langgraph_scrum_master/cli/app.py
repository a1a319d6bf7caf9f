"""The command and its sub-commands."""

from __future__ import annotations

import typer

from langgraph_scrum_master.cli.detect import detect
from langgraph_scrum_master.cli.experience import experience
from langgraph_scrum_master.cli.index import index, premortem, remember
from langgraph_scrum_master.cli.memory import memory
from langgraph_scrum_master.cli.records import records
from langgraph_scrum_master.cli.run import run
from langgraph_scrum_master.cli.version import version
from langgraph_scrum_master.errors import ScrumMasterError

app = typer.Typer(
    name="scrum-master",
    help="The scrum master of a team of LangGraph agents: notices who lacks context, finds it, and says why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(run)
app.command()(detect)
app.add_typer(memory, name="memory")
app.add_typer(index, name="index")
app.command()(remember)
app.add_typer(experience, name="experience")
app.command()(premortem)
app.add_typer(records, name="records")
app.command()(version)


def main() -> None:
    """Run the command; what goes wrong in a way we know is told in one line, with exit code 2."""
    try:
        app()
    except ScrumMasterError as error:
        typer.echo(f"scrum-master: {error}", err=True)
        raise SystemExit(2) from None
