"""Gap + observation → queries: what to look for."""

from __future__ import annotations

from langgraph_scrum_master.model import ContextGap, Observation, Query
from langgraph_scrum_master.text.terms import terms


def build_queries(gap: ContextGap, observation: Observation) -> tuple[Query, ...]:
    """One query per need, in the agent's words; where those say nothing, with what the team works on."""
    parts = [part for part in gap.parts if terms(part)] or [gap.context_query]
    texts = (part if terms(part) else f"{part} {observation.task}".strip() for part in parts)
    return tuple(Query(text=text, agent=gap.agent, now=observation.now) for text in texts if text)
