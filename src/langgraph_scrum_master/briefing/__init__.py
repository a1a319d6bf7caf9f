"""Briefs a session on the lessons of a knowledge bank when it starts in a project.

Entry point: `SessionBriefing`, as a function (`brief`) or as a node of a graph (`node`).
Call path: `SessionBriefing` → `bank` (parses lessons) → `workspace` (signals on the session) → `selection` (scores by
`matching` and `prominence`) → `render` (Markdown) → `tracking` (`.last-injection.json`).
"""

from langgraph_scrum_master._internal.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
