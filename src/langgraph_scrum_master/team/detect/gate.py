"""Detects quality gates that failed because information is missing."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_scrum_master.model import ContextGap, Observation
from langgraph_scrum_master.team.detect.gap import current_work, gap
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning


def gate_failure(observation: Observation, tuning: DetectionTuning = DEFAULT_DETECTION) -> Iterator[ContextGap]:
    """A gap for each gate whose reason names something missing; context does not help with other failures."""
    for gate in observation.gates:
        if gate.missing:
            agent = gate.agent or observation.current_agent
            yield gap(
                observation,
                agent=agent,
                reason="gate_failure",
                query=current_work(observation, agent) if gate.unnamed else ", ".join(gate.missing),
                parts=() if gate.unnamed else gate.missing,
                confidence=tuning.gate_confidence,
                indicators=(gate.indicator,),
                about=f"gate {gate.name}" if gate.unnamed else "",
            )
