"""Turns → handoffs: work going from one agent to another."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator

from langgraph_scrum_master.model import Handoff, Turn
from langgraph_scrum_master.shapes import absent, read, text_of, truthy

LATEST = 50
"""Handoffs that are kept."""

_OUT, _BACK = "transfer_to_", "transfer_back_to_"


class Handoffs:
    """The latest handoffs that tool calls show, and where none do, those that the change of speaker shows."""

    __slots__ = ("_by_speaker", "_called", "speaker")

    def __init__(self) -> None:
        self._called: deque[Handoff] = deque(maxlen=LATEST)
        self._by_speaker: deque[Handoff] = deque(maxlen=LATEST)
        self.speaker = ""
        """The agent that spoke last."""

    def add(self, turn: Turn) -> None:
        """Take in the next turn."""
        if turn.kind != "agent":
            return
        if turn.tool_calls:
            self._called.extend(_called(turn))
        if self.speaker and self.speaker != turn.agent:
            self._by_speaker.append(Handoff(source=self.speaker, target=turn.agent, turn=turn.id))
        self.speaker = turn.agent

    def latest(self) -> tuple[Handoff, ...]:
        """The handoffs, oldest first."""
        return tuple(self._called or self._by_speaker)


def pending_target(handoff: object, current_agent: str, turns: Iterable[Turn]) -> str:
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
