"""Derives an `Observation` of the team from the graph's state."""

from __future__ import annotations

from langgraph_scrum_master.team.observe.analysis import cycle_analysis
from langgraph_scrum_master.team.observe.health import health_status
from langgraph_scrum_master.team.observe.observation import glance, has_team_keys, observe
from langgraph_scrum_master.team.observe.watch import Watcher

__all__ = ["Watcher", "cycle_analysis", "glance", "has_team_keys", "health_status", "observe"]
