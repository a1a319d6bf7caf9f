"""Contexts + budget → what is kept and what is dropped."""

from __future__ import annotations

from langgraph_scrum_master.fit.counting import reliable
from langgraph_scrum_master.fit.sections import allocate
from langgraph_scrum_master.fit.select import select

__all__ = ["allocate", "reliable", "select"]
