"""An agent asks, and nobody has answered."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_scrum_master.detect.gap import gap
from langgraph_scrum_master.model import ContextGap, Observation

CONFIDENCE = 0.9


def clarification_requested(observation: Observation) -> Iterator[ContextGap]:
    """A gap for each turn with open questions, attributed to its asker."""
    by_turn: dict[tuple[str, str], list[str]] = {}
    for question in observation.questions:
        by_turn.setdefault((question.asker, question.turn), []).append(question.text)
    for (asker, turn), texts in by_turn.items():
        yield gap(
            observation,
            agent=asker,
            reason="clarification_requested",
            query=" ".join(texts),
            confidence=CONFIDENCE,
            indicators=(f"open_question@{turn}",),
            parts=tuple(texts),
        )
