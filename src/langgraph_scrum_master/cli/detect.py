"""`scrum-master detect`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.settings import scrum_master
from langgraph_scrum_master.cli.source import Subgraph, Thread, print_source
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.errors import DecodeError

if TYPE_CHECKING:
    from langgraph_scrum_master.replay import Problem


def detect(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A file or folder of states, snapshots or messages, a checkpoint database (SQLite, PostgreSQL), "
            "or - for a state on standard input.",
        ),
    ],
    thread: Thread = None,
    subgraph: Subgraph = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the gaps as a JSON array.")] = False,
) -> None:
    """Show which agents lack context in the latest state of each thread, with the evidence.

    A state is a graph's state: `messages` in LangChain or OpenAI format, and any other keys that the scrum master
    reads. Sources are those of `scrum-master replay`. The settings that `scrum-master config show` prints apply.
    """
    states, problems, read = _states(source, thread, subgraph)
    master = scrum_master(context.obj)
    gaps = {name: master.detect(state) for name, state in states.items()}
    for problem in problems:
        echo(f"scrum-master: {problem.error}", err=True)
    if as_json:
        echo(f"scrum-master: {read}", err=True)
        found = [{**gap.to_dict(), "where": name} for name, each in gaps.items() for gap in each]
        echo(json.dumps(found, indent=2))
    else:
        print_source(read)
        _print(gaps)


def _states(source: str, thread: str | None, subgraph: str | None) -> tuple[dict[str, Any], list[Problem], str]:
    from langgraph_scrum_master.replay.inventory import counted
    from langgraph_scrum_master.replay.loading import latest_states
    from langgraph_scrum_master.team.record.files import states_in

    if source == "-":
        found = states_in(Path(source), typer.get_text_stream("stdin").read())
        return dict(found), [], f"standard input: {counted(len(found), 'state')}"
    states, problems, read = latest_states(source, thread, subgraph)
    if not states and problems:
        raise DecodeError(problems[0].error)
    return states, problems, read


def _print(gaps: dict[str, Any]) -> None:
    from langgraph_scrum_master.cli.show import gap_panel

    console = Console()
    for name, found in gaps.items():
        for gap in found:
            console.print(gap_panel(gap, name if len(gaps) > 1 else ""))
    if not any(gaps.values()):
        console.print("No gap: nobody lacks context.")
