"""Reads explicit statements of agents and handoffs that something is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master._internal.shapes import absent, dict_of, fields_text, items_of, read, text_of, truthy
from langgraph_scrum_master.model import Flag, Turn
from langgraph_scrum_master.protocols import State

REQUEST_TOOL = "request_context"
"""The tool with which an agent asks for context."""

STRUCTURED = "structured_response"
"""The state key in which `create_agent` returns structured output."""

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
"""Fields of structured output that name what is missing."""

OUTPUT = "_output"
"""Suffix of the state keys with agents' output: `dev_output`, `analyst_output`."""

OURS = "sm_output"

_MOST_NEEDS = 100
"""Maximum number of items per field."""


class Flags:
    """The flags in the latest turn of each agent."""

    __slots__ = ("by_agent",)

    def __init__(self) -> None:
        self.by_agent: dict[str, tuple[Flag, ...]] = {}

    def add(self, turn: Turn) -> None:
        """Process the next turn."""
        if turn.kind != "agent":
            return
        self.by_agent.pop(turn.agent, None)
        flags: tuple[Flag, ...] = ()
        if turn.tool_calls or not _MARKS.isdisjoint(turn.marks):
            flags = tuple(_marks_and_calls(turn))
        elif _OBJECT.match(turn.text):
            flags = tuple(_json_flags(turn))
        if flags:
            self.by_agent[turn.agent] = flags

    def forget(self, turn: Turn) -> None:
        """Drop the flags of a turn that left the window."""
        flags = self.by_agent.get(turn.agent)
        if flags and flags[0].origin == turn.id:
            del self.by_agent[turn.agent]

    def all(self) -> tuple[Flag, ...]:
        """All flags, by agent."""
        return tuple([flag for flags in self.by_agent.values() for flag in flags])


def output_keys(state: State) -> list[str]:
    """The state keys with agents' output, without ours."""
    return [key for key in state if key.endswith(OUTPUT) and key != OURS]


def state_flags(
    state: State, current_agent: str, target: str, requirements: Mapping[str, Sequence[str]]
) -> Iterator[Flag]:
    """Flags in the state's keys and in the pending handoff to `target`."""
    if needs := _needs(state.get("missing_context")):
        yield _flag(current_agent, needs, "missing_context")
    if (answer := state.get(STRUCTURED)) is not None and (needs := _output_needs(answer)):
        yield _flag(current_agent, needs, STRUCTURED)
    for key in output_keys(state):
        if needs := _output_needs(state.get(key)):
            yield _flag(key.removesuffix(OUTPUT), needs, key)
    if target:
        yield from _required(state, target, requirements)


def _marks_and_calls(turn: Turn) -> Iterator[Flag]:
    if needs := _needs(turn.marks.get("missing_context")) or _missing_fields(turn.marks.get("parsed")):
        text = turn.text.strip()
        yield _flag(turn.agent, needs if needs != _UNNAMED or not text else (text,), turn.id)
    for call in turn.tool_calls:
        arguments = dict_of(json.loads(call.arguments))
        if call.name == REQUEST_TOOL:
            words = " ".join(value for value in arguments.values() if isinstance(value, str))
            yield Flag(agent=turn.agent, need=words or turn.text.strip(), origin=turn.id)
        elif needs := _missing_fields(arguments):
            yield _flag(turn.agent, needs, turn.id)


def _json_flags(turn: Turn) -> Iterator[Flag]:
    """Flags in a turn that is a JSON object."""
    with suppress(ValueError, RecursionError):
        if needs := _missing_fields(_from_json(turn.text)):
            yield _flag(turn.agent, needs, turn.id)


def _from_json(text: str) -> object:
    return json.loads(text.strip().removeprefix("```json").strip("`\n "))


_OBJECT = lazy_pattern(r"\s*(?:```(?:json)?\s*)?\{")
_YES = lazy_pattern(r"true|yes", re.I)
_REASONS = ("context_query", "missing_reason", "reason", "details")
_NAMING = ("question", "text", "name", "description", "key")
_NOTHING = lazy_pattern(
    r"\W*|\W*(?:none|null|nil|n/?a|no|nothing|not applicable|false|no (?:open |missing |further )?\w+)"
    r"(?: (?:at (?:the|this) moment|is missing|missing|needed|required))?\W*",
    re.I,
)
_MARKS = frozenset(("missing_context", "parsed"))
_UNNAMED = ("missing context",)


def _flag(agent: str, needs: tuple[str, ...], origin: str) -> Flag:
    parts = needs if len(needs) > 1 else ()
    return Flag(agent=agent, need=", ".join(needs), origin=origin, parts=parts, unnamed=needs == _UNNAMED)


def _output_needs(output: object) -> tuple[str, ...]:
    """What an agent's output names as missing: an object, its JSON, or a list of them, of which the last counts.

    Fields are also read one level down, as in `{"result": {"missing_context": …}}`.
    """
    if isinstance(output, list | tuple) and output:
        output = output[-1]
    if isinstance(output, str) and _OBJECT.match(output):
        with suppress(ValueError, RecursionError):
            output = _from_json(output)
    inner = (value for value in dict_of(output).values() if isinstance(value, Mapping))
    return next(filter(None, map(_missing_fields, (output, *inner))), ())


def _missing_fields(answer: object) -> tuple[str, ...]:
    """What structured output names as missing in one of `MISSING_FIELDS`."""
    values = [read(answer, name) for name in MISSING_FIELDS]
    named = next((needs for value in values if (needs := _needs(value)) != _UNNAMED and needs), ())
    if named or not _needs(read(answer, MISSING_FIELDS[0])):
        return named
    # Only true: the reason names it better than the agent's current work does.
    reasons = (text_of(read(answer, name)).strip() for name in _REASONS)
    return next(((reason,) for reason in reasons if reason), _UNNAMED)


def _needs(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        named = () if _NOTHING.fullmatch(value) else (value.strip(),)
        return _UNNAMED if named and _YES.fullmatch(named[0]) else named
    if isinstance(value, Mapping):
        return tuple(str(key) for key, missing in value.items() if truthy(missing))
    if items := items_of(value):
        return tuple(need for item in items[:_MOST_NEEDS] if not _NOTHING.fullmatch(need := _text(item)))
    return _UNNAMED if value is True else ()


def _text(item: object) -> str:
    if not isinstance(item, Mapping):
        return item.strip() if isinstance(item, str) else "" if item is None else fields_text(item)
    return next(filter(None, (text_of(read(item, name)).strip() for name in _NAMING)), "") or fields_text(item)


def _required(state: State, target: str, requirements: Mapping[str, Sequence[str]]) -> Iterator[Flag]:
    handoff = state.get("handoff_context")
    declared = (text_of(key) for key in items_of(read(handoff, "required_context")))
    needed = dict.fromkeys([*filter(None, declared), *requirements.get(target, ())])
    missing = tuple(key for key in needed if absent(state.get(key)) and absent(read(handoff, key)))
    if missing:
        words = tuple(key.replace("_", " ") for key in missing)
        yield replace(_flag(target, words, "handoff_context"), missing=missing)
