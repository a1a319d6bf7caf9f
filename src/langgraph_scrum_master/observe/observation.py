"""All that is observed, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from langgraph_scrum_master.model import Observation, Turn
from langgraph_scrum_master.observe.cycles import read_cycles
from langgraph_scrum_master.observe.flags import read_flags
from langgraph_scrum_master.observe.gates import read_gates
from langgraph_scrum_master.observe.handoffs import pending_target, read_handoffs
from langgraph_scrum_master.observe.pace import read_paces
from langgraph_scrum_master.observe.questions import read_questions
from langgraph_scrum_master.observe.turns import UNNAMED, read_turns
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.shapes import read, text_of, truthy

SCRUM_MASTERS = ("sm", "scrum_master")
"""Names under which a scrum master is at turn itself: it is not the one that lacks context."""


def observe(state: State, *, now: str, requirements: Mapping[str, Sequence[str]] | None = None) -> Observation:
    """What the state says about the team; what it does not hold, or holds in another shape, is left out."""
    named = text_of(state.get("current_agent")) or text_of(state.get("active_agent"))
    turns = _with_name(read_turns(state.get("messages")), named)
    current = (named if named not in SCRUM_MASTERS else "") or _last_agent(turns) or named
    target = pending_target(state.get("handoff_context"), current, turns)
    return Observation(
        now=now,
        turns=turns,
        current_agent=current,
        handoff_target=target,
        handoffs=read_handoffs(turns),
        questions=read_questions(turns),
        gates=read_gates(state),
        gate_blocked=truthy(state.get("gate_blocked")),
        flags=tuple(read_flags(state, turns, current, target, requirements or {})),
        cycles=tuple(read_cycles(state, turns, current, now)),
        paces=tuple(read_paces(state, turns, current)),
        task=_task(state, turns),
    )


def _with_name(turns: tuple[Turn, ...], name: str) -> tuple[Turn, ...]:
    """The turns, the newest of an unnamed agent under the name of the agent that is at turn."""
    last = next((i for i, turn in reversed(list(enumerate(turns))) if turn.kind == "agent"), None)
    if last is None or not name or turns[last].agent != UNNAMED:
        return turns
    return (*turns[:last], replace(turns[last], agent=name), *turns[last + 1 :])


def _last_agent(turns: Sequence[Turn]) -> str:
    return next((turn.agent for turn in reversed(turns) if turn.kind == "agent"), "")


def _task(state: State, turns: Sequence[Turn]) -> str:
    story = state.get("current_story")
    named = text_of(story) or " ".join(filter(None, (text_of(read(story, key)) for key in ("story_id", "title"))))
    return named or next((turn.text for turn in reversed(turns) if turn.kind == "human"), "")
