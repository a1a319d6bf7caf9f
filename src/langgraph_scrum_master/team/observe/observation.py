"""Combines what the messages and the state keys show into an `Observation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from langgraph_scrum_master._internal.shapes import read, text_of, truthy
from langgraph_scrum_master.model import Observation
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.team.observe.cycles import reported_cycles
from langgraph_scrum_master.team.observe.flags import output_keys, state_flags
from langgraph_scrum_master.team.observe.handoffs import pending_target
from langgraph_scrum_master.team.observe.health import read_health
from langgraph_scrum_master.team.observe.pace import reported_paces
from langgraph_scrum_master.team.observe.watch import Watch, Watcher
from langgraph_scrum_master.team.state import FIGURES_KEY
from langgraph_scrum_master.team.tuning import DetectionTuning

TEAM_KEYS = (
    *("current_story", "handoff_context", "missing_context", "structured_response"),
    *("gate_blocked", "gate_failure", "gate_results", "health_status", "cycle_analysis"),
)
"""The state keys about the team."""

_TEAM_KEYS = frozenset(TEAM_KEYS)

SCRUM_MASTERS = ("sm", "scrum_master")
"""Names of a scrum master as the current agent; it is not the one that lacks context."""


def observe(
    state: State,
    *,
    now: str,
    requirements: Mapping[str, Sequence[str]] | None = None,
    watcher: Watcher | None = None,
    saved_at: float | None = None,
) -> Observation:
    """What the state says about the team. Missing and malformed parts are ignored.

    A watcher that knows the conversation reads only its new messages. `saved_at` is the time of the state's checkpoint.
    """
    watcher, at_turn = watcher or Watcher(), _at_turn(state)
    watch = watcher.take(state.get("messages"), at_turn, state.get(FIGURES_KEY), saved_at)
    observation = _observation(state, watch, at_turn, now)
    if has_team_keys(state):
        observation = _with_state_keys(observation, state, requirements or {}, watcher.tuning)
    watcher.release(state.get("messages"), watch)
    return observation


def glance(state: State, watcher: Watcher, saved_at: float | None = None, now: str = "") -> Observation | None:
    """The observation if the built-in detectors would find nothing in it; None if `observe` is needed.

    `saved_at` is the time of the newest message if it has none. Without `now`, only the statistics are filled in.
    """
    figures, at_turn = state.get(FIGURES_KEY), _at_turn(state)
    watch = watcher.take(state.get("messages"), at_turn, figures, saved_at)
    quiet = watch.quiet and not has_team_keys(state)
    seen = _observation(state, watch, at_turn, now) if quiet and now else None
    due = watch.paces.due(figures, len(watch.turns)) if quiet and seen is None else None
    watcher.release(state.get("messages"), watch)
    if not quiet:
        return None
    return seen or (Observation(now="", figures=due) if due is not None else _EMPTY)


_EMPTY = Observation(now="")


def _at_turn(state: State) -> str:
    return text_of(state.get("current_agent")) or text_of(state.get("active_agent"))


def has_team_keys(state: State) -> bool:
    """Whether the state has keys about the team beside the messages."""
    # Called in each step, so it iterates over the keys only once.
    return any(value is not None and key in _TEAM_KEYS for key, value in state.items()) or bool(output_keys(state))


def _observation(state: State, watch: Watch, at_turn: str, now: str) -> Observation:
    """The observation from the messages alone."""
    turns = tuple(watch.turns)
    return Observation(
        now=now,
        turns=turns,
        current_agent=(at_turn if at_turn not in SCRUM_MASTERS else "") or watch.handoffs.speaker or at_turn,
        handoffs=watch.handoffs.latest(),
        questions=watch.questions.open(),
        flags=watch.flags.all(),
        gates=tuple(watch.gates.by_gate.values()),
        cycles=watch.cycles(),
        paces=(watch.paces.newest,) if watch.paces.newest is not None else (),
        task=watch.request,
        cycle_times=watch.paces.cycle_times(),
        figures=watch.paces.due(state.get(FIGURES_KEY), len(turns)),
    )


def _with_state_keys(
    seen: Observation, state: State, requirements: Mapping[str, Sequence[str]], tuning: DetectionTuning
) -> Observation:
    """The observation with the information of the state keys added."""
    from langgraph_scrum_master.team.observe.gates import read_gates

    current, health = seen.current_agent, state.get("health_status")
    target = pending_target(state.get("handoff_context"), current, seen.turns)
    measured = len(seen.cycle_times.get(current, ())) > tuning.pace_samples
    cycles = reported_cycles(state.get("cycle_analysis"), seen.turns, current, seen.now, tuning.reported_cycle_seconds)
    return replace(
        seen,
        handoff_target=target,
        gates=(*read_gates(state), *seen.gates),
        gate_blocked=truthy(state.get("gate_blocked")),
        flags=(*state_flags(state, current, target, requirements), *seen.flags),
        cycles=(*cycles, *seen.cycles),
        paces=seen.paces if seen.paces or measured else tuple(reported_paces(health, current, tuning.pace_of_usual)),
        task=_task(state.get("current_story")) or seen.task,
        reported_health=read_health(health) if health is not None else None,
    )


def _task(story: object) -> str:
    return text_of(story) or " ".join(filter(None, (text_of(read(story, key)) for key in ("story_id", "title"))))
