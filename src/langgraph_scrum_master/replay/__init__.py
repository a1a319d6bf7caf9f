"""Evaluates saved snapshots and checkpoints again, and compares the results.

A replay is a pure function of its source: it uses the recorded time, writes nothing, and gives the same bytes for the
same snapshots. It calls no assistant, because the answers of a chat model are not reproducible.
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
from langgraph_scrum_master.replay.readonly_memory import memory_copy
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
    """Evaluate saved states with the current code and settings.

    `source` is a file or folder of snapshots or messages, a checkpoint database (with a `thread`),
    `graph.get_state_history(config)`, or an iterable of snapshots and states. `scrum_master` adds your own detectors,
    sources and settings. An `InjectionConfig` replaces all settings, a mapping only those it names; others stay as
    recorded. `memory` is only read: a folder is copied first. For files, `thread` selects the snapshots of one thread.
    For a database, `subgraph` selects the subgraph in a node, such as `team/dev`.
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
    """Like `replay`, without blocking the event loop."""
    steps: list[ReplayStep] = []
    problems: list[Problem] = []
    notes: list[str] = []
    with ExitStack() as stack:
        folder = memory_copy(memory) if isinstance(memory, str | Path) else nullcontext(memory)
        opened = await off_loop(stack.enter_context, folder)
        player = Player(scrum_master=scrum_master, config=config, memory=opened)
        loaded = runs(source, thread, subgraph, progress)
        while (run := await off_loop(next, loaded, None)) is not None:
            notes += filter(None, (run.note,))
            await _play(run, player, steps, problems)
    return Replay(steps=tuple(steps), problems=tuple(problems), notes=tuple(notes))


async def _play(run: Run, player: Player, steps: list[ReplayStep], problems: list[Problem]) -> None:
    play = player.run(carries_state=run.carries_state)
    snapshots, first, outcomes = iter(run.snapshots), len(steps), dict[tuple[str, str], str]()
    while (placed := await off_loop(next, snapshots, None)) is not None:
        try:
            if placed.snapshot is not None:
                steps.append(await play(placed.where, placed.snapshot))
                for record in records(placed.snapshot.state.get("injection_history")):
                    outcomes[placed.snapshot.thread, record.gap_id] = record.outcome
            elif placed.problem:
                raise DecodeError(placed.problem)
        except DecodeError as error:
            problems.append(Problem(where=placed.where, error=str(error)))
    steps[first:] = [_with_outcome(step, outcomes) for step in steps[first:]]


def _with_outcome(step: ReplayStep, outcomes: Mapping[tuple[str, str], str]) -> ReplayStep:
    """The step with the outcome of its recorded injection."""
    outcome = outcomes.get((step.thread, step.recorded.gap.gap_id), "") if step.recorded is not None else ""
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
    "difference",
    "memory_copy",
    "replay",
]
