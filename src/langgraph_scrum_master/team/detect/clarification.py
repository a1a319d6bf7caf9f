"""Detects open questions."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_scrum_master.model import ContextGap, Observation, Question, Span
from langgraph_scrum_master.team.detect.gap import gap
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning


def clarification_requested(
    observation: Observation, tuning: DetectionTuning = DEFAULT_DETECTION
) -> Iterator[ContextGap]:
    """A gap for each turn with open questions, attributed to the asker."""
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
            confidence=_confidence(questions, tuning),
            indicators=tuple(dict.fromkeys(f"{question.evidence or 'asks'}@{turn}" for question in questions)),
            parts=texts,
            whom="user" if all(question.whom == "user" for question in questions) else questions[0].whom,
            spans=tuple(Span(message=turn, start=each.start, end=each.end) for each in questions if each.end),
        )


def _confidence(questions: list[Question], tuning: DetectionTuning) -> float:
    if not all(question.doubtful for question in questions):
        return tuning.question_confidence
    if any(question.confirmed for question in questions):
        return tuning.confirmed_question_confidence
    return tuning.likely * max(question.probability for question in questions)
