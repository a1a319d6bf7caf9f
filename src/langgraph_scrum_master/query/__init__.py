"""Gap + observation → query: what to look for."""

from __future__ import annotations

from langgraph_scrum_master.model import ContextGap, Observation, Query
from langgraph_scrum_master.text.terms import terms


def build_query(gap: ContextGap, observation: Observation) -> Query:
    """The need in the agent's words; where those say nothing, with what the team works on."""
    text = gap.context_query if terms(gap.context_query) else f"{gap.context_query} {observation.task}"
    return Query(text=text.strip(), agent=gap.agent, now=observation.now)
