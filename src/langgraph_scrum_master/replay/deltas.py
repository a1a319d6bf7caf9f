"""Joins messages that checkpoints store as deltas, as LangGraph does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langgraph_scrum_master._internal.shapes import dict_of, items_of, read

OVERWRITE = "__overwrite__"
"""LangGraph's marker of a write that replaces all earlier ones."""

_COUNTERS = "counters_since_delta_snapshot"
"""The key in a checkpoint's metadata that lists its delta channels."""

REMOVE_ALL = "__remove_all__"
"""The id of a message that removes all others."""


def join_writes(messages: object, writes: Iterable[object]) -> list[Any]:
    """The messages after these writes. A message replaces an earlier one with the same id."""
    by_id: dict[object, Any] = {}
    for write in (list(items_of(messages)), *writes):
        overwrites, value = _parse_write(write)
        if overwrites:
            by_id.clear()
        for message in value if isinstance(value, list) else [value]:
            _apply(by_id, message)
    return list(by_id.values())


def unwrap(value: object) -> Any:
    """The value of a channel. Delta channels wrap theirs."""
    return getattr(value, "value", value) if type(value).__name__ == "_DeltaSnapshot" else value


def delta_channels(checkpoint: Mapping[str, Any], metadata: Mapping[str, Any]) -> set[str]:
    """The delta channels of a checkpoint that have been written."""
    values, counted = dict_of(checkpoint.get("channel_values")), dict_of(metadata.get(_COUNTERS))
    wrapped = {name for name, value in values.items() if value is not unwrap(value)}
    return wrapped | (counted.keys() & dict_of(checkpoint.get("channel_versions")).keys())


def _apply(by_id: dict[object, Any], message: Any) -> None:
    identity = read(message, "id")
    if read(message, "type") != "remove":
        by_id[identity or object()] = message
    elif identity == REMOVE_ALL:
        by_id.clear()
    else:
        by_id.pop(identity, None)


def _parse_write(write: Any) -> tuple[bool, Any]:
    """Whether a write replaces all earlier ones, and its value."""
    if isinstance(write, dict) and write.keys() == {OVERWRITE}:
        return True, write[OVERWRITE] or []
    if read(write, "type") == OVERWRITE:
        return True, read(write, "value") or []
    return False, write
