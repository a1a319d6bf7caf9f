"""Keeps what a conversation's cache holds small: shortened texts to read, and hashes of long contents to compare."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from langgraph_scrum_master._internal.shapes import items_of, read, text_of
from langgraph_scrum_master.model import ToolCall, Turn

MOST_READ = 40_000
"""Characters of a message that are read: the first and the last half of them, by hand."""


def shortened(turn: Turn) -> Turn:
    """The turn without the middle of long texts."""
    text, calls, marks = turn.text, turn.tool_calls, turn.marks
    if len(text) > MOST_READ:
        turn = replace(turn, text=_ends(text))
    if calls and any(len(call.arguments) > MOST_READ for call in calls):
        turn = replace(turn, tool_calls=tuple(map(_shortened_call, calls)))
    if marks and any(isinstance(mark, str) and len(mark) > MOST_READ for mark in marks.values()):
        short = {key: mark for key, mark in marks.items() if not isinstance(mark, str) or len(mark) <= MOST_READ}
        turn = replace(turn, marks=short)
    return turn


def size_of(turn: Turn) -> int:
    """The characters of a turn, with those of its marks."""
    size = len(turn.text)
    # A hot path: most turns have one or two marks and no calls.
    for mark in turn.marks.values():
        if isinstance(mark, str):
            size += len(mark)
    for call in turn.tool_calls:
        size += len(call.arguments)
    return size


def message_size(message: object) -> int:
    """The characters of a message, counted quickly."""
    content = read(message, "content")
    size = len(content) if isinstance(content, str) else sum(map(len, _texts(content)))
    for call in items_of(read(message, "tool_calls")):
        arguments = read(call, "args")
        values: Any = arguments.values() if isinstance(arguments, dict) else (arguments,)
        size += sum(len(each) for each in values if isinstance(each, str | list | dict))
    return size


class LongMessage:
    """Stands for a long message in comparisons, without its content. It equals messages with the same content."""

    __slots__ = ("_content", "_id", "_name", "_type")

    def __init__(self, message: object) -> None:
        self._type = type(message)
        self._id, self._name = read(message, "id"), read(message, "name")
        self._content = comparable(read(message, "content"))

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is self._type
            and read(other, "id") == self._id
            and read(other, "name") == self._name
            and comparable(read(other, "content")) == self._content
        )

    __hash__ = None  # type: ignore[assignment]


def comparable(content: object) -> object:
    """A content to compare: itself if it is short. A text's own hash is computed once, so this is fast."""
    if isinstance(content, str):
        return content if len(content) <= MOST_READ else hash(content)
    texts = _texts(content)
    return content if sum(map(len, texts)) <= MOST_READ else hash(texts)


def _texts(content: object) -> tuple[str, ...]:
    return tuple(block if isinstance(block, str) else text_of(read(block, "text")) for block in items_of(content))


def _ends(text: str) -> str:
    return f"{text[: MOST_READ // 2]}\n...\n{text[-MOST_READ // 2 :]}"


def _shortened_call(call: ToolCall) -> ToolCall:
    return replace(call, arguments=json.dumps(_ends(call.arguments))) if len(call.arguments) > MOST_READ else call
