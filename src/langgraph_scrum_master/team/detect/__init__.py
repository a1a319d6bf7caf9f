"""Detects gaps in an observation; one module per reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master.model import ContextGap, Observation
from langgraph_scrum_master.protocols import Detector
from langgraph_scrum_master.team.detect.circular import circular_logic
from langgraph_scrum_master.team.detect.clarification import clarification_requested
from langgraph_scrum_master.team.detect.cycle_time import long_cycle_time
from langgraph_scrum_master.team.detect.flag import explicit_flag
from langgraph_scrum_master.team.detect.gate import gate_failure
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

DETECTORS: tuple[Detector, ...] = (
    clarification_requested,
    circular_logic,
    long_cycle_time,
    gate_failure,
    explicit_flag,
)
"""In the order that breaks ties in confidence."""

SLOW = "long_cycle_time"


def tuned_detectors(tuning: DetectionTuning) -> tuple[Detector, ...]:
    """The built-in detectors with this tuning."""
    if tuning is DEFAULT_DETECTION:
        return DETECTORS
    return (
        partial(clarification_requested, tuning=tuning),
        circular_logic,
        partial(long_cycle_time, tuning=tuning),
        partial(gate_failure, tuning=tuning),
        partial(explicit_flag, tuning=tuning),
    )


def detect(observation: Observation, detectors: Sequence[Detector] = DETECTORS) -> tuple[ContextGap, ...]:
    """All gaps, most confident first. Gaps with the same need are merged into one with a higher confidence."""
    gaps: list[ContextGap] = []
    for detector in detectors:
        # A bug in one detector must not silence the others.
        try:
            gaps += list(detector(observation))
        except BaseException as raised:
            error = recordable(raised)
            name = getattr(getattr(detector, "func", detector), "__name__", type(detector).__name__)
            logger.error("detector.failed", detector=name, error=f"{type(error).__name__}: {error}")
    gaps = [gap for gap in gaps if gap.reason != SLOW or _has_other_evidence(gap, gaps)]
    by_need: dict[str, ContextGap] = {}
    for gap in sorted(gaps, key=lambda gap: -gap.confidence):
        by_need[gap.need] = _merge(by_need[gap.need], gap) if gap.need in by_need else gap
    return tuple(sorted(by_need.values(), key=lambda gap: -gap.confidence))


def _has_other_evidence(slow: ContextGap, gaps: Sequence[ContextGap]) -> bool:
    """Whether there is other evidence that a slow agent lacks context."""
    reported = any(indicator.endswith("@health_status") for indicator in slow.indicators)
    return reported or any(gap.agent == slow.agent and gap.reason != SLOW for gap in gaps)


def _merge(gap: ContextGap, other: ContextGap) -> ContextGap:
    # Independent evidence: there is no gap only if both are wrong.
    return replace(
        gap,
        confidence=1 - (1 - gap.confidence) * (1 - other.confidence),
        indicators=tuple(dict.fromkeys((*gap.indicators, *other.indicators))),
        missing=tuple(dict.fromkeys((*gap.missing, *other.missing))),
    )


__all__ = [
    "DETECTORS",
    "circular_logic",
    "clarification_requested",
    "detect",
    "explicit_flag",
    "gate_failure",
    "long_cycle_time",
    "tuned_detectors",
]
