"""Contexts as Markdown sections, one line per context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo

from langgraph_scrum_master.model import RetrievedContext, instant
from langgraph_scrum_master.text.ago import ago
from langgraph_scrum_master.text.markdown import inline, line_start

TITLE = "## Relevant Context"

_CLOCK_SKEW = 300.0
"""Tolerated clock skew in seconds. Memories from further in the future have no age."""

HEADINGS = {
    "divergence_alert": "### ⚠️ Note: Activity Shift Detected\n⚠️ DIVERGENCE DETECTED",
    "high_relevance": "### Recent Related Work",
    "single_space": "### Potentially Related",
    "recent_session": "### Session Context",
    "temporal": "### Temporal Hints",
}
"""The heading of each section, in order."""

CLOSINGS = {"divergence_alert": "This may indicate a context switch to a new topic."}
"""The last line of sections that have one."""


def markdown(sections: Mapping[str, Sequence[RetrievedContext]], now: float, zone: tzinfo) -> str:
    """The non-empty sections in order; empty if there are none."""
    parts = [
        "\n".join([heading, *(line(context, now, zone) for context in contexts), *closing(name)])
        for name, heading in HEADINGS.items()
        if (contexts := sections.get(name))
    ]
    return "\n\n".join([TITLE, *parts]) if parts else ""


def closing(name: str) -> list[str]:
    """The last line of a section, if it has one."""
    return [CLOSINGS[name]] if name in CLOSINGS else []


def line(context: RetrievedContext, now: float, zone: tzinfo) -> str:
    """A context as a line of its section. Retrieved text stays on one line, so that it cannot form a heading."""
    if context.source == "alert":
        return "\n".join(line_start(part) for part in context.content.split("\n"))
    if context.source == "session":
        return line_start(context.content)
    created = instant(context.created_at)
    if context.source == "hint" or created <= 0 or created > now + _CLOCK_SKEW:
        return f"- {line_start(context.content)}"
    return f"- **[{ago(created, now, zone)}]** {inline(context.content)}"
