"""Gap + observation → queries: what to look for."""

from __future__ import annotations

from dataclasses import replace

from langgraph_scrum_master.model import ContextGap, Gate, Observation, Query
from langgraph_scrum_master.text.domains import domain_of
from langgraph_scrum_master.text.terms import terms

LOOKED_AT = 1_000
"""Characters of a failure that are looked at."""


def build_queries(gap: ContextGap, observation: Observation) -> tuple[Query, ...]:
    """One query per need, in the agent's words; where those say nothing, with what the team works on."""
    parts = [part for part in gap.parts if terms(part)] or [gap.context_query]
    texts = (part if terms(part) else f"{part} {observation.task}".strip() for part in parts)
    queries = tuple(Query(text=text, agent=gap.agent, now=observation.now) for text in texts if text)
    gate = next((gate for gate in observation.gates if gate.indicator in gap.indicators), None)
    return (_after(gate, queries[0], observation.task), *queries[1:]) if gate and queries else queries


def _after(gate: Gate, query: Query, task: str) -> Query:
    """The query with what failed, so that what went wrong before in such work is looked for once."""
    said = "\n".join(part for part in (gate.name, gate.reason, task) if part)
    return replace(query, domain=domain_of(gate.name, gate.reason), failure=said[:LOOKED_AT])
