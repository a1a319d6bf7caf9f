"""The command and its sub-commands."""

from __future__ import annotations

import sys

import typer

from langgraph_scrum_master.cli.detect import detect
from langgraph_scrum_master.cli.experience import experience
from langgraph_scrum_master.cli.hook import hook
from langgraph_scrum_master.cli.index import index, premortem, remember
from langgraph_scrum_master.cli.mcp import mcp
from langgraph_scrum_master.cli.memory import memory
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
app.add_typer(hook, name="hook")
app.command()(mcp)
app.command()(version)


def main() -> None:
    """Run the command; what goes wrong in a way we know is told in one line, with exit code 2."""
    try:
        app()
    except SystemExit as end:
        raise SystemExit(_refusal() if end.code == 2 else end.code) from None
    except ScrumMasterError as error:
        typer.echo(f"scrum-master: {error}", err=True)
        raise SystemExit(_refusal()) from None


def _refusal() -> int:
    """Exit code 2, or 1 of a hook: a coding agent takes a hook's 2 as an order to stop, which a mistake is not."""
    return 1 if "hook" in sys.argv[1:4] else 2
