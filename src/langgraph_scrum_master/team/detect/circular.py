"""Detects that the team goes in circles."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_scrum_master.model import ContextGap, Observation
from langgraph_scrum_master.team.detect.gap import gap


def circular_logic(observation: Observation) -> Iterator[ContextGap]:
    """A gap for each cycle; its topic is the query."""
    for cycle in observation.cycles:
        yield gap(
            observation,
            agent=cycle.agent,
            reason="circular_logic",
            query=cycle.topic or observation.task,
            about=cycle.about,
            confidence=cycle.confidence,
            indicators=tuple(f"repeated@{turn}" for turn in cycle.evidence),
        )
