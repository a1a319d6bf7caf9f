"""An agent takes far longer than it usually does."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_scrum_master.detect.gap import gap
from langgraph_scrum_master.model import ContextGap, Observation

CONFIDENCE = 0.6
FACTOR = 2.0
"""How many times its usual an agent may take."""


def long_cycle_time(observation: Observation) -> Iterator[ContextGap]:
    """A gap if the latest turn took more than `FACTOR` times the agent's usual."""
    for pace in observation.paces:
        if pace.usual > 0 and pace.seconds > FACTOR * pace.usual:
            yield gap(
                observation,
                agent=pace.agent,
                reason="long_cycle_time",
                query=observation.task,
                confidence=CONFIDENCE,
                indicators=(f"took {pace.seconds:g} s, usually {pace.usual:g} s@{pace.evidence}",),
            )
