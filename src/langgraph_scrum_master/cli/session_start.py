"""`scrum-master hook session-start`"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from langgraph_scrum_master.cli.brief import briefing_for
from langgraph_scrum_master.cli.terminal import echo

EVENT = "SessionStart"


def session_start_context(payload: Mapping[str, Any]) -> str:
    """The briefing for a session that starts in the payload's `cwd`, or an empty text."""
    root = payload.get("cwd")
    if not isinstance(root, str) or not root:
        raise ValueError(f"'cwd' must be the session's folder, got {root!r:.80}")
    return briefing_for(root).text


def session_start() -> None:
    """Brief a coding agent whose session starts. Reads the event as JSON from standard input."""
    try:
        payload = json.loads(sys.stdin.buffer.read())
        if not isinstance(payload, dict):
            raise ValueError(f"standard input must be a JSON object, got {payload!r:.80}")
        context = session_start_context(payload)
    # No error may keep the session from starting.
    except Exception as error:
        echo(f"scrum-master: no briefing: {type(error).__name__}: {error}", err=True)
        return
    if context:
        echo(json.dumps({"hookSpecificOutput": {"hookEventName": EVENT, "additionalContext": context}}))
