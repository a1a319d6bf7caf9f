"""Turns → handoffs: work going from one agent to another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise

from langgraph_scrum_master.model import Handoff, Turn
from langgraph_scrum_master.shapes import absent, read, text_of, truthy

_OUT, _BACK = "transfer_to_", "transfer_back_to_"


def read_handoffs(turns: Sequence[Turn]) -> tuple[Handoff, ...]:
    """The handoffs that tool calls show, and where none do, those that the change of speaker shows."""
    called = tuple(handoff for turn in turns for handoff in _called(turn))
    return called or tuple(_by_speaker(turns))


def pending_target(handoff: object, current_agent: str, turns: Sequence[Turn]) -> str:
    """The agent that `handoff_context` hands work to, unless it has spoken since; nothing if there is none."""
    if absent(handoff) or not truthy(handoff):
        return ""
    target = text_of(read(handoff, "target_agent")) or current_agent
    source = text_of(read(handoff, "source_agent"))
    speakers = [turn.agent for turn in turns if turn.kind == "agent"]
    since = len(speakers) - speakers[::-1].index(source) if source in speakers else 0
    return "" if target in speakers[since:] else target


def _called(turn: Turn) -> Iterator[Handoff]:
    for call in turn.tool_calls:
        if call.name.startswith(_BACK):
            yield Handoff(source=turn.agent, target=call.name.removeprefix(_BACK), turn=turn.id, back=True)
        elif call.name.startswith(_OUT):
            yield Handoff(source=turn.agent, target=call.name.removeprefix(_OUT), turn=turn.id)
        elif call.name == "task" and (worker := _argument(call.arguments, "subagent_type")):
            yield Handoff(source=turn.agent, target=worker, turn=turn.id)


def _argument(arguments: str, name: str) -> str:
    return text_of(read(json.loads(arguments), name))


def _by_speaker(turns: Sequence[Turn]) -> Iterator[Handoff]:
    agents = [turn for turn in turns if turn.kind == "agent"]
    for before, after in pairwise(agents):
        if before.agent != after.agent:
            yield Handoff(source=before.agent, target=after.agent, turn=after.id)
