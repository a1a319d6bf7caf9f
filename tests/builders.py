"""Values for tests, with one sensible default for everything that a test does not care about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage

from langgraph_scrum_master import ContextGap, InjectionConfig, InjectionResult, RetrievedContext
from langgraph_scrum_master.briefing import Lesson
from langgraph_scrum_master.briefing.bank import CATEGORIES, LessonCategory
from langgraph_scrum_master.model import Query
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.testing import a_state as a_state

NOW = "2026-03-02T12:00:00+00:00"
NOON = 1772452800.0
ALL_SOURCES = ("memory", "state", "sprint", "architecture")

DECISION = "We keep idempotency keys of payment requests in Redis, each for 24 hours."
QUESTION = "In which store do we keep idempotency keys, and for how long?"


def says(agent: str, text: str, **options: Any) -> AIMessage:
    return AIMessage(text, name=agent, **options)


def calls(tool: str, *, id: str = "", **arguments: Any) -> AIMessage:
    """A turn in which an agent calls a tool."""
    call = {"name": tool, "args": arguments, "id": id or f"call-{tool}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def a_gap(**fields: Any) -> ContextGap:
    defaults: dict[str, Any] = {
        "gap_id": "gap-1",
        "agent": "dev",
        "reason": "clarification_requested",
        "context_query": QUESTION,
        "confidence": 0.9,
        "indicators": ("open_question@m1",),
        "detected_at": NOW,
    }
    return ContextGap(**(defaults | fields))


def a_context(content: str = DECISION, score: float = 0.9, **fields: Any) -> RetrievedContext:
    defaults: dict[str, Any] = {"source": "memory", "retrieved_at": NOW}
    return RetrievedContext(content=content, relevance_score=score, **(defaults | fields))


def a_result(**fields: Any) -> InjectionResult:
    defaults: dict[str, Any] = {
        "gap": a_gap(),
        "contexts_retrieved": (a_context(),),
        "injected": True,
        "injection_target": "injected_context",
        "total_context_size": 100,
        "duration_ms": 1.5,
        "text": f"<injected_context>{DECISION}</injected_context>",
    }
    return InjectionResult(**(defaults | fields))


def a_config(**fields: Any) -> InjectionConfig:
    return InjectionConfig(**fields)


class Given:
    """A source that offers what it is given."""

    def __init__(self, *contexts: RetrievedContext, name: str = "given") -> None:
        self.name = name
        self.contexts = contexts
        self.queries: list[Query] = []

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        self.queries.append(query)
        return self.contexts


def texts(contexts: Sequence[RetrievedContext]) -> list[str]:
    return [context.content for context in contexts]


def an_entry(name: str, description: str = "", category: LessonCategory = "patterns", **fields: Any) -> Lesson:
    said = description or f"{name} is worth knowing."
    return Lesson(**({"name": name, "description": said, "category": category} | fields))


def _written(entry: Lesson) -> str:
    seen = f"- Last observed: {entry.last_observed}\n" if entry.last_observed else ""
    figures = f"- Observation count: {entry.observation_count}\n- Confidence: {entry.confidence}\n{seen}"
    return f"### {entry.name}\n{entry.description}\n{figures}\n"


def a_bank(folder: Path, *entries: Lesson) -> Path:
    """A knowledge bank's files with these entries."""
    folder.mkdir(parents=True, exist_ok=True)
    for category in CATEGORIES:
        text = "".join(_written(entry) for entry in entries if entry.category == category)
        (folder / f"{category}.md").write_text(f"# {category}\n\n{text}", encoding="utf-8")
    return folder


def active_on(root: Path, slug: str) -> Path:
    folder = root / "docs" / "features" / "001-x"
    folder.mkdir(parents=True)
    (folder / ".meta.json").write_text(json.dumps({"status": "active", "slug": slug}), encoding="utf-8")
    return root


TOPICS = ("hooks", "git", "deployment", "caching")
MIXED_LESSONS = [
    an_entry(f"{topic} {i} {category}", category=category, observation_count=1 + i % 4)
    for category in CATEGORIES
    for i, topic in enumerate(TOPICS * 4)
]
"""Sixteen of each category."""
