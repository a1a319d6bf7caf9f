"""Checkpoints that give back what went in, in both msgpack modes of LangGraph."""

from __future__ import annotations

import logging

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_scrum_master.model import (
    ContextGap,
    CycleAnalysis,
    CyclePattern,
    Dropped,
    HealthAlert,
    HealthMetrics,
    HealthStatus,
    InjectionRecord,
    InjectionResult,
    RetrievedContext,
    SMOutput,
    SourceFailure,
    Span,
)

MSGPACK_TYPES: tuple[type, ...] = (
    ContextGap,
    RetrievedContext,
    Dropped,
    SourceFailure,
    InjectionResult,
    InjectionRecord,
    SMOutput,
    HealthStatus,
    HealthMetrics,
    HealthAlert,
    CycleAnalysis,
    CyclePattern,
    Span,
)
"""The types that we write into the state."""


def checkpoint_serde(*host_types: type) -> JsonPlusSerializer:
    """A serializer for any checkpointer that keeps our types, and the host's.

    In LangGraph's default mode it keeps every type, as LangGraph itself does, without the notice about ours and
    `host_types`. In the strict mode it keeps ours, `host_types`, and what the graph's schema names.
    """
    types = (*MSGPACK_TYPES, *host_types)
    _registered.add(*types)
    return JsonPlusSerializer().with_msgpack_allowlist(types)


class _Registered(logging.Filter):
    """Drops LangGraph's notice about unregistered types for those that are registered here."""

    def __init__(self) -> None:
        super().__init__()
        self._names: set[tuple[str, ...]] = set()

    def add(self, *types: type) -> None:
        self._names.update((kind.__module__, kind.__name__) for kind in types)
        # Added once, however often.
        logging.getLogger(JsonPlusSerializer.__module__).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        return not isinstance(record.args, tuple) or record.args[:2] not in self._names


_registered = _Registered()
