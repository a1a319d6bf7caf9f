"""Converts messages exported by other frameworks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph_scrum_master._internal.shapes import content_text, dict_of, fields_text, items_of, text_of

LISTS = ("messages", "chat_history", "chat_messages", "history", "conversation", "tasks_output", "items")
"""Keys under which exports have their messages."""


def messages_in(data: object) -> list[Any]:
    """The converted messages of an export; empty if it is not one."""
    if isinstance(data, Mapping):
        return next((messages for name in LISTS if (messages := messages_in(data.get(name)))), [])
    entries = items_of(data)
    return [as_message(entry) for entry in entries] if entries and all(map(_is_message, entries)) else []


def as_message(entry: Any) -> Any:
    """One converted message; a message in a known format is returned unchanged."""
    return next((read(entry) for fits, read in _SHAPES if fits(entry)), entry)


def _is_message(entry: object) -> bool:
    if isinstance(entry, list | tuple):
        return len(entry) == 2 and all(isinstance(part, str) for part in entry)
    known = ("content", "role", "type", "data", "lc", "raw", "output", "tool_calls", "call_id")
    return isinstance(entry, Mapping) and any(name in entry for name in known)


def _pair(entry: Sequence[str]) -> dict[str, Any]:
    return {"role": entry[0], "content": entry[1]}


def _of_autogen(entry: Mapping[str, Any]) -> dict[str, Any]:
    """In AutoGen, `source` is the agent, and tool calls and results are in the content."""
    speaker, content = text_of(entry.get("source")), entry.get("content")
    stamp = {"timestamp": entry["created_at"]} if "created_at" in entry else {}
    own = {"id": entry.get("id"), "name": speaker, **stamp}
    if entry.get("type") == "ToolCallRequestEvent":
        return {"role": "assistant", "content": "", "tool_calls": [_call(dict_of(c)) for c in items_of(content)], **own}
    if entry.get("type") == "ToolCallExecutionEvent":
        results = [dict_of(each) for each in items_of(content)]
        text = "\n".join(text_of(each.get("content")) for each in results)
        return {"role": "tool", "content": text, "tool_call_id": results[0].get("call_id") if results else None, **own}
    return {"role": "user" if speaker == "user" else "assistant", "content": content_text(content), **own}


def _of_crew(entry: Mapping[str, Any]) -> dict[str, Any]:
    """CrewAI exports the agent and the output of each task."""
    output = entry.get("raw") or entry.get("output") or ""
    return {
        "role": "assistant",
        "name": "_".join(text_of(entry.get("agent")).lower().split()) or "assistant",
        "content": output if isinstance(output, str) else fields_text(output),
        **({"timestamp": entry["timestamp"]} if "timestamp" in entry else {}),
    }


def _of_call(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [_call(entry)]}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": call.get("call_id") or call.get("id"), "name": call.get("name"), "args": call.get("arguments")}


def _of_call_output(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "tool", "content": fields_text(entry.get("output")), "tool_call_id": entry.get("call_id")}


def _is_autogen(entry: Any) -> bool:
    return isinstance(entry, Mapping) and "source" in entry and "content" in entry and "role" not in entry


def _is_crew(entry: Any) -> bool:
    return isinstance(entry, Mapping) and "agent" in entry and ("raw" in entry or "output" in entry)


def _of_type(kind: str) -> Callable[[Any], bool]:
    return lambda entry: isinstance(entry, Mapping) and entry.get("type") == kind


_SHAPES: tuple[tuple[Callable[[Any], bool], Callable[[Any], dict[str, Any]]], ...] = (
    (lambda entry: isinstance(entry, list | tuple), _pair),
    (_of_type("function_call"), _of_call),
    (_of_type("function_call_output"), _of_call_output),
    (_is_autogen, _of_autogen),
    (_is_crew, _of_crew),
)
