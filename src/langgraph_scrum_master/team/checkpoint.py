"""A serializer that preserves our types in checkpoints, in both msgpack modes of LangGraph."""

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
"""The types that the scrum master writes to the state."""


def checkpoint_serde(*host_types: type) -> JsonPlusSerializer:
    """A serializer for any checkpointer that preserves our types and `host_types`.

    In LangGraph's default mode it preserves every type, as LangGraph does, but without the warning about ours and
    `host_types`. In strict mode it preserves ours, `host_types`, and the types in the graph's schema.
    """
    types = (*MSGPACK_TYPES, *host_types)
    _registered.add(*types)
    return JsonPlusSerializer().with_msgpack_allowlist(types)


class _Registered(logging.Filter):
    """Drops LangGraph's warning about unregistered types for those that are registered here."""

    def __init__(self) -> None:
        super().__init__()
        self._names: set[tuple[str, ...]] = set()

    def add(self, *types: type) -> None:
        self._names.update((kind.__module__, kind.__name__) for kind in types)
        # Adding the same filter again has no effect.
        logging.getLogger(JsonPlusSerializer.__module__).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        return not isinstance(record.args, tuple) or record.args[:2] not in self._names


_registered = _Registered()
