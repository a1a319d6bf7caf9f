"""Turns → handoffs: work going from one agent to another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from langgraph_scrum_master.model import Handoff, Turn
from langgraph_scrum_master.shapes import read, text_of

_OUT, _BACK = "transfer_to_", "transfer_back_to_"


def read_handoffs(turns: Sequence[Turn]) -> tuple[Handoff, ...]:
    """The handoffs that tool calls show, and where none do, those that the change of speaker shows."""
    called = tuple(handoff for turn in turns for handoff in _called(turn))
    return called or tuple(_by_speaker(turns))


def pending_target(state_handoff: object, current_agent: str, last_speaker: str) -> str:
    """The agent that the state's `handoff_context` hands work to, unless it has spoken; nothing if there is none."""
    if not state_handoff:
        return ""
    target = text_of(read(state_handoff, "target_agent")) or current_agent
    return target if target != last_speaker else ""


def _called(turn: Turn) -> Iterator[Handoff]:
    for call in turn.tool_calls:
        if call.name.startswith(_BACK):
            yield Handoff(source=turn.agent, target=call.name.removeprefix(_BACK), turn=turn.id, back=True)
        elif call.name.startswith(_OUT):
            yield Handoff(source=turn.agent, target=call.name.removeprefix(_OUT), turn=turn.id)
        elif call.name == "task" and (worker := _argument(call.arguments, "subagent_type")):
            yield Handoff(source=turn.agent, target=worker, turn=turn.id)


def _argument(arguments: str, name: str) -> str:
    parsed: Any = json.loads(arguments)
    return text_of(read(parsed, name))


def _by_speaker(turns: Sequence[Turn]) -> Iterator[Handoff]:
    agents = [turn for turn in turns if turn.kind == "agent"]
    for before, after in pairwise(agents):
        if before.agent != after.agent:
            yield Handoff(source=before.agent, target=after.agent, turn=after.id)
