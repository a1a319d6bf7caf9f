"""What a replay is made from: files, folders of them, and databases of checkpoints, as runs of snapshots."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from stat import S_ISDIR
from typing import TypeAlias

from langgraph_scrum_master._internal.shapes import mapping_of
from langgraph_scrum_master.errors import DecodeError, NotFoundError
from langgraph_scrum_master.model import Snapshot
from langgraph_scrum_master.replay.checkpoints import Run, history_steps, is_saved_state, thread_steps
from langgraph_scrum_master.replay.databases import is_database
from langgraph_scrum_master.team.record.files import FILE_SUFFIXES, Placed, snapshots_in
from langgraph_scrum_master.team.record.snapshots import taken
from langgraph_scrum_master.team.state import READ_BACK

LoadProgress: TypeAlias = Callable[[int, int], None]
"""Told how many of how many are done: snapshots, or files if there are several."""


def runs(
    source: str | Path | Iterable[object],
    thread: str | None = None,
    subgraph: str | None = None,
    progress: LoadProgress | None = None,
) -> Iterator[Run]:
    """The runs that a source holds; what cannot be read in it is in its place. With a thread, only its snapshots."""
    found: Iterator[Run]
    if isinstance(source, str | Path) and is_database(source):
        of_thread = list(thread_steps(str(source), thread, subgraph))
        found, count = iter(of_thread), len(of_thread)
    elif subgraph is not None:
        raise DecodeError(f"only a database of checkpoints has subgraphs, got {subgraph!r} for {source!r:.80}")
    elif isinstance(source, str | Path):
        files = _files(source)
        folder = Path(source) if Path(source).is_dir() else None
        placed = (snapshots_in(path, name, folder) for name, path in files.items())
        found, count = _of_thread(placed, thread, str(source)), len(files)
    else:
        found, count = _of_thread([_given(source)], thread, "what was given"), 1
    yield from found if progress is None else _counted(found, count, progress)


def _counted(found: Iterable[Run], count: int, progress: LoadProgress) -> Iterator[Run]:
    """The runs, each of which tells how far it is, or if there are several, which it is."""
    for number, run in enumerate(found):
        if count > 1:
            progress(number, count)
        yield run if count > 1 else run._replace(snapshots=_counting(run, progress))


def _counting(run: Run, progress: LoadProgress) -> Iterator[Placed]:
    for number, placed in enumerate(run.snapshots):
        progress(number, run.total)
        yield placed


def _files(source: str | Path) -> dict[str, Path]:
    """The files of a source by their name in it."""
    place = Path(source)
    try:
        if not S_ISDIR(place.stat().st_mode):
            return {place.name: place}
        # Otherwise a folder that may not be looked into would seem to be empty.
        os.listdir(place)
    except (FileNotFoundError, NotADirectoryError):
        # A connection string, of whatever, may hold a password.
        name = str(source).split("://", 1)[0]
        raise NotFoundError(
            f"there is no {name!r}: give a file or folder of snapshots, a SQLite database of checkpoints, or a "
            "connection string of PostgreSQL"
        ) from None
    except OSError as error:
        raise DecodeError(f"cannot read {str(place)!r}: {error.strerror}") from error
    files = [path for path in sorted(place.rglob("*")) if path.suffix in FILE_SUFFIXES and path.name[:1] != "."]
    if not files:
        raise DecodeError(f"there are no snapshots in {str(place)!r}: it has no files of {' or '.join(FILE_SUFFIXES)}")
    return {path.relative_to(place).as_posix(): path for path in files}


def _of_thread(found: Iterable[Iterable[Placed]], thread: str | None, name: str) -> Iterator[Run]:
    """A run of each, with the snapshots of the thread alone if one is named."""
    seen: set[str] = set()

    def wanted(placed: Placed) -> bool:
        if placed.snapshot is None:
            return True
        seen.add(placed.snapshot.thread)
        return thread in (None, placed.snapshot.thread)

    for each in found:
        yield _run(filter(wanted, each))
    if thread is not None and seen and thread not in seen:
        told = f"its threads are {sorted(filter(None, seen))}" if any(seen) else "its steps name none"
        raise NotFoundError(f"there is no thread {thread!r} in {name!r}: {told}")


def _given(things: Iterable[object]) -> Iterator[Placed]:
    given = list(things)
    if given and all(is_saved_state(thing) for thing in given):
        yield from history_steps(given)
        return
    for thing in given:
        if isinstance(thing, Snapshot):
            yield Placed("", thing)
        elif state := mapping_of(thing):
            yield Placed("", taken(state, at="", origin="state", ran=False))
        else:
            yield Placed("", None, f"a snapshot or a state must be given, got {thing!r:.80}")


def _run(placed: Iterable[Placed]) -> Run:
    snapshots = iter(placed)
    first = next(snapshots, None)
    if first is None:
        return Run(())
    # Of a long conversation each snapshot is made when it is its turn.
    if first.snapshot is not None and first.snapshot.origin == "messages":
        return Run(chain([first], snapshots), True, first.of or 0)
    whole = [first, *snapshots]
    return Run(whole, all(_is_bare(each.snapshot) for each in whole if each.snapshot is not None), len(whole))


def _is_bare(snapshot: Snapshot) -> bool:
    """Whether it is a step of a team that has no scrum master."""
    ours = snapshot.ran or any(snapshot.state.get(key) for key in READ_BACK)
    return snapshot.origin in ("checkpoint", "messages") and not ours
