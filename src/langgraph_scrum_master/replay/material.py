"""What a replay is made from: files, folders of them, and databases of checkpoints, as runs of snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.model import Snapshot
from langgraph_scrum_master.record.files import KINDS, Placed, snapshots_in
from langgraph_scrum_master.record.snapshots import taken
from langgraph_scrum_master.replay.checkpoints import history_steps, is_database, is_saved_state, thread_steps
from langgraph_scrum_master.shapes import mapping_of
from langgraph_scrum_master.state import READ_BACK


class Run(NamedTuple):
    """Snapshots in the order of time."""

    snapshots: Iterable[Placed]
    carried: bool = False
    """Whether there was no scrum master: then what one would have written goes on from step to step."""


def runs(source: str | Path | Iterable[object], thread: str | None = None) -> Iterator[Run]:
    """The runs that a source holds; what cannot be read in it is in its place."""
    if not isinstance(source, str | Path):
        yield _run(_given(source))
    elif is_database(source):
        yield Run(*thread_steps(str(source), thread))
    elif Path(source).is_dir():
        folder = Path(source)
        files = [path for path in sorted(folder.rglob("*")) if path.suffix in KINDS and path.name[:1] != "."]
        if not files:
            raise DecodeError(f"there are no snapshots in {str(folder)!r}: it has no files of {' or '.join(KINDS)}")
        for path in files:
            yield _run(snapshots_in(path, path.relative_to(folder).as_posix()))
    elif Path(source).exists():
        yield _run(snapshots_in(Path(source)))
    else:
        raise DecodeError(
            f"there is no {str(source)!r}: give a file or folder of snapshots, a SQLite database of checkpoints, or a "
            "connection string of PostgreSQL"
        )


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
        return Run(chain([first], snapshots), carried=True)
    whole = [first, *snapshots]
    return Run(whole, carried=all(_is_bare(each.snapshot) for each in whole if each.snapshot is not None))


def _is_bare(snapshot: Snapshot) -> bool:
    """Whether it is a step of a team that has no scrum master."""
    ours = snapshot.ran or any(snapshot.state.get(key) for key in READ_BACK)
    return snapshot.origin in ("checkpoint", "messages") and not ours
