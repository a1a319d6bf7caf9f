"""A quality gate turned the work back for want of information."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_scrum_master.detect.gap import gap
from langgraph_scrum_master.model import ContextGap, Observation

CONFIDENCE = 0.85


def gate_failure(observation: Observation) -> Iterator[ContextGap]:
    """A gap for each gate whose reason speaks of something missing; other failures are not for context to cure."""
    for failed in observation.gates:
        if failed.missing:
            yield gap(
                observation,
                agent=observation.current_agent,
                reason="gate_failure",
                query=", ".join(failed.missing),
                parts=failed.missing,
                confidence=CONFIDENCE,
                indicators=(failed.indicator,),
            )
