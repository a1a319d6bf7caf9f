"""Loads the sources of a replay (files, folders, checkpoint databases) as runs of snapshots."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from stat import S_ISDIR
from typing import Any, NamedTuple, TypeAlias

from langgraph_scrum_master._internal.shapes import mapping_of
from langgraph_scrum_master.errors import DecodeError, NotFoundError
from langgraph_scrum_master.model import Snapshot, instant
from langgraph_scrum_master.replay.checkpoints import Run, history_steps, is_saved_state, thread_steps
from langgraph_scrum_master.replay.databases import database_name, is_database
from langgraph_scrum_master.replay.inventory import Inventory, counted
from langgraph_scrum_master.replay.model import Problem
from langgraph_scrum_master.replay.threads import threads
from langgraph_scrum_master.team.record.files import FILE_SUFFIXES, Placed, run_name, snapshots_in, states_in
from langgraph_scrum_master.team.record.snapshots import taken
from langgraph_scrum_master.team.state import READ_BACK

LoadProgress: TypeAlias = Callable[[int, int], None]
"""Called with the number done and the total: of snapshots, or of files if there are several."""


MOST_THREADS = 50
"""Number of latest threads of a database that are read if none is given."""


def runs(
    source: str | Path | Iterable[object],
    thread: str | None = None,
    subgraph: str | None = None,
    progress: LoadProgress | None = None,
    most: int | None = MOST_THREADS,
) -> Iterator[Run]:
    """The runs of a source, or of one of its threads. Unreadable snapshots are reported in their place.

    Without a thread, the latest `most` threads of a database are read, latest first.
    """
    loaded: Iterator[Run]
    if isinstance(source, str | Path) and is_database(source):
        thread_runs = list(_database_runs(str(source), thread, subgraph, most))
        loaded, count = iter(thread_runs), len(thread_runs)
    elif subgraph is not None:
        raise DecodeError(f"only a checkpoint database has subgraphs, got {subgraph!r} for {source!r:.80}")
    elif isinstance(source, str | Path):
        files = _files(source)
        folder = Path(source) if Path(source).is_dir() else None
        placed = (snapshots_in(path, name, folder) for name, path in files.items())
        loaded, count = _thread_runs(placed, thread, str(source)), len(files)
    else:
        loaded, count = _thread_runs([_from_objects(source)], thread, "the given states"), 1
    yield from loaded if progress is None else _with_progress(loaded, count, progress)


def latest_states(
    source: str | Path, thread: str | None = None, subgraph: str | None = None
) -> tuple[dict[str, object], list[Problem], str]:
    """The latest state of each thread of a source, or of each run without one; the problems; and what was read."""
    if thread is None and subgraph is None and not is_database(source) and Path(source).is_file():
        found = states_in(Path(source))
        return dict(found), [], f"{Path(source).name}: {counted(len(found), 'state')}"
    inventory, latest, problems = Inventory(source), dict[str, object](), list[Problem]()
    for run in runs(source, thread, subgraph, most=None):
        for placed in run.snapshots:
            inventory.add(placed)
            if (snapshot := placed.snapshot) is not None:
                dated = snapshot.origin == "checkpoint" and instant(snapshot.at) >= 0
                latest[run_name(placed)] = TimestampedState(snapshot.state, snapshot.at) if dated else snapshot.state
            elif placed.problem:
                problems.append(Problem(where=placed.where, error=placed.problem))
    return latest, problems, str(inventory)


class TimestampedState(NamedTuple):
    """A state and its time, in the shape of LangGraph's `StateSnapshot`."""

    values: dict[str, Any]
    created_at: str


def _database_runs(source: str, thread: str | None, subgraph: str | None, most: int | None) -> Iterator[Run]:
    if thread is not None:
        yield from thread_steps(source, thread, subgraph)
        return
    listed = threads(source)
    known = [each for each in listed if (subgraph in each.subgraphs if subgraph else each.steps)]
    if listed and not known:
        which = f"a subgraph {subgraph!r}" if subgraph else "steps of its own graph: pass --subgraph"
        paths = sorted({path for each in listed for path in each.subgraphs})
        raise NotFoundError(f"no thread of {database_name(source)!r} has {which}; its subgraphs are {paths}")
    for each in known[:most]:
        yield from thread_steps(source, each.thread, subgraph)
    if most is not None and len(known) > most:
        yield Run((), note=f"{len(known) - most} earlier threads were not read: --thread selects one.")


def _with_progress(loaded: Iterable[Run], count: int, progress: LoadProgress) -> Iterator[Run]:
    """The runs, reporting progress by run, or by snapshot if there is only one."""
    for number, run in enumerate(loaded):
        if count > 1:
            progress(number, count)
        yield run if count > 1 else run._replace(snapshots=_counted_snapshots(run, progress))


def _counted_snapshots(run: Run, progress: LoadProgress) -> Iterator[Placed]:
    for number, placed in enumerate(run.snapshots):
        progress(number, run.total)
        yield placed


def _files(source: str | Path) -> dict[str, Path]:
    """The files of a source by relative path."""
    path = Path(source)
    try:
        if not S_ISDIR(path.stat().st_mode):
            return {path.name: path}
        # Raises for an unreadable folder, which would otherwise seem empty.
        os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        # Any connection string may contain a password.
        name = str(source).split("://", 1)[0]
        raise NotFoundError(
            f"there is no {name!r}: pass a file or folder of snapshots, a SQLite checkpoint database, or a "
            "PostgreSQL connection string"
        ) from None
    except OSError as error:
        raise DecodeError(f"cannot read {str(path)!r}: {error.strerror}") from error
    files = [each for each in sorted(path.rglob("*")) if each.suffix in FILE_SUFFIXES and each.name[:1] != "."]
    if not files:
        raise DecodeError(f"there are no snapshots in {str(path)!r}: it has no {' or '.join(FILE_SUFFIXES)} files")
    return {each.relative_to(path).as_posix(): each for each in files}


def _thread_runs(sources: Iterable[Iterable[Placed]], thread: str | None, name: str) -> Iterator[Run]:
    """One run per source, with the snapshots of one thread if it is given."""
    seen: set[str] = set()

    def selected(placed: Placed) -> bool:
        if placed.snapshot is None:
            return True
        seen.add(placed.snapshot.thread)
        return thread in (None, placed.snapshot.thread)

    for each in sources:
        yield _run(filter(selected, each))
    if thread is not None and seen and thread not in seen:
        hint = f"its threads are {sorted(filter(None, seen))}" if any(seen) else "its steps have no thread"
        raise NotFoundError(f"there is no thread {thread!r} in {name!r}: {hint}")


def _from_objects(objects: Iterable[object]) -> Iterator[Placed]:
    listed = list(objects)
    if listed and all(is_saved_state(each) for each in listed):
        yield from history_steps(listed)
        return
    for each in listed:
        if isinstance(each, Snapshot):
            yield Placed("", each)
        elif state := mapping_of(each):
            yield Placed("", taken(state, at="", origin="state", ran=False))
        else:
            yield Placed("", None, f"expected a snapshot or a state, got {each!r:.80}")


def _run(placed: Iterable[Placed]) -> Run:
    snapshots = iter(placed)
    first = next(snapshots, None)
    if first is None:
        return Run(())
    # Snapshots of a long conversation are made one at a time.
    if first.snapshot is not None and first.snapshot.origin == "messages":
        return Run(chain([first], snapshots), True, first.of or 0)
    whole = [first, *snapshots]
    return Run(
        whole, all(_has_no_scrum_master(each.snapshot) for each in whole if each.snapshot is not None), len(whole)
    )


def _has_no_scrum_master(snapshot: Snapshot) -> bool:
    """Whether the step is from a graph without a scrum master."""
    ours = snapshot.ran or any(snapshot.state.get(key) for key in READ_BACK)
    return snapshot.origin in ("checkpoint", "messages") and not ours
