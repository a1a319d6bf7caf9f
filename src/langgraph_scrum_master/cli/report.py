"""`scrum-master report`"""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from langgraph_scrum_master.cli.memory import AsJson
from langgraph_scrum_master.cli.tables import folding

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="An audit log, a file or folder of snapshots, or a database of checkpoints (SQLite, PostgreSQL).",
    ),
]


def report(
    source: Source,
    thread: Annotated[str | None, typer.Option(help="Only this thread of a database or of snapshots.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what came of the gaps: who lacked context and why, what was given, and whether it was used.

    Nothing is looked for again: it is all from what was recorded. Used is what the agent's next turns take up; asked
    again, that the same need came up afterwards.
    """
    from langgraph_scrum_master.replay.report import COUNTS, report as reported

    found = reported(source, thread)
    if as_json:
        shown = {
            "rows": [row.to_dict() for row in found.rows],
            "total": found.total.to_dict(),
            "threads": found.threads,
        }
        typer.echo(json.dumps(shown, indent=2))
        return
    console = Console()
    if not found.rows:
        console.print("No gap was recorded.")
        return
    total = found.total
    # What never came is left out: the table must fit a terminal.
    counted = [name for name in COUNTS if name in ("gaps", "served") or getattr(total, name)]
    table = folding("agent", "reason", *(name.replace("_", " ") for name in counted))
    for row in (*found.rows, total):
        counts = (str(getattr(row, name)) for name in counted)
        table.add_row(Text(row.agent or "all"), Text(row.reason.replace("_", " ")), *counts)
    console.print(table)
    console.print(_sentence(total.gaps, found.threads, total.served, total.used, total.asked_again))


def _sentence(gaps: int, threads: int, served: int, used: int, again: int) -> str:
    where = f" in {threads} conversations" if threads > 1 else ""
    return f"{gaps} gaps{where}, {served} served; of these {used} used, {again} asked again."
