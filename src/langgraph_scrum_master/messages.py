"""Converts messages to turns: agent, text, tool calls and time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master._internal.serialisation import json_shapes
from langgraph_scrum_master._internal.shapes import content_text, dict_of, items_of, read, text_of
from langgraph_scrum_master.model import ToolCall, Turn, TurnKind, digest, instant

WINDOW = 100
"""Number of latest messages that are read, so that the cost of a step does not grow with the history."""

SYNTHETIC = "lc_source"
"""Marks messages that software inserted, including ours."""

UNNAMED = "assistant"

BRIEFING = "session_briefing"
"""Name and mark of a message with lessons."""

_KINDS: dict[str, TurnKind] = {
    "ai": "agent",
    "assistant": "agent",
    "aimessagechunk": "agent",
    "human": "human",
    "user": "human",
    "humanmessagechunk": "human",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
}
_FIELDS = (
    *("type", "role", "name", "id", "content", "tool_calls", "tool_call_id"),
    *("additional_kwargs", "response_metadata", "timestamp"),
)
_LATEST = 1e11
"""Larger numbers are not timestamps in seconds."""

_AGENT_NAME = lazy_pattern(r"[a-z][a-z0-9_\-]*")
_UUID_LENGTH = 36
_UUID7 = lazy_pattern(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def read_turns(messages: object) -> tuple[Turn, ...]:
    """The turns of the latest messages, oldest first; items that are not messages are skipped."""
    history = items_of(messages)
    start = max(0, len(history) - WINDOW)
    turns = (read_turn(message, start + i) for i, message in enumerate(history[start:]))
    return tuple(turn for turn in turns if turn is not None)


def read_turn(message: object, index: int, synthetic: bool = False) -> Turn | None:
    """The turn of a message, or None if it is not a message. Synthetic messages count only with `synthetic`."""
    fields = _fields(message)
    marks = dict_of(fields.get("additional_kwargs"))
    kind = _kind(fields, marks, index)
    if kind is None or (SYNTHETIC in marks and not synthetic):
        return None
    content, calls = fields.get("content"), items_of(fields.get("tool_calls"))
    text = content if isinstance(content, str) else content_text(content)
    return Turn(
        id=_id(fields, text),
        agent=_agent(fields, kind, marks),
        kind=kind,
        text=text,
        tool_calls=tuple([_tool_call(call) for call in calls]) if calls else (),
        time=_time(fields, marks),
        marks=marks,
        answers=text_of(fields.get("tool_call_id")) if kind == "tool" else "",
    )


def _fields(message: object) -> Mapping[str, Any]:
    """The fields of a message: a LangChain message, one of its serialised forms, or any object."""
    if isinstance(message, tuple) and len(message) == 2:
        return {"role": message[0], "content": message[1]}
    if not isinstance(message, dict):
        # The declared fields of a LangChain message; extra fields and properties are not in `__dict__`.
        own = read(message, "__dict__")
        if isinstance(own, dict) and "additional_kwargs" in own and read(message, "__pydantic_extra__") == {}:
            return own
        return {} if isinstance(message, str) else {name: read(message, name) for name in _FIELDS}
    # Serialised by LangChain: {"lc": 1, "id": [..., "AIMessage"], "kwargs": {...}}
    if "lc" in message and isinstance(message.get("kwargs"), dict):
        name = str((items_of(message.get("id")) or [""])[-1]).lower()
        return {"type": name.removesuffix("chunk").removesuffix("message"), **message["kwargs"]}
    if isinstance(message.get("data"), dict):
        return {"type": message.get("type"), **message["data"]}
    return message


def _kind(fields: Mapping[str, Any], marks: Mapping[str, Any], index: int) -> TurnKind | None:
    type_name = text_of(fields.get("type"))
    kind = _KINDS.get(type_name) or _KINDS.get(type_name.lower())
    if kind is None:
        role = text_of(fields.get("role")).lower()
        kind = _KINDS.get(role) or ("agent" if role and fields.get("content") else None)
    # In many graphs agents send human messages with a name. The first message is the user's task.
    if kind == "human" and (text_of(marks.get("agent")) or (index > 0 and _names_an_agent(fields.get("name")))):
        return "agent"
    return kind


def _names_an_agent(name: object) -> bool:
    return bool(_AGENT_NAME.fullmatch(text_of(name))) and name not in _KINDS


def _id(fields: Mapping[str, Any], text: str) -> str:
    # Without an id, a message is identified by its text, so that trimming the history does not change it.
    own = fields.get("id")
    return str(own) if isinstance(own, (str, int)) and own != "" else f"#{digest(text_of(fields.get('name')), text)}"


def _agent(fields: Mapping[str, Any], kind: TurnKind, marks: Mapping[str, Any]) -> str:
    name = text_of(marks.get("agent")) or text_of(fields.get("name"))
    if not name and kind == "agent" and (role := text_of(fields.get("role"))):
        name = str(role) if role.lower() not in _KINDS else ""
    return name or {"agent": UNNAMED, "human": "user"}.get(kind, kind)


def _tool_call(call: object) -> ToolCall:
    function = dict_of(read(call, "function"))
    name = text_of(read(call, "name")) or text_of(function.get("name"))
    arguments = _canonical(read(call, "args", function.get("arguments")))
    return ToolCall(name=name, arguments=arguments, id=text_of(read(call, "id")))


def _canonical(arguments: object) -> str:
    with suppress(ValueError, RecursionError):
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    try:
        return json.dumps(json_shapes(arguments), sort_keys=True)
    # Nested too deeply, or a number with too many digits.
    except (RecursionError, ValueError):
        return json.dumps(str(type(arguments)))


def _time(fields: Mapping[str, Any], marks: Mapping[str, Any]) -> float | None:
    if (stamp := marks.get("timestamp")) is not None and (seconds := _seconds(stamp)) is not None:
        return seconds
    metadata = dict_of(fields.get("response_metadata"))
    for stamp in (metadata.get("timestamp"), fields.get("timestamp")):
        if stamp is not None and (seconds := _seconds(stamp)) is not None:
            return seconds
    own_id = fields.get("id")
    uuid = _UUID7.search(own_id) if isinstance(own_id, str) and len(own_id) >= _UUID_LENGTH else None
    return int(uuid[1] + uuid[2], 16) / 1000 if uuid else None


def _seconds(stamp: object) -> float | None:
    if isinstance(stamp, datetime):
        return instant(stamp.isoformat())
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
        return float(stamp) if abs(stamp) < _LATEST else None
    seconds = instant(text_of(stamp))
    return None if seconds == float("-inf") else seconds
