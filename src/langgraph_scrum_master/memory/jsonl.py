"""Records as JSON Lines: objects with `key` and `content`, and optionally `metadata`, `kind` and `shelf`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.memory.records import RECORD_KINDS, Record


def rows_in(text: str, name: str) -> Iterator[tuple[str, Record]]:
    """The records in a text, each with the name of its shelf. Errors give `name` and the line."""
    for row, where in _objects(text, name):
        kind, shelf = row.get("kind", "memory"), row.get("shelf", "")
        if kind not in RECORD_KINDS:
            raise DecodeError(f"{where}: 'kind' must be one of {RECORD_KINDS}, got {kind!r}")
        if not isinstance(shelf, str):
            raise DecodeError(f"{where}: 'shelf' must be a string, got {shelf!r}")
        yield shelf, _record(row, where, kind)


def row_of(shelf: str, record: Record) -> dict[str, Any]:
    """A record as the object of a line."""
    return {
        "shelf": shelf,
        "kind": record.kind,
        "key": record.key,
        "content": record.text,
        "metadata": record.data,
    }


def _objects(text: str, name: str) -> Iterator[tuple[dict[str, Any], str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"{where} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise DecodeError(f"{where} must be an object with the strings 'key' and 'content', got {line:.80}")
        yield row, where


def _record(row: Mapping[str, Any], where: str, kind: Any) -> Record:
    key, text, metadata = row.get("key"), row.get("content"), row.get("metadata", {})
    if not isinstance(key, str) or not isinstance(text, str):
        raise DecodeError(f"{where} must be an object with the strings 'key' and 'content', got {json.dumps(row):.80}")
    if not isinstance(metadata, dict):
        raise DecodeError(f"{where}: 'metadata' must be an object, got {metadata!r:.80}")
    return Record(kind=kind, key=key, text=text, data=metadata)
