"""Evaluates saved snapshots and checkpoints again, and compares the results.

A replay is a pure function of its source: it uses the recorded time, writes nothing, and gives the same bytes for the
same snapshots. It calls no assistant, because the answers of a chat model are not reproducible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from langgraph_scrum_master._internal.threads import off_loop, wait_for
from langgraph_scrum_master.config import InjectionConfig
from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.model import Snapshot
from langgraph_scrum_master.protocols import MemoryStore
from langgraph_scrum_master.replay.checkpoints import Run
from langgraph_scrum_master.replay.difference import Change, Difference, StepDifference, against_recorded, difference
from langgraph_scrum_master.replay.inventory import Inventory
from langgraph_scrum_master.replay.loading import LoadProgress, runs
from langgraph_scrum_master.replay.model import BudgetUse, Considered, Problem, Replay, ReplayStep, Said
from langgraph_scrum_master.replay.readonly_memory import memory_copy
from langgraph_scrum_master.replay.steps import Player
from langgraph_scrum_master.replay.tally import Histories
from langgraph_scrum_master.scrum_master import ScrumMaster


def replay(
    source: str | Path | Iterable[object],
    *,
    scrum_master: ScrumMaster | None = None,
    config: InjectionConfig | Mapping[str, Any] | None = None,
    memory: MemoryStore | str | Path | None = None,
    thread: str | None = None,
    subgraph: str | None = None,
    progress: LoadProgress | None = None,
    keep: Callable[[Snapshot], object] | None = None,
) -> Replay:
    """Evaluate saved states with the current code and settings.

    `source` is a file or folder of snapshots or messages, a checkpoint database (its latest 50 threads, or one
    `thread`), `graph.get_state_history(config)`, or an iterable of snapshots and states. `scrum_master` adds your own
    detectors, sources and settings. An `InjectionConfig` replaces all settings, a mapping only those it names; others
    stay as recorded. `memory` is only read: a folder is copied first. For files, `thread` selects the snapshots of one
    thread. For a database, `subgraph` selects the subgraph in a node, such as `team/dev`. `keep` is called with each
    snapshot that was replayed.
    """
    return wait_for(
        areplay(
            source,
            scrum_master=scrum_master,
            config=config,
            memory=memory,
            thread=thread,
            subgraph=subgraph,
            progress=progress,
            keep=keep,
        )
    )


async def areplay(
    source: str | Path | Iterable[object],
    *,
    scrum_master: ScrumMaster | None = None,
    config: InjectionConfig | Mapping[str, Any] | None = None,
    memory: MemoryStore | str | Path | None = None,
    thread: str | None = None,
    subgraph: str | None = None,
    progress: LoadProgress | None = None,
    keep: Callable[[Snapshot], object] | None = None,
) -> Replay:
    """Like `replay`, without blocking the event loop."""
    played = _Played(steps=[], problems=[], inventory=Inventory(source), histories=Histories(), keep=keep)
    notes: list[str] = []
    with ExitStack() as stack:
        folder = memory_copy(memory) if isinstance(memory, str | Path) else nullcontext(memory)
        opened = await off_loop(stack.enter_context, folder)
        player = Player(scrum_master=scrum_master, config=config, memory=opened)
        loaded = runs(source, thread, subgraph, progress)
        while (run := await off_loop(next, loaded, None)) is not None:
            notes += filter(None, (run.note,))
            await played.play(run, player)
    return Replay(
        steps=tuple(map(played.with_outcome, played.steps)),
        problems=tuple(played.problems),
        notes=tuple(notes),
        source=str(played.inventory),
        tallies=played.histories.tallies(by_thread=True),
    )


class _Played(NamedTuple):
    """What the runs so far gave."""

    steps: list[ReplayStep]
    problems: list[Problem]
    inventory: Inventory
    histories: Histories
    keep: Callable[[Snapshot], object] | None

    async def play(self, run: Run, player: Player) -> None:
        """Replay the snapshots of one run in order."""
        play, snapshots = player.run(carries_state=run.carries_state), iter(run.snapshots)
        while (placed := await off_loop(next, snapshots, None)) is not None:
            try:
                if placed.snapshot is not None:
                    self.steps.append(await play(placed.where, placed.snapshot))
                    self.inventory.add(placed)
                    await off_loop(self._take, placed.snapshot)
                elif placed.problem:
                    raise DecodeError(placed.problem)
            except DecodeError as error:
                self.problems.append(Problem(where=placed.where, error=str(error)))

    def _take(self, snapshot: Snapshot) -> None:
        # A list of messages has no records.
        if snapshot.origin != "messages":
            self.histories.add(snapshot)
        if self.keep is not None:
            self.keep(snapshot)

    def with_outcome(self, step: ReplayStep) -> ReplayStep:
        """The step with the outcome of its recorded injection, from the latest record."""
        if step.recorded is None:
            return step
        records = self.histories.by_thread.get(step.thread, [])
        return replace(
            step, injection_outcome=next((r.outcome for r in records if r.gap_id == step.recorded.gap.gap_id), "")
        )


__all__ = [
    "BudgetUse",
    "Change",
    "Considered",
    "Difference",
    "Problem",
    "Replay",
    "ReplayStep",
    "Said",
    "StepDifference",
    "against_recorded",
    "areplay",
    "difference",
    "memory_copy",
    "replay",
]
