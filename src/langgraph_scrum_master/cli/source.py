"""The source that detect, replay, inspect, report and snapshot take, and how they name it."""

from __future__ import annotations

from typing import Annotated

import typer

from langgraph_scrum_master.cli.console import Console

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file or folder of snapshots, states or messages, or a checkpoint database (SQLite, PostgreSQL).",
    ),
]
Thread = Annotated[
    str | None,
    typer.Option(help="Only this thread. Default: all; of a database, replay and inspect read the latest 50."),
]
Subgraph = Annotated[
    str | None,
    typer.Option(metavar="NODE", help="For a database: the steps of the subgraph in this node, such as team/dev."),
]


def print_source(text: str) -> None:
    """Print what was read, above what was made from it."""
    Console(markup=False, highlight=False).print(text, style="dim")
