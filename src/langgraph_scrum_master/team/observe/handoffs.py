"""Tracks handoffs between agents."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator

from langgraph_scrum_master._internal.shapes import absent, read, text_of, truthy
from langgraph_scrum_master.model import Handoff, ToolCall, Turn

_LATEST = 50
"""Maximum number of handoffs."""

_LONGEST = 500
"""Maximum characters of a handoff's text."""

_OUT, _BACK = "transfer_to_", "transfer_back_to_"


class Handoffs:
    """The latest handoffs by tool call or, if there are none, by change of speaker."""

    __slots__ = ("_by_call", "_by_speaker", "_changes", "_last_turn")

    def __init__(self) -> None:
        self._by_call: deque[Handoff] = deque(maxlen=_LATEST)
        self._by_speaker: deque[Handoff] = deque(maxlen=_LATEST)
        self._changes: deque[tuple[Turn, Turn]] = deque(maxlen=_LATEST)
        """Changes of speaker that were not converted yet; most steps do not need them."""
        self._last_turn: Turn | None = None
        """The latest turn of an agent."""

    @property
    def speaker(self) -> str:
        """The latest agent to speak."""
        return self._last_turn.agent if self._last_turn is not None else ""

    def add(self, turn: Turn) -> None:
        """Process the next turn."""
        if turn.kind != "agent":
            return
        if turn.tool_calls:
            self._by_call.extend(handoffs_in(turn))
        if self._last_turn is not None and self._last_turn.agent != turn.agent:
            self._changes.append((self._last_turn, turn))
        self._last_turn = turn

    def latest(self) -> tuple[Handoff, ...]:
        """The handoffs, oldest first."""
        if self._by_call:
            return tuple(self._by_call)
        self._by_speaker.extend(
            Handoff(source=before.agent, target=turn.agent, turn=turn.id, what=_clipped(before.text), time=before.time)
            for before, turn in self._changes
        )
        self._changes.clear()
        return tuple(self._by_speaker)


def pending_target(handoff: object, current_agent: str, turns: Iterable[Turn]) -> str:
    """The target of `handoff_context`; empty if there is none or it has spoken since."""
    if absent(handoff) or not truthy(handoff):
        return ""
    target = text_of(read(handoff, "target_agent")) or current_agent
    source = text_of(read(handoff, "source_agent"))
    speakers = [turn.agent for turn in turns if turn.kind == "agent"]
    since = len(speakers) - speakers[::-1].index(source) if source in speakers else 0
    return "" if target in speakers[since:] else target


def handoffs_in(turn: Turn) -> Iterator[Handoff]:
    """The handoffs in the turn's tool calls."""
    for call in turn.tool_calls:
        target, back = _target(call)
        if target:
            what = _task_text(call.arguments) or turn.text
            yield Handoff(
                source=turn.agent, target=target, turn=turn.id, back=back, what=_clipped(what), time=turn.time
            )


def hands_back(call: ToolCall) -> bool:
    """Whether the call hands the work back."""
    return call.name.startswith(_BACK)


def is_handoff(call: ToolCall) -> bool:
    """Whether the call hands work to another agent, or back."""
    return call.name.startswith((_OUT, _BACK)) or call.name == "task"


def subagent_of(call: ToolCall) -> str:
    """The subagent that the call starts, which reports in the tool result; empty for other calls."""
    return _argument(call.arguments, "subagent_type") if call.name == "task" else ""


def _target(call: ToolCall) -> tuple[str, bool]:
    if hands_back(call):
        return call.name.removeprefix(_BACK), True
    if call.name.startswith(_OUT):
        return call.name.removeprefix(_OUT), False
    return subagent_of(call), False


def _task_text(arguments: str) -> str:
    # deepagents uses `description`; handoff tools of a supervisor usually `task_description` or `instructions`.
    names = ("description", "task_description", "task", "instructions", "message")
    return next(filter(None, (_argument(arguments, name) for name in names)), "") if arguments != "{}" else ""


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} …"


def _argument(arguments: str, name: str) -> str:
    return text_of(read(json.loads(arguments), name))
