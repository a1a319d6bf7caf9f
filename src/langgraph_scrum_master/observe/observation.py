"""All that is observed, put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from langgraph_scrum_master.model import Cycle, Observation, Pace
from langgraph_scrum_master.observe.cycles import analysed
from langgraph_scrum_master.observe.flags import state_flags
from langgraph_scrum_master.observe.gates import read_gates
from langgraph_scrum_master.observe.handoffs import pending_target
from langgraph_scrum_master.observe.health import read_health
from langgraph_scrum_master.observe.pace import reported
from langgraph_scrum_master.observe.watch import Watch, Watcher
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.shapes import read, text_of, truthy
from langgraph_scrum_master.state import FIGURES_KEY

SCRUM_MASTERS = ("sm", "scrum_master")
"""Names under which a scrum master is at turn itself: it is not the one that lacks context."""


def observe(
    state: State,
    *,
    now: str,
    requirements: Mapping[str, Sequence[str]] | None = None,
    watcher: Watcher | None = None,
    saved_at: float | None = None,
) -> Observation:
    """What the state says about the team; what it does not hold, or holds in another shape, is left out.

    With a watcher that has seen the conversation before, only what is new in it is read. `saved_at` is the time of the
    checkpoint that the state comes from.
    """
    named = text_of(state.get("current_agent")) or text_of(state.get("active_agent"))
    watcher = watcher or Watcher()
    watch = watcher.take(state.get("messages"), named, state.get(FIGURES_KEY), saved_at)
    observation = _observation(state, watch, named, now, requirements or {})
    watcher.keep(state.get("messages"), watch)
    return observation


def _observation(
    state: State, watch: Watch, named: str, now: str, requirements: Mapping[str, Sequence[str]]
) -> Observation:
    turns = tuple(watch.turns)
    current = (named if named not in SCRUM_MASTERS else "") or watch.handoffs.speaker or named
    handoff = state.get("handoff_context")
    target = pending_target(handoff, current, turns) if handoff is not None else ""
    return Observation(
        now=now,
        turns=turns,
        current_agent=current,
        handoff_target=target,
        handoffs=watch.handoffs.latest(),
        questions=watch.questions.open(),
        gates=read_gates(state),
        gate_blocked=truthy(state.get("gate_blocked")),
        flags=(*state_flags(state, current, target, requirements), *watch.flags.raised()),
        cycles=tuple(_cycles(state, watch, current, now)),
        paces=tuple(_paces(state, watch, current)),
        task=_task(state) or watch.request,
        cycle_times=watch.paces.cycle_times(),
        figures=watch.paces.due(state.get(FIGURES_KEY), len(turns)),
        reported_health=read_health(health) if (health := state.get("health_status")) is not None else None,
    )


def _cycles(state: State, watch: Watch, current: str, now: str) -> Iterator[Cycle]:
    if "cycle_analysis" in state:
        yield from analysed(state["cycle_analysis"], tuple(watch.turns), current, now)
    yield from watch.repeats.cycles()
    if watch.rounds.cycle is not None:
        yield watch.rounds.cycle


def _paces(state: State, watch: Watch, current: str) -> Iterator[Pace]:
    if watch.paces.newest is not None:
        yield watch.paces.newest
    elif not watch.paces.timed and "health_status" in state:
        yield from reported(state["health_status"], current)


def _task(state: State) -> str:
    if (story := state.get("current_story")) is None:
        return ""
    return text_of(story) or " ".join(filter(None, (text_of(read(story, key)) for key in ("story_id", "title"))))
