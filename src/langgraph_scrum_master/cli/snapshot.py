"""`scrum-master snapshot`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.memory import progress_bar
from langgraph_scrum_master.cli.replay import (
    empty_source_error,
    logging_to_stderr,
)
from langgraph_scrum_master.cli.source import Source, Subgraph, Thread
from langgraph_scrum_master.cli.tables import folding_table
from langgraph_scrum_master.cli.terminal import echo, echo_json
from langgraph_scrum_master.cli.writing import writing


def snapshot(
    source: Source,
    thread: Thread = None,
    subgraph: Subgraph = None,
    last: Annotated[bool, typer.Option("--last", help="Only the latest step.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write: .jsonl, or .json for one snapshot or a list. Default: standard output."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary, or the list of threads, as JSON.")
    ] = False,
) -> None:
    """Save the steps of a thread or a conversation as snapshots, one JSON object per line.

    A snapshot has the part of the state that the scrum master reads, and its recorded result. It can be replayed
    anywhere.
    """
    from langgraph_scrum_master.replay.databases import is_database
    from langgraph_scrum_master.replay.loading import runs
    from langgraph_scrum_master.team.record.files import Placed, write_snapshots
    from langgraph_scrum_master.team.record.snapshots import dumped

    if thread is None and is_database(source):
        _list_threads(source, as_json)
    notes, placed = list[str](), list[Placed]()
    with logging_to_stderr(), progress_bar("Reading", quiet=as_json) as progress:
        for run in runs(source, thread, subgraph, progress):
            notes.append(run.note)
            placed += run.snapshots
    for problem in filter(None, (*(each.problem for each in placed), *notes)):
        echo(f"scrum-master: {problem}", err=True)
    snapshots = [each.snapshot for each in placed if each.snapshot is not None]
    if not snapshots:
        raise empty_source_error("save", source, explained=any(each.problem for each in placed))
    chosen = snapshots[-1:] if last else snapshots
    if out is None:
        echo_json("".join(map(dumped, chosen)).rstrip("\n"))
        return
    with writing(out):
        write_snapshots(out, chosen)
    if as_json:
        echo(json.dumps({"saved": len(chosen), "file": str(out)}))
    else:
        echo(f"Saved {len(chosen)} {'snapshot' if len(chosen) == 1 else 'snapshots'} in {out}.")


def _list_threads(source: str, as_json: bool) -> NoReturn:
    """List the threads of a database, on standard error unless as JSON, and exit with code 2."""
    from langgraph_scrum_master.replay.threads import threads

    listed = threads(source)
    if as_json:
        echo(json.dumps([thread._asdict() for thread in listed], indent=2))
        raise typer.Exit(2)
    table = folding_table("thread", "checkpoints", "newest", "subgraphs")
    for thread in listed:
        table.add_row(thread.thread, str(thread.steps), thread.newest, ", ".join(thread.subgraphs))
    console = Console(markup=False, highlight=False, stderr=True)
    console.print(table if listed else "No threads.")
    if listed:
        console.print("Choose one with --thread.")
    raise typer.Exit(2)
