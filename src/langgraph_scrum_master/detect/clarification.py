"""An agent asks, and nobody has answered."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_scrum_master.detect.gap import gap
from langgraph_scrum_master.model import ContextGap, Observation

CONFIDENCE = 0.9


def clarification_requested(observation: Observation) -> Iterator[ContextGap]:
    """A gap for each open question, attributed to its asker."""
    for question in observation.questions:
        yield gap(
            observation,
            agent=question.asker,
            reason="clarification_requested",
            query=question.text,
            confidence=CONFIDENCE,
            indicators=(f"open_question@{question.turn}",),
        )
