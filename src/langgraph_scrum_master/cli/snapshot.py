"""`scrum-master snapshot`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from langgraph_scrum_master.cli.memory import counting
from langgraph_scrum_master.cli.replay import Source, Subgraph, Thread, list_threads, logs_aside, nothing_to
from langgraph_scrum_master.cli.writing import writing


def snapshot(
    source: Source,
    thread: Thread = None,
    subgraph: Subgraph = None,
    last: Annotated[bool, typer.Option("--last", help="Only the newest step.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="The file to write: .jsonl, or .json for one or a list; else standard output.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print as JSON what was saved, or which threads there are.")
    ] = False,
) -> None:
    """Save the steps of a thread, or of messages, as snapshots: one JSON object a line.

    They hold what the scrum master reads of the state, and what it made of it then, to be replayed anywhere.
    """
    from langgraph_scrum_master.replay.databases import is_database
    from langgraph_scrum_master.replay.loading import runs
    from langgraph_scrum_master.team.record.files import Placed, write_snapshots
    from langgraph_scrum_master.team.record.snapshots import dumped

    if thread is None and is_database(source):
        list_threads(source, as_json)
    told, placed = list[str](), list[Placed]()
    with logs_aside(), counting("Reading", quiet=as_json) as progress:
        for run in runs(source, thread, subgraph, progress):
            told.append(run.note)
            placed += run.snapshots
    for problem in filter(None, (*(each.problem for each in placed), *told)):
        typer.echo(f"scrum-master: {problem}", err=True)
    found = [each.snapshot for each in placed if each.snapshot is not None]
    if not found:
        raise nothing_to("save", source, told=any(each.problem for each in placed))
    chosen = found[-1:] if last else found
    if out is None:
        typer.echo("".join(map(dumped, chosen)), nl=False)
        return
    with writing(out):
        write_snapshots(out, chosen)
    if as_json:
        typer.echo(json.dumps({"saved": len(chosen), "file": str(out)}))
    else:
        typer.echo(f"Saved {len(chosen)} {'snapshot' if len(chosen) == 1 else 'snapshots'} in {out}.")
