"""Kept contexts → the text that the agent reads."""

from __future__ import annotations

from langgraph_scrum_master.render.framed import framed

__all__ = ["framed"]
