"""Result → disk."""

from __future__ import annotations

from langgraph_scrum_master.record.audit import JsonlRecorder

__all__ = ["JsonlRecorder"]
