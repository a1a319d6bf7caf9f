"""Saved snapshots and checkpoints, run again, and what differs.

A replay is a pure function of what was saved: the clock stands where it stood, nothing is written, and the same
snapshots give the same bytes. An assistant is not asked, for it would not give the same answer twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from langgraph_scrum_master._internal.threads import off_loop, wait_for
from langgraph_scrum_master.config import InjectionConfig
from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.protocols import MemoryStore
from langgraph_scrum_master.replay.checkpoints import Run
from langgraph_scrum_master.replay.difference import Change, Difference, StepDifference, against_recorded, difference
from langgraph_scrum_master.replay.loading import LoadProgress, runs
from langgraph_scrum_master.replay.model import BudgetUse, Considered, Problem, Replay, ReplayStep, Said
from langgraph_scrum_master.replay.readonly_memory import borrowed
from langgraph_scrum_master.replay.steps import Player
from langgraph_scrum_master.scrum_master import ScrumMaster
from langgraph_scrum_master.team.state import records


def replay(
    source: str | Path | Iterable[object],
    *,
    scrum_master: ScrumMaster | None = None,
    config: InjectionConfig | Mapping[str, Any] | None = None,
    memory: MemoryStore | str | Path | None = None,
    thread: str | None = None,
    subgraph: str | None = None,
    progress: LoadProgress | None = None,
) -> Replay:
    """What the scrum master makes of saved states today.

    `source` is a file of snapshots or messages, a folder of such files, a database of checkpoints with a `thread`,
    `graph.get_state_history(config)`, or any snapshots and states. `scrum_master` brings detectors, sources and
    settings of yours. A `config` replaces all settings; a mapping changes only those it names. What is not given is as
    it was recorded. `memory` is only read: a folder is opened in a copy. Of files, `thread` takes only the snapshots of
    that thread; of a database, `subgraph` the steps of its subgraph in that node, such as `team/dev`.
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
) -> Replay:
    """The same without blocking the event loop."""
    steps: list[ReplayStep] = []
    problems: list[Problem] = []
    notes: list[str] = []
    with ExitStack() as stack:
        folder = borrowed(memory) if isinstance(memory, str | Path) else nullcontext(memory)
        opened = await off_loop(stack.enter_context, folder)
        player = Player(scrum_master=scrum_master, config=config, memory=opened)
        found = runs(source, thread, subgraph, progress)
        while (run := await off_loop(next, found, None)) is not None:
            notes += filter(None, (run.note,))
            await _play(run, player, steps, problems)
    return Replay(steps=tuple(steps), problems=tuple(problems), notes=tuple(notes))


async def _play(run: Run, player: Player, steps: list[ReplayStep], problems: list[Problem]) -> None:
    play = player.run(carried=run.carried)
    snapshots, first, known = iter(run.snapshots), len(steps), dict[tuple[str, str], str]()
    while (placed := await off_loop(next, snapshots, None)) is not None:
        try:
            if placed.snapshot is not None:
                steps.append(await play(placed.where, placed.snapshot))
                for record in records(placed.snapshot.state.get("injection_history")):
                    known[placed.snapshot.thread, record.gap_id] = record.outcome
            elif placed.problem:
                raise DecodeError(placed.problem)
        except DecodeError as error:
            problems.append(Problem(where=placed.where, error=str(error)))
    steps[first:] = [_with_outcome(step, known) for step in steps[first:]]


def _with_outcome(step: ReplayStep, known: Mapping[tuple[str, str], str]) -> ReplayStep:
    """The step with the outcome of its recorded injection."""
    outcome = known.get((step.thread, step.recorded.gap.gap_id), "") if step.recorded is not None else ""
    return replace(step, injection_outcome=outcome) if outcome else step


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
    "borrowed",
    "difference",
    "replay",
]
