"""Exact forms of asking, which need no model: tool calls that ask, fields of JSON that carry a question, marks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from langgraph_scrum_master.model import ToolCall, Turn
from langgraph_scrum_master.shapes import items_of, text_of

FIELDS = (
    *("question", "questions", "clarification", "clarifications", "clarifying_question", "clarifying_questions"),
    *("clarification_question", "clarification_questions", "question_for_user", "question_to_user", "ask"),
    *("blocked_on", "blocked_by", "blocker", "blockers", "waiting_for", "waiting_on", "needs", "need", "unknowns"),
    *("unclear", "missing_inputs", "required_information", "information_needed", "info_needed"),
)
"""Fields in which an agent's JSON carries what it asks for."""

_TOOL = re.compile(
    r"(?:ask|request|get|query|prompt|consult|escalate_to|need)_?(?:for_)?(?:a_|the_)?"
    r"(?:human|user|person|team|teammate|colleague|expert|customer|question|questions|clarification|clarifications"
    r"|input|info|information|guidance|help|followup_question|follow_up_question)(?:_\w+)?|clarify|clarification|askuserquestion",
    re.I,
)
_USERS = re.compile(r"user|human|customer|person", re.I)
_CALL = re.compile(
    r"\b(?P<name>(?:ask|request|query|prompt|consult)_\w+|clarify|AskUserQuestion)\s*\(\s*"
    r"(?:(?:question|query|prompt|message|text|need|about)s?\s*[=:]\s*)?(?P<quote>[\"'])(?P<asked>.{3,600}?)(?P=quote)",
    re.S,
)
_OBJECT = re.compile(r"\s*(?:```(?:json)?\s*)?\{")
_NOTHING = re.compile(r"\W*(?:none|null|nil|n/?a|no|nothing|false|no \w+|-|resolved|answered|done)?\W*", re.I)
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


class Exact(NamedTuple):
    """Something asked for in an exact form."""

    text: str
    form: str
    """The tool or the field."""
    of_user: bool = False
    start: int = 0
    end: int = 0


def exact_asks(turn: Turn) -> tuple[Exact, ...]:
    """What the turn asks for in exact forms."""
    found = [each for call in turn.tool_calls for each in _called(call)] if turn.tool_calls else []
    if "(" in turn.text:
        found += [
            Exact(
                call["asked"], call["name"], bool(_USERS.search(call["name"])), call.start("asked"), call.end("asked")
            )
            for call in _CALL.finditer(turn.text)
        ]
    if _OBJECT.match(turn.text):
        found += _written(turn.text)
    if not found and turn.marks.get("clarification_needed") and (said := turn.text.strip()):
        found = [Exact(said, "clarification_needed", start=0, end=len(turn.text))]
    return tuple(dict.fromkeys(found))


def _called(call: ToolCall) -> Iterator[Exact]:
    if not _TOOL.fullmatch(call.name):
        return
    arguments = json.loads(call.arguments)
    values = arguments if isinstance(arguments, Mapping) else {"": arguments}
    named = [values[name] for name in _ARGUMENTS if values.get(name)]
    for value in named[:1] or list(values.values())[:1]:
        for asked in _texts(value):
            yield Exact(asked, call.name, bool(_USERS.search(call.name)))


def _written(text: str) -> list[Exact]:
    """The fields of an object that is all the agent says."""
    with suppress(ValueError, RecursionError):
        written = json.loads(text.strip().removeprefix("```json").strip("`\n "))
        if isinstance(written, dict):
            return [
                Exact(asked, name, "user" in name, *_place(text, asked))
                for name in FIELDS
                if name in written
                for asked in _texts(written[name])
            ]
    return []


def _texts(value: object) -> list[str]:
    given = items_of(value) if isinstance(value, list | tuple) else [value]
    told = (
        text_of(each) or text_of(each.get("question")) if isinstance(each, Mapping) else text_of(each) for each in given
    )
    return [text.strip() for text in told if text and not _NOTHING.fullmatch(text)]


def _place(text: str, asked: str) -> tuple[int, int]:
    at = text.find(asked)
    return (at, at + len(asked)) if at >= 0 else (0, 0)
