"""Result → disk, and snapshots → disk and back."""

from __future__ import annotations

from langgraph_scrum_master.record.audit import JsonlRecorder
from langgraph_scrum_master.record.snapshots import SnapshotRecorder

__all__ = ["JsonlRecorder", "SnapshotRecorder"]
