"""Contexts + budget → what is kept and what is dropped."""

from __future__ import annotations

from langgraph_scrum_master.fit.select import select

__all__ = ["select"]
