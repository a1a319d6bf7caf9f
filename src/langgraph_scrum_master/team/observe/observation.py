"""All that is observed, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from langgraph_scrum_master._internal.shapes import read, text_of, truthy
from langgraph_scrum_master.model import Observation
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.team.observe.cycles import analysed
from langgraph_scrum_master.team.observe.flags import output_keys, state_flags
from langgraph_scrum_master.team.observe.handoffs import pending_target
from langgraph_scrum_master.team.observe.health import read_health
from langgraph_scrum_master.team.observe.pace import reported
from langgraph_scrum_master.team.observe.watch import Watch, Watcher
from langgraph_scrum_master.team.state import FIGURES_KEY
from langgraph_scrum_master.team.tuning import DetectionTuning

TOLD = (
    *("current_story", "handoff_context", "missing_context", "structured_response"),
    *("gate_blocked", "gate_failure", "gate_results", "health_status", "cycle_analysis"),
)
"""The state's own keys that tell of the team."""

_TOLD = frozenset(TOLD)

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
    watcher, named = watcher or Watcher(), _at_turn(state)
    watch = watcher.take(state.get("messages"), named, state.get(FIGURES_KEY), saved_at)
    observation = _observation(state, watch, named, now)
    if _told(state):
        observation = _completed(observation, state, requirements or {}, watch.paces.timed, watcher.tuning)
    watcher.keep(state.get("messages"), watch)
    return observation


def glance(state: State, watcher: Watcher, saved_at: float | None = None, now: str = "") -> Observation | None:
    """The observation of a team at which the built-in detectors find nothing; None if it takes a closer look.

    `saved_at` is when the newest message came, where it does not say. Without `now` only the figures are filled in,
    with it all that `observe` would.
    """
    figures, named = state.get(FIGURES_KEY), _at_turn(state)
    watch = watcher.take(state.get("messages"), named, figures, saved_at)
    quiet = watch.quiet and not _told(state)
    seen = _observation(state, watch, named, now) if quiet and now else None
    due = watch.paces.due(figures, len(watch.turns)) if quiet and seen is None else None
    watcher.keep(state.get("messages"), watch)
    if not quiet:
        return None
    return seen or (Observation(now="", figures=due) if due is not None else _NOTHING_TO_SEE)


_NOTHING_TO_SEE = Observation(now="")


def _at_turn(state: State) -> str:
    return text_of(state.get("current_agent")) or text_of(state.get("active_agent"))


def _told(state: State) -> bool:
    """Whether the state's own keys tell of the team: most have none of those."""
    # Asked at each step: one walk over the keys that are there.
    return any(value is not None and key in _TOLD for key, value in state.items()) or bool(output_keys(state))


def _observation(state: State, watch: Watch, named: str, now: str) -> Observation:
    """What the turns tell."""
    turns = tuple(watch.turns)
    return Observation(
        now=now,
        turns=turns,
        current_agent=(named if named not in SCRUM_MASTERS else "") or watch.handoffs.speaker or named,
        handoffs=watch.handoffs.latest(),
        questions=watch.questions.open(),
        flags=watch.flags.raised(),
        gates=tuple(watch.gates.by_gate.values()),
        cycles=watch.cycles(),
        paces=(watch.paces.newest,) if watch.paces.newest is not None else (),
        task=watch.request,
        cycle_times=watch.paces.cycle_times(),
        figures=watch.paces.due(state.get(FIGURES_KEY), len(turns)),
    )


def _completed(
    seen: Observation, state: State, requirements: Mapping[str, Sequence[str]], timed: bool, tuning: DetectionTuning
) -> Observation:
    """The observation with what the state's own keys tell."""
    from langgraph_scrum_master.team.observe.gates import read_gates

    current, health = seen.current_agent, state.get("health_status")
    target = pending_target(state.get("handoff_context"), current, seen.turns)
    cycles = analysed(state.get("cycle_analysis"), seen.turns, current, seen.now, tuning.reported_cycle_seconds)
    return replace(
        seen,
        handoff_target=target,
        gates=(*read_gates(state), *seen.gates),
        gate_blocked=truthy(state.get("gate_blocked")),
        flags=(*state_flags(state, current, target, requirements), *seen.flags),
        cycles=(*cycles, *seen.cycles),
        paces=seen.paces if seen.paces or timed else tuple(reported(health, current, tuning.pace_of_usual)),
        task=_task(state.get("current_story")) or seen.task,
        reported_health=read_health(health) if health is not None else None,
    )


def _task(story: object) -> str:
    return text_of(story) or " ".join(filter(None, (text_of(read(story, key)) for key in ("story_id", "title"))))
