"""Kept contexts → the text that the agent reads."""

from __future__ import annotations

from langgraph_scrum_master.render.framed import enclosed, framed
from langgraph_scrum_master.render.markdown import HEADINGS, TITLE, line, markdown

__all__ = ["HEADINGS", "TITLE", "enclosed", "framed", "line", "markdown"]
