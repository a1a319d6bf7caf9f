"""A quality gate turned the work back for want of information."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_scrum_master.model import ContextGap, Observation
from langgraph_scrum_master.team.detect.gap import current_work, gap
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning


def gate_failure(observation: Observation, tuning: DetectionTuning = DEFAULT_DETECTION) -> Iterator[ContextGap]:
    """A gap for each gate whose reason speaks of something missing; other failures are not for context to cure."""
    for failed in observation.gates:
        if failed.missing:
            agent = failed.agent or observation.current_agent
            yield gap(
                observation,
                agent=agent,
                reason="gate_failure",
                query=current_work(observation, agent) if failed.unnamed else ", ".join(failed.missing),
                parts=() if failed.unnamed else failed.missing,
                confidence=tuning.gate_confidence,
                indicators=(failed.indicator,),
                about=f"gate {failed.name}" if failed.unnamed else "",
            )
