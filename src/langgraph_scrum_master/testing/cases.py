"""Snapshots as test cases: a replay must reproduce the recorded result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langgraph_scrum_master.config import InjectionConfig
from langgraph_scrum_master.model import Expectation, InjectionResult, Snapshot
from langgraph_scrum_master.protocols import MemoryStore
from langgraph_scrum_master.replay import Replay, ReplayStep, against_recorded, replay
from langgraph_scrum_master.scrum_master import ScrumMaster
from langgraph_scrum_master.team.record.files import FILE_SUFFIXES, snapshots_in, write_snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCase:
    """A snapshot in a file, to be replayed and compared with its recorded result."""

    path: Path
    name: str
    number: int
    """Its index in the file."""
    snapshot: Snapshot | None
    problem: str = ""
    update: bool = False
    """Whether `check` records the new result instead of comparing it."""

    def replay(
        self,
        scrum_master: ScrumMaster | None = None,
        *,
        config: InjectionConfig | Mapping[str, Any] | None = None,
        memory: MemoryStore | str | Path | None = None,
    ) -> ReplayStep:
        """Evaluate the snapshot again."""
        if self.snapshot is None:
            raise AssertionError(self.problem)
        replayed = replay([self.snapshot], scrum_master=scrum_master, config=config, memory=memory)
        if replayed.problems:
            raise AssertionError(f"{self.name}: {replayed.problems[0].error}")
        return replayed.steps[0]

    def check(
        self,
        scrum_master: ScrumMaster | None = None,
        *,
        config: InjectionConfig | Mapping[str, Any] | None = None,
        memory: MemoryStore | str | Path | None = None,
    ) -> InjectionResult | None:
        """Assert that the result equals the recorded one, except for its duration; return it.

        Where the snapshot says what should have happened, assert that instead.
        """
        __tracebackhide__ = True
        step = self.replay(scrum_master, config=config, memory=memory)
        if self.snapshot is not None and self.snapshot.expected is not None:
            if unmet := list(_unmet(self.snapshot.expected, step)):
                raise AssertionError("\n  ".join((f"{self.name} is not as it should be:", *unmet)))
            return step.result
        if self.update:
            self._store(step.result)
            return step.result
        if not step.ran:
            raise AssertionError(f"{self.name} has no recorded result: run pytest with --scrum-master-update")
        if difference := against_recorded(Replay(steps=(step,))):
            changes = (change for each in difference.steps for change in each.changes)
            lines = "\n".join(f"  {each.what}: {each.before!r} → {each.after!r}" for each in changes)
            raise AssertionError(f"{self.name} differs from the recorded result:\n{lines}\n  {_HINT}")
        return step.result

    def _store(self, result: InjectionResult | None) -> None:
        # Read again: other cases of the same file may have been updated.
        snapshots = [each.snapshot for each in snapshots_in(self.path) if each.snapshot is not None]
        snapshots[self.number] = replace(snapshots[self.number], ran=True, result=result)
        write_snapshots(self.path, snapshots)


def _unmet(expected: Expectation, step: ReplayStep) -> Iterator[str]:
    """What differs from what was expected."""
    why = f" ({expected.note})" if expected.note else ""
    if step.outcome != expected.outcome:
        yield f"outcome: {step.outcome!r}, expected {expected.outcome!r}{why}"
    injected = step.result is not None and step.result.injected
    keys = {each.key for each in step.result.contexts_retrieved} if step.result is not None and injected else set()
    yield from (f"not injected: {key!r}" for key in expected.keys if key not in keys)
    yield from (f"injected: {key!r}" for key in expected.without if key in keys)


_HINT = "if the new result is right, record it with pytest --scrum-master-update"


def cases(place: Path, update: bool = False) -> Iterator[SnapshotCase]:
    """The cases in a file, or in all files of a folder. Missing and unreadable files become failing cases."""
    if not place.exists():
        missing = f"snapshot file or folder {str(place)!r} does not exist"
        yield SnapshotCase(path=place, name=place.name, number=0, snapshot=None, problem=missing)
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.suffix in FILE_SUFFIXES)
    for path in files:
        name = path.name if path == place else path.relative_to(place).as_posix()
        yield from _of_file(path, name, update)


def _of_file(path: Path, name: str, update: bool) -> Iterator[SnapshotCase]:
    number = 0
    for placed in snapshots_in(path, name):
        snapshot, problem = placed.snapshot, placed.problem
        if snapshot is not None and snapshot.origin == "messages":
            problem = f"{name!r} has messages but no results: convert it with `scrum-master snapshot`"
            yield SnapshotCase(path=path, name=name, number=0, snapshot=None, problem=problem)
            return
        yield SnapshotCase(
            path=path, name=placed.where, number=number, snapshot=snapshot, problem=problem, update=update
        )
        number += snapshot is not None
