"""An agent's own word, or its handoff's, that it lacks something."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from langgraph_scrum_master.model import Flag, Turn
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.shapes import absent, dict_of, items_of, read, text_of

REQUEST_TOOL = "request_context"
"""The tool with which an agent asks for context."""


class Flagged:
    """What the latest turn of each agent says it lacks."""

    __slots__ = ("_flags",)

    def __init__(self) -> None:
        self._flags: dict[str, tuple[Flag, ...]] = {}

    def add(self, turn: Turn) -> None:
        """Take in the next turn."""
        if turn.kind != "agent":
            return
        self._flags.pop(turn.agent, None)
        if (turn.marks or turn.tool_calls) and (flags := tuple(_said(turn))):
            self._flags[turn.agent] = flags

    def forget(self, turn: Turn) -> None:
        """Let go of what was said in a turn that is out of the window."""
        flags = self._flags.get(turn.agent)
        if flags and flags[0].origin == turn.id:
            del self._flags[turn.agent]

    def raised(self) -> Iterator[Flag]:
        """The flags, agent by agent."""
        for flags in self._flags.values():
            yield from flags


def state_flags(
    state: State, current_agent: str, target: str, requirements: Mapping[str, Sequence[str]]
) -> Iterator[Flag]:
    """What the state's own key, and the pending handoff to `target`, say is missing."""
    if need := _need(state.get("missing_context")):
        yield Flag(agent=current_agent, need=need, origin="missing_context")
    if target:
        yield from _required(state, target, requirements)


def _said(turn: Turn) -> Iterator[Flag]:
    if need := _need(turn.marks.get("missing_context")):
        yield Flag(agent=turn.agent, need=need if need != _UNNAMED else turn.text.strip() or need, origin=turn.id)
    for call in turn.tool_calls:
        if call.name == REQUEST_TOOL:
            words = " ".join(value for value in dict_of(json.loads(call.arguments)).values() if isinstance(value, str))
            yield Flag(agent=turn.agent, need=words or turn.text.strip(), origin=turn.id)


_UNNAMED = "missing context"


def _need(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        return ", ".join(str(key) for key, missing in value.items() if missing)
    if items := items_of(value):
        return ", ".join(str(item) for item in items)
    return _UNNAMED if value is True else ""


def _required(state: State, target: str, requirements: Mapping[str, Sequence[str]]) -> Iterator[Flag]:
    handoff = state.get("handoff_context")
    declared = (text_of(key) for key in items_of(read(handoff, "required_context")))
    needed = dict.fromkeys([*filter(None, declared), *requirements.get(target, ())])
    missing = tuple(key for key in needed if absent(state.get(key)) and absent(read(handoff, key)))
    if missing:
        words = ", ".join(key.replace("_", " ") for key in missing)
        yield Flag(agent=target, need=words, origin="handoff_context", missing=missing)
