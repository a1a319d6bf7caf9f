"""Runs the pipeline again on a snapshot, with the recorded time, and logs what every source returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeAlias

from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.config import InjectionConfig
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.messages import read_turns
from langgraph_scrum_master.model import (
    InjectionResult,
    Observation,
    Query,
    RetrievedContext,
    Snapshot,
    Turn,
    instant,
)
from langgraph_scrum_master.protocols import MemoryStore, Source, State
from langgraph_scrum_master.replay.loading import TimestampedState
from langgraph_scrum_master.replay.model import BudgetUse, Considered, Fate, ReplayStep, Said
from langgraph_scrum_master.scrum_master import ScrumMaster
from langgraph_scrum_master.team.observe import Watcher, cycle_analysis
from langgraph_scrum_master.team.pipeline import Pipeline, Sighting
from langgraph_scrum_master.team.state import STATE_KEYS

_MIN_DEADLINE = 60.0
"""Minimum deadline of sources in seconds, so that the result does not depend on the load of the machine."""

Play: TypeAlias = Callable[[str, Snapshot], Awaitable[ReplayStep]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """The parts that snapshots are replayed with."""

    scrum_master: ScrumMaster | None
    config: InjectionConfig | Mapping[str, Any] | None
    memory: MemoryStore | None

    def run(self, *, carries_state: bool) -> Play:
        """A function that replays the snapshots of one run in order."""
        watcher, written, before = Watcher(), dict[str, dict[str, Any]](), dict[str, tuple[Turn, ...]]()

        async def play(where: str, snapshot: Snapshot) -> ReplayStep:
            ours = written.setdefault(snapshot.thread, {}) if carries_state else {}
            pipeline, source_log = self._pipeline(snapshot, watcher)
            at = snapshot.at if instant(snapshot.at) >= 0 else ""
            # When the scrum master ran, it saw the state without the checkpoint's time.
            dated = snapshot.origin == "checkpoint" and at and not snapshot.ran
            state = {**snapshot.state, **ours}
            sighting = await off_loop(pipeline.sight, TimestampedState(state, at) if dated and state else state)
            result = await pipeline.serve(sighting, self._memory(), _ignore_event)
            update = pipeline.update(sighting, result)
            ours.update({key: update[key] for key in STATE_KEYS if key in update})
            new_turns = _new_turns(sighting.observation, before.get(snapshot.thread, ()))
            before[snapshot.thread] = sighting.observation.turns
            return replace(_step(where, snapshot, sighting, result, source_log, pipeline.config), turns=new_turns)

        return play

    def _memory(self) -> MemoryStore | None:
        return self.memory if self.memory is not None or self.scrum_master is None else self.scrum_master.memory

    def _pipeline(self, snapshot: Snapshot, watcher: Watcher) -> tuple[Pipeline, SourceLog]:
        time = _recorded_time(snapshot)
        base = replace(
            self.scrum_master.pipeline if self.scrum_master is not None else Pipeline(),
            config=settings(snapshot, self.config, self.scrum_master),
            clock=lambda: time,
            watcher=watcher,
            recorder=None,
            snapshots=None,
            assistant=None,
        )
        sources = base.asked(self._memory())
        source_log = SourceLog(tuple(source.name for source in sources), [], [])
        # A given source replaces the built-in one of the same name.
        return replace(base, sources=tuple(_LoggedSource(source, source_log) for source in sources)), source_log


class SourceLog(NamedTuple):
    """The sources, their queries, and the contexts that they returned."""

    sources: tuple[str, ...]
    queries: list[str]
    returned: list[object]


class _LoggedSource:
    """A source that logs its queries and results."""

    def __init__(self, source: Source, log: SourceLog) -> None:
        self.name = source.name
        self._source = source
        self._log = log

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """The contexts of the wrapped source."""
        self._log.queries.append(query.text)
        contexts = list(await self._source.find(query, state))
        self._log.returned.extend(contexts)
        return contexts


def settings(
    snapshot: Snapshot, given: InjectionConfig | Mapping[str, Any] | None, scrum_master: ScrumMaster | None = None
) -> InjectionConfig:
    """The settings for a snapshot: the given ones, else the scrum master's, else the recorded ones."""
    if scrum_master is not None:
        own = scrum_master.pipeline.config
    else:
        own = InjectionConfig.from_dict(snapshot.config) if snapshot.config is not None else InjectionConfig()
    chosen = given if isinstance(given, InjectionConfig) else replace(own, **_known_settings(given or {}))
    return replace(chosen, log_injections=False, deadline=max(chosen.deadline, _MIN_DEADLINE))


def _known_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    known = [each.name for each in fields(InjectionConfig)]
    if unknown := sorted(set(given) - set(known)):
        raise ConfigError(f"unknown settings {unknown}: settings are {known}")
    return dict(given)


def _recorded_time(snapshot: Snapshot) -> float:
    """The recorded time, else that of the latest message with a time, else the epoch."""
    if (known := instant(snapshot.at)) >= 0:
        return known
    times = (turn.time for turn in reversed(read_turns(snapshot.state.get("messages"))) if turn.time is not None)
    return max(0.0, next(times, 0.0))


def _step(
    where: str,
    snapshot: Snapshot,
    sighting: Sighting,
    result: InjectionResult | None,
    source_log: SourceLog,
    config: InjectionConfig,
) -> ReplayStep:
    newest = _newest(sighting)
    return ReplayStep(
        where=where,
        thread=snapshot.thread,
        step=snapshot.step,
        at=snapshot.at,
        speaker=newest.agent if newest is not None else "",
        said=newest.text if newest is not None else "",
        cycles=cycle_analysis(sighting.observation).patterns_found,
        cycle_turns=tuple(cycle.evidence for cycle in sighting.observation.cycles),
        gaps=sighting.gaps,
        given_up=sighting.given_up,
        queries=tuple(dict.fromkeys(source_log.queries)),
        considered=_considered(source_log.returned, result) if result is not None else (),
        result=result,
        budget=_budget(result, config) if result is not None else None,
        config=config.to_dict(),
        ran=snapshot.ran,
        recorded=snapshot.result,
        unasked=tuple(name for name in snapshot.sources if name not in source_log.sources),
        failure=sighting.failure,
    )


def _new_turns(observation: Observation, before: tuple[Turn, ...]) -> tuple[Said, ...]:
    """The turns since the previous step."""
    handed_to = {(handoff.turn, handoff.source): handoff.target for handoff in observation.handoffs}
    return tuple(
        Said(
            id=turn.id,
            agent=turn.agent,
            kind=turn.kind,
            text=turn.text,
            tools=tuple(call.name for call in turn.tool_calls),
            time=turn.time,
            handed_to=handed_to.get((turn.id, turn.agent), ""),
        )
        for turn in observation.turns[_overlap(before, observation.turns) :]
    )


def _overlap(before: tuple[Turn, ...], now: tuple[Turn, ...]) -> int:
    """How many of the turns the previous step had too. The oldest may be gone, and turns may repeat."""
    old, new = [turn.id for turn in before], [turn.id for turn in now]
    return next((len(old) - start for start in range(len(old)) if old[start:] == new[: len(old) - start]), 0)


def _newest(sighting: Sighting) -> Turn | None:
    return sighting.observation.turns[-1] if sighting.observation.turns else None


def _considered(returned: Iterable[object], result: InjectionResult) -> tuple[Considered, ...]:
    """Each returned context once, with its best score and its fate."""
    fates: dict[tuple[str, str], Fate] = {(each.source, each.key): each.why for each in reversed(result.dropped)}
    fates |= {(each.source, each.key): "kept" for each in result.contexts_retrieved}
    best: dict[tuple[str, str], RetrievedContext] = {}
    # A custom source may return anything. Other types than contexts fail the source.
    contexts = [each for each in returned if isinstance(each, RetrievedContext)]
    for context in sorted(contexts, key=lambda c: (-c.relevance_score, c.source, c.key)):
        best.setdefault((context.source, context.key), context)
    return tuple(Considered(context=context, fate=fates[name]) for name, context in best.items() if name in fates)


def _budget(result: InjectionResult, config: InjectionConfig) -> BudgetUse:
    return BudgetUse(
        items=len(result.contexts_retrieved),
        max_items=config.max_context_items,
        tokens=result.total_tokens,
        max_tokens=config.max_context_tokens,
        size=result.total_context_size,
        max_size=config.max_context_size_bytes,
    )


def _ignore_event(_event: str, _facts: dict[str, Any]) -> None:
    """A replay streams no events."""
