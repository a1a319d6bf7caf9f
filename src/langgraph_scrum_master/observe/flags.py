"""An agent's own word, or its handoff's, that it lacks something."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from langgraph_scrum_master.model import Flag, Turn
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.shapes import absent, dict_of, items_of, read, text_of

REQUEST_TOOL = "request_context"
"""The tool with which an agent asks for context."""

STRUCTURED = "structured_response"
"""The state key in which `create_agent` leaves an agent's structured output."""

MISSING_FIELDS = (
    "missing_context",
    "missing_information",
    "missing_info",
    "needed_context",
    "needs_context",
    "context_needed",
    "clarification_needed",
    "open_questions",
)
"""Fields of structured output in which agents say what they lack."""


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
        flags: tuple[Flag, ...] = ()
        if turn.tool_calls or not _MARKS.isdisjoint(turn.marks):
            flags = tuple(_said(turn))
        elif turn.text.startswith("{"):
            flags = tuple(_written(turn))
        if flags:
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
    """What the state's own keys, and the pending handoff to `target`, say is missing."""
    if needs := _needs(state.get("missing_context")):
        yield _flag(current_agent, needs, "missing_context")
    if (answer := state.get(STRUCTURED)) is not None and (needs := _confessed(answer)):
        yield _flag(current_agent, needs, STRUCTURED)
    if target:
        yield from _required(state, target, requirements)


def _said(turn: Turn) -> Iterator[Flag]:
    if needs := _needs(turn.marks.get("missing_context")) or _confessed(turn.marks.get("parsed")):
        said = turn.text.strip()
        yield _flag(turn.agent, needs if needs != _UNNAMED or not said else (said,), turn.id)
    for call in turn.tool_calls:
        arguments = dict_of(json.loads(call.arguments))
        if call.name == REQUEST_TOOL:
            words = " ".join(value for value in arguments.values() if isinstance(value, str))
            yield Flag(agent=turn.agent, need=words or turn.text.strip(), origin=turn.id)
        elif needs := _confessed(arguments):
            yield _flag(turn.agent, needs, turn.id)


def _written(turn: Turn) -> Iterator[Flag]:
    """What an agent says whose words are a JSON object."""
    with suppress(ValueError, RecursionError):
        if needs := _confessed(json.loads(turn.text)):
            yield _flag(turn.agent, needs, turn.id)


_MARKS = frozenset(("missing_context", "parsed"))
_UNNAMED = ("missing context",)


def _flag(agent: str, needs: tuple[str, ...], origin: str) -> Flag:
    return Flag(agent=agent, need=", ".join(needs), origin=origin, parts=needs if len(needs) > 1 else ())


def _confessed(answer: object) -> tuple[str, ...]:
    """What an agent's structured output names as missing, in a field for that."""
    fields = (read(answer, name) for name in MISSING_FIELDS)
    return next((needs for value in fields if value is not True and (needs := _needs(value))), ())


def _needs(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value.strip(),) if value.strip() else ()
    if isinstance(value, Mapping):
        return tuple(str(key) for key, missing in value.items() if missing)
    if items := items_of(value):
        return tuple(str(item) for item in items)
    return _UNNAMED if value is True else ()


def _required(state: State, target: str, requirements: Mapping[str, Sequence[str]]) -> Iterator[Flag]:
    handoff = state.get("handoff_context")
    declared = (text_of(key) for key in items_of(read(handoff, "required_context")))
    needed = dict.fromkeys([*filter(None, declared), *requirements.get(target, ())])
    missing = tuple(key for key in needed if absent(state.get(key)) and absent(read(handoff, key)))
    if missing:
        words = tuple(key.replace("_", " ") for key in missing)
        yield replace(_flag(target, words, "handoff_context"), missing=missing)
