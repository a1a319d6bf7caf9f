"""Observation → gaps: one file per reason."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph_scrum_master.detect.circular import circular_logic
from langgraph_scrum_master.detect.clarification import clarification_requested
from langgraph_scrum_master.detect.cycle_time import long_cycle_time
from langgraph_scrum_master.detect.flag import explicit_flag
from langgraph_scrum_master.detect.gate import gate_failure
from langgraph_scrum_master.model import ContextGap, Observation
from langgraph_scrum_master.protocols import Detector

DETECTORS: tuple[Detector, ...] = (
    clarification_requested,
    circular_logic,
    long_cycle_time,
    gate_failure,
    explicit_flag,
)
"""In the order that breaks ties of confidence."""


def detect(observation: Observation, detectors: Sequence[Detector] = DETECTORS) -> tuple[ContextGap, ...]:
    """All gaps, the most confident first; the same need of an agent, seen for several reasons, counts once."""
    found = [gap for detector in detectors for gap in detector(observation)]
    found.sort(key=lambda gap: -gap.confidence)
    return tuple({gap.need: gap for gap in reversed(found)}[need] for need in dict.fromkeys(gap.need for gap in found))


__all__ = [
    "DETECTORS",
    "circular_logic",
    "clarification_requested",
    "detect",
    "explicit_flag",
    "gate_failure",
    "long_cycle_time",
]
