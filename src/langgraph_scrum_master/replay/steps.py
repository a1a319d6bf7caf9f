"""Snapshot → step: the pipeline once more, with the clock of then and an ear at every source."""

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
from langgraph_scrum_master.replay.model import BudgetUse, Considered, Fate, ReplayStep, Said
from langgraph_scrum_master.scrum_master import ScrumMaster
from langgraph_scrum_master.team.observe import Watcher, cycle_analysis
from langgraph_scrum_master.team.pipeline import Pipeline, Sighting
from langgraph_scrum_master.team.state import STATE_KEYS

_PATIENCE = 60.0
"""Seconds that sources have at least: what a replay gives must not depend on how busy the machine is."""

Play: TypeAlias = Callable[[str, Snapshot], Awaitable[ReplayStep]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """With what snapshots are played."""

    scrum_master: ScrumMaster | None
    config: InjectionConfig | Mapping[str, Any] | None
    memory: MemoryStore | None

    def run(self, *, carried: bool) -> Play:
        """Plays the snapshots of one run, one after the other."""
        watcher, written, before = Watcher(), dict[str, dict[str, Any]](), dict[str, tuple[Turn, ...]]()

        async def play(where: str, snapshot: Snapshot) -> ReplayStep:
            ours = written.setdefault(snapshot.thread, {}) if carried else {}
            pipeline, heard = self._pipeline(snapshot, watcher)
            at = snapshot.at if instant(snapshot.at) >= 0 else ""
            # The state that the scrum master itself looked at came without the time of a checkpoint.
            dated = snapshot.origin == "checkpoint" and at and not snapshot.ran
            state = {**snapshot.state, **ours}
            sighting = await off_loop(pipeline.sight, Dated(state, at) if dated and state else state)
            result = await pipeline.serve(sighting, self._memory(), _unheard)
            update = pipeline.update(sighting, result)
            ours.update({key: update[key] for key in STATE_KEYS if key in update})
            said = _said(sighting.observation, before.get(snapshot.thread, ()))
            before[snapshot.thread] = sighting.observation.turns
            return replace(_step(where, snapshot, sighting, result, heard, pipeline.config), turns=said)

        return play

    def _memory(self) -> MemoryStore | None:
        return self.memory if self.memory is not None or self.scrum_master is None else self.scrum_master.memory

    def _pipeline(self, snapshot: Snapshot, watcher: Watcher) -> tuple[Pipeline, Heard]:
        moment = _moment(snapshot)
        base = replace(
            self.scrum_master.pipeline if self.scrum_master is not None else Pipeline(),
            config=settings(snapshot, self.config, self.scrum_master),
            clock=lambda: moment,
            watcher=watcher,
            recorder=None,
            snapshots=None,
            assistant=None,
        )
        sources = base.asked(self._memory())
        heard = Heard(tuple(source.name for source in sources), [], [])
        # One that is given takes the place of its namesake.
        return replace(base, sources=tuple(_Overheard(source, heard) for source in sources)), heard


class Dated(NamedTuple):
    """A state and when it was saved, in the shape of LangGraph's own snapshots."""

    values: dict[str, Any]
    created_at: str


class Heard(NamedTuple):
    """Which sources there are, what they were asked, and what they offered."""

    sources: tuple[str, ...]
    queries: list[str]
    offered: list[object]


class _Overheard:
    """A source, with a note of what it is asked and offers."""

    def __init__(self, source: Source, heard: Heard) -> None:
        self.name = source.name
        self._source = source
        self._heard = heard

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """What the source itself finds."""
        self._heard.queries.append(query.text)
        found = list(await self._source.find(query, state))
        self._heard.offered.extend(found)
        return found


def settings(
    snapshot: Snapshot, given: InjectionConfig | Mapping[str, Any] | None, scrum_master: ScrumMaster | None = None
) -> InjectionConfig:
    """The settings for a snapshot: what is given, else the scrum master's, else those that were recorded."""
    if scrum_master is not None:
        own = scrum_master.pipeline.config
    else:
        own = InjectionConfig.from_dict(snapshot.config) if snapshot.config is not None else InjectionConfig()
    chosen = given if isinstance(given, InjectionConfig) else replace(own, **_named(given or {}))
    return replace(chosen, log_injections=False, deadline=max(chosen.deadline, _PATIENCE))


def _named(given: Mapping[str, Any]) -> dict[str, Any]:
    known = [each.name for each in fields(InjectionConfig)]
    if unknown := sorted(set(given) - set(known)):
        raise ConfigError(f"there are no settings {unknown}, they must be among {known}")
    return dict(given)


def _moment(snapshot: Snapshot) -> float:
    """The clock of then: as recorded, else that of the newest message that tells, else the epoch."""
    if (known := instant(snapshot.at)) >= 0:
        return known
    times = (turn.time for turn in reversed(read_turns(snapshot.state.get("messages"))) if turn.time is not None)
    return max(0.0, next(times, 0.0))


def _step(
    where: str,
    snapshot: Snapshot,
    sighting: Sighting,
    result: InjectionResult | None,
    heard: Heard,
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
        gaps=sighting.gaps,
        given_up=sighting.given_up,
        queries=tuple(dict.fromkeys(heard.queries)),
        considered=_considered(heard.offered, result) if result is not None else (),
        result=result,
        budget=_budget(result, config) if result is not None else None,
        config=config.to_dict(),
        ran=snapshot.ran,
        recorded=snapshot.result,
        unasked=tuple(name for name in snapshot.sources if name not in heard.sources),
        failure=sighting.failure,
    )


def _said(observation: Observation, before: tuple[Turn, ...]) -> tuple[Said, ...]:
    """The turns that came after those of the step before."""
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
    """How many of the turns were there before; the oldest may be gone, and the same may be said again."""
    old, new = [turn.id for turn in before], [turn.id for turn in now]
    return next((len(old) - start for start in range(len(old)) if old[start:] == new[: len(old) - start]), 0)


def _newest(sighting: Sighting) -> Turn | None:
    return sighting.observation.turns[-1] if sighting.observation.turns else None


def _considered(offered: Iterable[object], result: InjectionResult) -> tuple[Considered, ...]:
    """Each context that was offered once, at its best, with what became of it."""
    fates: dict[tuple[str, str], Fate] = {(each.source, each.key): each.why for each in reversed(result.dropped)}
    fates |= {(each.source, each.key): "kept" for each in result.contexts_retrieved}
    best: dict[tuple[str, str], RetrievedContext] = {}
    # A source of somebody's may offer anything: what is no context fails that source.
    contexts = [each for each in offered if isinstance(each, RetrievedContext)]
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


def _unheard(_event: str, _facts: dict[str, Any]) -> None:
    """Nobody watches a replay."""
