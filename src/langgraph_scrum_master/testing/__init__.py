"""What users need to test their own graphs."""

from __future__ import annotations

from langgraph_scrum_master.testing.scripted import ScriptedChatModel

__all__ = ["ScriptedChatModel"]
