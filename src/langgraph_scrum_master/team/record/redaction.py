"""Redacts results and snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from langgraph_scrum_master._internal.logs import Redact
from langgraph_scrum_master.model import ContextGap, InjectionResult, RetrievedContext, Snapshot


def redacted(result: InjectionResult, redact: Redact | None) -> InjectionResult:
    """The result with all its text redacted; ids, keys, names, numbers and times are unchanged."""
    if redact is None:
        return result
    return replace(
        result,
        gap=_gap(result.gap, redact),
        pending=tuple(_gap(gap, redact) for gap in result.pending),
        contexts_retrieved=tuple(_context(context, redact) for context in result.contexts_retrieved),
        dropped=tuple(replace(each, title=redact(each.title)) for each in result.dropped),
        failures=tuple(replace(each, error=redact(each.error)) for each in result.failures),
        text=redact(result.text),
    )


def redacted_snapshot(snapshot: Snapshot, redact: Redact | None) -> Snapshot:
    """The snapshot with all text redacted; agents, ids and times are unchanged."""
    if redact is None:
        return snapshot
    result = redacted(snapshot.result, redact) if snapshot.result is not None else None
    return replace(snapshot, state=_within(snapshot.state, redact, _UNREDACTED), result=result)


_UNREDACTED = frozenset(
    {"role", "type", "name", "id", "tool_call_id", "agent", "current_agent", "active_agent", "timestamp"}
)
"""Fields of messages and states with names, ids and times, which are not redacted."""


def _gap(gap: ContextGap, redact: Redact) -> ContextGap:
    return replace(
        gap,
        context_query=redact(gap.context_query),
        missing=tuple(map(redact, gap.missing)),
        parts=tuple(map(redact, gap.parts)),
        about=redact(gap.about),
    )


def _context(context: RetrievedContext, redact: Redact) -> RetrievedContext:
    return replace(
        context,
        content=redact(context.content),
        title=redact(context.title),
        metadata=_within(context.metadata, redact),
    )


def _within(value: Any, redact: Redact, kept: frozenset[str] = frozenset()) -> Any:
    # The patterns take long to compile, and are loaded where something is redacted.
    from langgraph_scrum_master.text.redact import redacted_values

    return redacted_values(value, redact, kept)
