"""Contexts as Markdown in sections, one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo

from langgraph_scrum_master.model import RetrievedContext, instant
from langgraph_scrum_master.text.ago import ago
from langgraph_scrum_master.text.sanitize import line_start, one_line

TITLE = "## Relevant Context"

_AHEAD = 300.0
"""Seconds by which clocks may differ: of a memory from later on no age is told."""

HEADINGS = {
    "divergence_alert": "### ⚠️ Note: Activity Shift Detected\n⚠️ DIVERGENCE DETECTED",
    "high_relevance": "### Recent Related Work",
    "single_space": "### Potentially Related",
    "recent_session": "### Session Context",
    "temporal": "### Temporal Hints",
}
"""The sections in their order, and what stands above each."""


def markdown(sections: Mapping[str, Sequence[RetrievedContext]], now: float, zone: tzinfo) -> str:
    """The sections that have anything, in their order; empty if none has."""
    parts = [
        "\n".join([heading, *(line(context, now, zone) for context in contexts)])
        for name, heading in HEADINGS.items()
        if (contexts := sections.get(name))
    ]
    return "\n\n".join([TITLE, *parts]) if parts else ""


def line(context: RetrievedContext, now: float, zone: tzinfo) -> str:
    """A context in its section. What was retrieved stands on one line: it cannot look like a heading."""
    if context.source == "alert":
        return "\n".join(line_start(part) for part in context.content.split("\n"))
    if context.source == "session":
        return line_start(context.content)
    created = instant(context.created_at)
    if context.source == "hint" or created <= 0 or created > now + _AHEAD:
        return f"- {line_start(context.content)}"
    return f"- **[{ago(created, now, zone)}]** {one_line(context.content)}"
