"""`scrum-master snapshot`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from langgraph_scrum_master.cli.replay import Source, Thread, list_threads, logs_aside
from langgraph_scrum_master.errors import DecodeError, ScrumMasterError


def snapshot(
    source: Source,
    thread: Thread = None,
    last: Annotated[bool, typer.Option("--last", help="Only the newest step.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="The file to write, .jsonl, or .json for one; else standard output.")
    ] = None,
) -> None:
    """Save the steps of a thread, or of messages, as snapshots: one JSON object a line.

    They hold what the scrum master reads of the state, and what it made of it then, to be replayed anywhere.
    """
    from langgraph_scrum_master.record.files import write_snapshots
    from langgraph_scrum_master.record.snapshots import dumped
    from langgraph_scrum_master.replay.checkpoints import is_database
    from langgraph_scrum_master.replay.material import runs

    if thread is None and is_database(source):
        list_threads(source, as_json=False)
        # Nothing was saved.
        raise typer.Exit(2)
    with logs_aside():
        placed = [each for run in runs(source, thread) for each in run.snapshots]
    for each in placed:
        if each.problem:
            typer.echo(f"scrum-master: {each.problem}", err=True)
    found = [each.snapshot for each in placed if each.snapshot is not None]
    if not found:
        raise DecodeError("there is nothing to save")
    chosen = found[-1:] if last else found
    if out is None:
        typer.echo("".join(map(dumped, chosen)), nl=False)
        return
    try:
        write_snapshots(out, chosen)
    except OSError as error:
        raise ScrumMasterError(f"cannot write {str(out)!r}: {error.strerror}") from error
    typer.echo(f"Saved {len(chosen)} {'snapshot' if len(chosen) == 1 else 'snapshots'} in {out}.")
