"""Detects unusually slow turns."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_scrum_master.model import ContextGap, Observation
from langgraph_scrum_master.team.detect.gap import gap
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning


def long_cycle_time(observation: Observation, tuning: DetectionTuning = DEFAULT_DETECTION) -> Iterator[ContextGap]:
    """A gap if the agent's latest turn was unusually slow."""
    for pace in observation.paces:
        if pace.seconds > pace.limit > 0:
            yield gap(
                observation,
                agent=pace.agent,
                reason="long_cycle_time",
                query=observation.task,
                confidence=tuning.pace_confidence,
                indicators=(f"took {pace.seconds:g} s, usually {pace.usual:g} s@{pace.evidence}",),
            )
