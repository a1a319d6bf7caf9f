"""Snapshots as test cases: what is stored in them must come out again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langgraph_scrum_master.config import InjectionConfig
from langgraph_scrum_master.model import InjectionResult, Snapshot
from langgraph_scrum_master.protocols import MemoryStore
from langgraph_scrum_master.replay import Replay, ReplayStep, against_recorded, replay
from langgraph_scrum_master.scrum_master import ScrumMaster
from langgraph_scrum_master.team.record.files import FILE_SUFFIXES, snapshots_in, write_snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCase:
    """A snapshot in a file, to be replayed and compared with the result that is stored in it."""

    path: Path
    name: str
    number: int
    """Which of the file's snapshots it is."""
    snapshot: Snapshot | None
    problem: str = ""
    update: bool = False
    """Whether `check` stores what comes out, instead of comparing it."""

    def replay(
        self,
        scrum_master: ScrumMaster | None = None,
        *,
        config: InjectionConfig | Mapping[str, Any] | None = None,
        memory: MemoryStore | str | Path | None = None,
    ) -> ReplayStep:
        """What the scrum master makes of it today."""
        if self.snapshot is None:
            raise AssertionError(self.problem)
        found = replay([self.snapshot], scrum_master=scrum_master, config=config, memory=memory)
        if found.problems:
            raise AssertionError(f"{self.name}: {found.problems[0].error}")
        return found.steps[0]

    def check(
        self,
        scrum_master: ScrumMaster | None = None,
        *,
        config: InjectionConfig | Mapping[str, Any] | None = None,
        memory: MemoryStore | str | Path | None = None,
    ) -> InjectionResult | None:
        """The result, which must be the one that is stored, but for how long it took."""
        __tracebackhide__ = True
        step = self.replay(scrum_master, config=config, memory=memory)
        if self.update:
            self._store(step.result)
            return step.result
        if not step.ran:
            raise AssertionError(f"no result is stored in {self.name}: run pytest with --scrum-master-update")
        if found := against_recorded(Replay(steps=(step,))):
            told = "\n".join(f"  {c.what}: {c.before!r} → {c.after!r}" for each in found.steps for c in each.changes)
            raise AssertionError(f"{self.name} comes out otherwise than stored:\n{told}\n  {_HINT}")
        return step.result

    def _store(self, result: InjectionResult | None) -> None:
        # As it stands now: other cases of the same file may have been stored meanwhile.
        kept = [each.snapshot for each in snapshots_in(self.path) if each.snapshot is not None]
        kept[self.number] = replace(kept[self.number], ran=True, result=result)
        write_snapshots(self.path, kept)


_HINT = "if that is right, pytest --scrum-master-update stores it"


def cases(place: Path, update: bool = False) -> Iterator[SnapshotCase]:
    """The cases of a file, or of all files of a folder; what cannot be read, or is not there, is one that fails."""
    if not place.exists():
        told = f"there is no file or folder {str(place)!r} to take snapshots from"
        yield SnapshotCase(path=place, name=place.name, number=0, snapshot=None, problem=told)
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.suffix in FILE_SUFFIXES)
    for path in files:
        name = path.name if path == place else path.relative_to(place).as_posix()
        yield from _of_file(path, name, update)


def _of_file(path: Path, name: str, update: bool) -> Iterator[SnapshotCase]:
    number = 0
    for placed in snapshots_in(path, name):
        snapshot, problem = placed.snapshot, placed.problem
        if snapshot is not None and snapshot.origin == "messages":
            told = f"{name!r} holds messages and no results: make snapshots of it with `scrum-master snapshot`"
            yield SnapshotCase(path=path, name=name, number=0, snapshot=None, problem=told)
            return
        yield SnapshotCase(
            path=path, name=placed.where, number=number, snapshot=snapshot, problem=problem, update=update
        )
        number += snapshot is not None
