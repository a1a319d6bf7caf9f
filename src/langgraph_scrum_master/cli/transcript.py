"""The turns of a coding agent's session, from the transcript that it writes: JSON Lines, one message per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from langgraph_scrum_master._internal.files import last_bytes
from langgraph_scrum_master._internal.shapes import content_text, dict_of, text_of

READ_BYTES = 2_000_000
"""Only the end of a transcript is read. By hand."""

_NOT_SAID = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")
"""Flags of messages that neither the user nor the agent wrote, or that belong to a subagent."""

_FROM_HOST = re.compile(
    r"\s*(?:<(?:command-|local-command-|system-reminder|injected_context|bash-|user-prompt-submit-hook|task-notif)"
    r"|\[Request interrupted|This session is being continued from)"
)
"""The start of messages that the coding agent itself writes in the user's place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurn:
    """What the user or the agent said."""

    role: Literal["user", "assistant"]
    text: str
    at: str
    """ISO 8601; empty if unknown."""


def read_turns(path: str) -> list[SessionTurn]:
    """The prompts and the agent's last answer to each, oldest first. Raises OSError if it is no regular file."""
    content = last_bytes(Path(path).expanduser(), READ_BYTES)
    lines = content.decode(errors="replace").split("\n")
    # The first line may have been cut.
    return list(_turns(_entries(lines[len(content) == READ_BYTES :])))


def is_said(text: str) -> bool:
    """Whether a prompt is the user's own text, and not one that the coding agent wrote for a command or an event."""
    return bool(text.strip()) and not _FROM_HOST.match(text)


def _entries(lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        try:
            entry = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            # The last line may not be complete yet.
            continue
        if isinstance(entry, dict) and not any(entry.get(flag) is True for flag in _NOT_SAID):
            yield entry


def _turns(entries: Iterable[Mapping[str, Any]]) -> Iterator[SessionTurn]:
    answer: SessionTurn | None = None
    for entry in entries:
        text = content_text(dict_of(entry.get("message")).get("content")).strip()
        at = text_of(entry.get("timestamp"))
        if entry.get("type") == "assistant" and text:
            answer = SessionTurn(role="assistant", text=text, at=at)
        elif entry.get("type") == "user" and is_said(text):
            if answer:
                yield answer
            answer = None
            yield SessionTurn(role="user", text=text, at=at)
    if answer:
        yield answer
