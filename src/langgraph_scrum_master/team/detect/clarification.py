"""An agent asks, and nobody has answered."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_scrum_master.model import ContextGap, Observation, Question, Span
from langgraph_scrum_master.team.detect.gap import gap

_CONFIDENCE, _DOUBTFUL = 0.9, 0.7
"""Of a question, and of one that is only likely and was confirmed by what came after."""

LIKELY = 0.5
"""Below this a gap is none unless a chat model confirms it."""


def clarification_requested(observation: Observation) -> Iterator[ContextGap]:
    """A gap for each turn with open questions, attributed to its asker."""
    by_turn: dict[tuple[str, str], list[Question]] = {}
    for question in observation.questions:
        by_turn.setdefault((question.asker, question.turn), []).append(question)
    for (asker, turn), questions in by_turn.items():
        texts = tuple(question.text for question in questions)
        yield gap(
            observation,
            agent=asker,
            reason="clarification_requested",
            query=" ".join(texts),
            confidence=_confidence(questions),
            indicators=tuple(dict.fromkeys(f"{question.evidence or 'asks'}@{turn}" for question in questions)),
            parts=texts,
            whom="user" if all(question.whom == "user" for question in questions) else questions[0].whom,
            spans=tuple(Span(message=turn, start=each.start, end=each.end) for each in questions if each.end),
        )


def _confidence(questions: list[Question]) -> float:
    if not all(question.doubtful for question in questions):
        return _CONFIDENCE
    if any(question.confirmed for question in questions):
        return _DOUBTFUL
    return LIKELY * max(question.probability for question in questions)
