"""Explicit signals that need no model: tool calls that ask, JSON fields with a question, and marks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master._internal.shapes import items_of, text_of
from langgraph_scrum_master.model import ToolCall, Turn

FIELDS = (
    *("question", "questions", "clarification", "clarifications", "clarifying_question", "clarifying_questions"),
    *("clarification_question", "clarification_questions", "question_for_user", "question_to_user", "ask"),
    *("blocked_on", "blocked_by", "blocker", "blockers", "waiting_for", "waiting_on", "needs", "need", "unknowns"),
    *("unclear", "missing_inputs", "required_information", "information_needed", "info_needed"),
)
"""JSON fields with what an agent asks for."""

_WHO = r"(?:human|user|person|team|teammate|colleague|expert|customer)"
_WHAT = r"(?:questions?|clarifications?|input|info|information|guidance|help|follow_?up_question)"
# Tools that ask someone, not tools that look someone up: `ask_user`, `get_user_input`, not `get_user_details`.
_TOOL = lazy_pattern(
    rf"(?:ask|prompt|consult)_?(?:for_)?(?:a_|the_)?(?:{_WHO}|{_WHAT})(?:_\w+)?"
    rf"|(?:request|get|query|need)_(?:for_)?(?:a_|the_)?(?:{_WHO}_)?{_WHAT}(?:_from_\w+)?"
    rf"|escalate_to_{_WHO}|clarify|clarification|askuserquestion",
    re.I,
)
_USERS = lazy_pattern(r"user|human|customer|person", re.I)
_CALL = lazy_pattern(
    r"\b(?P<name>(?:ask|request|query|prompt|consult)_\w+|clarify|AskUserQuestion)\s*\(\s*"
    r"(?:(?:question|query|prompt|message|text|need|about)s?\s*[=:]\s*)?(?P<quote>[\"'])(?P<question>.{3,600}?)(?P=quote)",
    re.S,
)
_WRITTEN_CALL = lazy_pattern(
    r"\s*\[(?:tool(?:[ _-](?:call|use))?|call)[ :]+(?P<name>\w+)\]\s*(?P<question>\S.*)", re.S | re.I
)
_OBJECT = lazy_pattern(r"\s*(?:```(?:json)?\s*)?\{")
_NOTHING = lazy_pattern(r"\W*(?:none|null|nil|n/?a|no|nothing|false|no \w+|-|resolved|answered|done)?\W*", re.I)
_ARGUMENTS = (
    "question",
    "questions",
    "query",
    "prompt",
    "message",
    "text",
    "request",
    "need",
    "about",
    "clarification",
)


class ExplicitAsk(NamedTuple):
    """A need with an explicit signal."""

    text: str
    form: str
    """The tool or the field."""
    of_user: bool = False
    start: int = 0
    end: int = 0


def exact_asks(turn: Turn) -> tuple[ExplicitAsk, ...]:
    """The needs of a turn with explicit signals."""
    asks = [each for call in turn.tool_calls for each in _tool_call(call)] if turn.tool_calls else []
    if "(" in turn.text:
        asks += [
            ExplicitAsk(
                call["question"],
                call["name"],
                bool(_USERS.search(call["name"])),
                call.start("question"),
                call.end("question"),
            )
            for call in _CALL.finditer(turn.text)
        ]
    if turn.text.lstrip()[:1] == "[" and (call := _WRITTEN_CALL.match(turn.text)) and _TOOL.fullmatch(call["name"]):
        asks += _transcript_call(call)
    if _OBJECT.match(turn.text):
        asks += _json_fields(turn.text)
    if not asks and turn.marks.get("clarification_needed") and (text := turn.text.strip()):
        asks = [ExplicitAsk(text, "clarification_needed", start=0, end=len(turn.text))]
    return tuple(dict.fromkeys(asks))


def _tool_call(call: ToolCall) -> list[ExplicitAsk]:
    return _arguments(call.name, json.loads(call.arguments)) if _TOOL.fullmatch(call.name) else []


def _arguments(name: str, arguments: object) -> list[ExplicitAsk]:
    """The question of a tool call: its first argument with a known name, or else its first."""
    values = arguments if isinstance(arguments, Mapping) else {"": arguments}
    named = [values[each] for each in _ARGUMENTS if values.get(each)] or list(values.values())
    return [ExplicitAsk(question, name, bool(_USERS.search(name))) for value in named[:1] for question in _texts(value)]


def _transcript_call(call: re.Match[str]) -> list[ExplicitAsk]:
    """A call in a transcript: the tool's name in brackets, then its arguments as JSON or text."""
    with suppress(ValueError, RecursionError):
        return _arguments(call["name"], json.loads(call["question"]))
    question, start = call["question"].split("\n\n", 1)[0].strip(), call.start("question")
    return [ExplicitAsk(question, call["name"], bool(_USERS.search(call["name"])), start, start + len(question))]


def _json_fields(text: str) -> list[ExplicitAsk]:
    """The fields of a turn that is a JSON object."""
    with suppress(ValueError, RecursionError):
        values = json.loads(text.strip().removeprefix("```json").strip("`\n "))
        if isinstance(values, dict):
            return [
                ExplicitAsk(question, name, "user" in name, *_place(text, question))
                for name in FIELDS
                if name in values
                for question in _texts(values[name])
            ]
    return []


def _texts(value: object) -> list[str]:
    items = items_of(value) if isinstance(value, list | tuple) else [value]
    texts = (
        text_of(each) or text_of(each.get("question")) if isinstance(each, Mapping) else text_of(each) for each in items
    )
    return [text.strip() for text in texts if text and not _NOTHING.fullmatch(text)]


def _place(text: str, question: str) -> tuple[int, int]:
    at = text.find(question)
    return (at, at + len(question)) if at >= 0 else (0, 0)
