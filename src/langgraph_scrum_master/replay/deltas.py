"""Messages that checkpoints keep in deltas, joined as LangGraph joins them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langgraph_scrum_master._internal.shapes import dict_of, items_of, read

OVERWRITE = "__overwrite__"
"""How LangGraph marks a write that takes the place of all before it."""

_COUNTERS = "counters_since_delta_snapshot"
"""What the metadata of a checkpoint tell of such channels."""

REMOVE_ALL = "__remove_all__"
"""The id of a message that removes all others."""


def joined(messages: object, writes: Iterable[object]) -> list[Any]:
    """The messages after these writes: what has the id of another takes its place, and what is removed is gone."""
    kept: dict[object, Any] = {}
    for write in (list(items_of(messages)), *writes):
        instead, value = _overwriting(write)
        if instead:
            kept.clear()
        for message in value if isinstance(value, list) else [value]:
            _take(kept, message)
    return list(kept.values())


def whole(value: object) -> Any:
    """The value of a channel; one that is written in deltas has it wrapped, where it has it."""
    return getattr(value, "value", value) if type(value).__name__ == "_DeltaSnapshot" else value


def in_deltas(checkpoint: Mapping[str, Any], metadata: Mapping[str, Any]) -> set[str]:
    """The channels of a checkpoint that are written in deltas, and were written."""
    values, counted = dict_of(checkpoint.get("channel_values")), dict_of(metadata.get(_COUNTERS))
    wrapped = {name for name, value in values.items() if value is not whole(value)}
    return wrapped | (counted.keys() & dict_of(checkpoint.get("channel_versions")).keys())


def _take(kept: dict[object, Any], message: Any) -> None:
    identity = read(message, "id")
    if read(message, "type") != "remove":
        kept[identity or object()] = message
    elif identity == REMOVE_ALL:
        kept.clear()
    else:
        kept.pop(identity, None)


def _overwriting(write: Any) -> tuple[bool, Any]:
    """Whether a write takes the place of all before it, and what it writes."""
    if isinstance(write, dict) and write.keys() == {OVERWRITE}:
        return True, write[OVERWRITE] or []
    if read(write, "type") == OVERWRITE:
        return True, read(write, "value") or []
    return False, write
