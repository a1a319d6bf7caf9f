"""Values for tests, with one sensible default for everything that a test does not care about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_scrum_master import ContextGap, InjectionConfig, InjectionResult, Query, RetrievedContext
from langgraph_scrum_master.protocols import State

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


def a_state(*turns: tuple[str, str], **keys: Any) -> dict[str, Any]:
    """A conversation of (speaker, text), where `user` is the person, and further state keys."""
    return {"messages": [_message(i, *turn) for i, turn in enumerate(turns)], **keys}


def _message(index: int, speaker: str, text: str) -> BaseMessage:
    if speaker == "user":
        return HumanMessage(text, id=f"m{index}")
    return says(speaker, text, id=f"m{index}")


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
