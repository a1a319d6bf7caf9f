"""Turns → handoffs: work going from one agent to another."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator

from langgraph_scrum_master._internal.shapes import absent, read, text_of, truthy
from langgraph_scrum_master.model import Handoff, ToolCall, Turn

_LATEST = 50
"""Handoffs that are kept."""

_LONGEST = 500
"""Characters of what goes along with a handoff."""

_OUT, _BACK = "transfer_to_", "transfer_back_to_"


class Handoffs:
    """The latest handoffs that tool calls show, and where none do, those that the change of speaker shows."""

    __slots__ = ("_by_speaker", "_called", "_changes", "_spoken")

    def __init__(self) -> None:
        self._called: deque[Handoff] = deque(maxlen=_LATEST)
        self._by_speaker: deque[Handoff] = deque(maxlen=_LATEST)
        self._changes: deque[tuple[Turn, Turn]] = deque(maxlen=_LATEST)
        """Changes of speaker that nobody has asked for yet: most steps never do."""
        self._spoken: Turn | None = None
        """What an agent said last."""

    @property
    def speaker(self) -> str:
        """The agent that spoke last."""
        return self._spoken.agent if self._spoken is not None else ""

    def add(self, turn: Turn) -> None:
        """Take in the next turn."""
        if turn.kind != "agent":
            return
        if turn.tool_calls:
            self._called.extend(called(turn))
        if self._spoken is not None and self._spoken.agent != turn.agent:
            self._changes.append((self._spoken, turn))
        self._spoken = turn

    def latest(self) -> tuple[Handoff, ...]:
        """The handoffs, oldest first."""
        if self._called:
            return tuple(self._called)
        self._by_speaker.extend(
            Handoff(source=said.agent, target=turn.agent, turn=turn.id, what=_clipped(said.text), time=said.time)
            for said, turn in self._changes
        )
        self._changes.clear()
        return tuple(self._by_speaker)


def pending_target(handoff: object, current_agent: str, turns: Iterable[Turn]) -> str:
    """The agent that `handoff_context` hands work to, unless it has spoken since; nothing if there is none."""
    if absent(handoff) or not truthy(handoff):
        return ""
    target = text_of(read(handoff, "target_agent")) or current_agent
    source = text_of(read(handoff, "source_agent"))
    speakers = [turn.agent for turn in turns if turn.kind == "agent"]
    since = len(speakers) - speakers[::-1].index(source) if source in speakers else 0
    return "" if target in speakers[since:] else target


def called(turn: Turn) -> Iterator[Handoff]:
    """The handoffs that the turn's tool calls make."""
    for call in turn.tool_calls:
        target, back = _target(call)
        if target:
            what = _words_along(call.arguments) or turn.text
            yield Handoff(
                source=turn.agent, target=target, turn=turn.id, back=back, what=_clipped(what), time=turn.time
            )


def hands_back(call: ToolCall) -> bool:
    """Whether the call gives the work back to whom it came from."""
    return call.name.startswith(_BACK)


def is_handoff(call: ToolCall) -> bool:
    """Whether the call gives work to another agent, or back."""
    return call.name.startswith((_OUT, _BACK)) or call.name == "task"


def subagent_of(call: ToolCall) -> str:
    """The subagent that the call is for, which reports in the tool's answer; nothing if it is another call."""
    return _argument(call.arguments, "subagent_type") if call.name == "task" else ""


def _target(call: ToolCall) -> tuple[str, bool]:
    if hands_back(call):
        return call.name.removeprefix(_BACK), True
    if call.name.startswith(_OUT):
        return call.name.removeprefix(_OUT), False
    return subagent_of(call), False


def _words_along(arguments: str) -> str:
    # deepagents says `description`, a supervisor's own handoff tools usually `task_description` or `instructions`.
    names = ("description", "task_description", "task", "instructions", "message")
    return next(filter(None, (_argument(arguments, name) for name in names)), "") if arguments != "{}" else ""


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} …"


def _argument(arguments: str, name: str) -> str:
    return text_of(read(json.loads(arguments), name))
