"""Stores turn records in a LangGraph store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.serialisation import json_shapes
from langgraph_scrum_master._internal.shapes import as_label, from_label, is_printable, storable, text_of
from langgraph_scrum_master.dialogue.records import RECORD_SECTIONS, ROOT, TurnRecord, paths
from langgraph_scrum_master.errors import ConfigError, StoreError

T = TypeVar("T")

_PAGE_SIZE = 1_000
"""Namespaces per request."""


class TurnRecords:
    """Records of the context that each dialogue turn received, in any LangGraph store.

    A turn's sections are stored under `("context", session, turn)`, prefixed with the namespace if there is one. Calls
    may block.
    """

    def __init__(self, store: BaseStore, *, namespace: str = "") -> None:
        self._store = store
        if namespace and not is_printable(namespace):
            raise ConfigError(f"namespace must be a text without control characters, got {namespace!r}")
        self._root = (*([as_label(namespace)] if namespace else []), ROOT)

    def __repr__(self) -> str:
        return f"TurnRecords({type(self._store).__name__}, {'/'.join(self._root)!r})"

    def keep(self, session_id: str, turn_id: str, record: Mapping[str, Mapping[str, Any]]) -> None:
        """Store a turn's record, replacing any previous one."""
        labels = self._labels(session_id, turn_id)
        # Records are never searched by similarity, so they need no embeddings.
        puts = [PutOp(labels, name, storable(json_shapes(fields)), index=False) for name, fields in record.items()]
        self._call(self._store.batch, puts)

    def sessions(self) -> list[str]:
        """The sessions that have records."""
        return self._children()

    def turns(self, session_id: str) -> list[str]:
        """The turns of a session that have records, oldest first."""
        names = self._children(session_id)
        items = self._call(self._store.batch, [GetOp(self._labels(session_id, name), "turn") for name in names])
        at = {name: text_of(_value(item).get("at")) for name, item in zip(names, items, strict=True)}
        return sorted(names, key=lambda name: (at[name], name))

    def read(self, session_id: str, turn_id: str) -> TurnRecord:
        """A turn's record. Empty if there is none."""
        labels = self._labels(session_id, turn_id)
        items = self._call(self._store.batch, [GetOp(labels, name) for name in RECORD_SECTIONS])
        return {name: fields for name, item in zip(RECORD_SECTIONS, items, strict=True) if (fields := _value(item))}

    def paths(self, session_id: str, turn_id: str) -> dict[str, Any]:
        """A turn's record by path, such as `/context/{session}/{turn}/budget/total`."""
        return paths(session_id, turn_id, self.read(session_id, turn_id))

    def _children(self, *parts: str) -> list[str]:
        """The names one level below the given ones."""
        labels = self._labels(*parts)
        depth = len(labels)

        def page(offset: int) -> list[tuple[str, ...]]:
            return self._store.list_namespaces(prefix=labels, max_depth=depth + 1, limit=_PAGE_SIZE, offset=offset)

        namespaces: list[tuple[str, ...]] = []
        while more := self._call(page, len(namespaces)):
            namespaces += more
        # Some stores match the prefix as a string and return siblings as well.
        return sorted({from_label(each[depth]) for each in namespaces if each[:depth] == labels and len(each) > depth})

    def _labels(self, *parts: str) -> tuple[str, ...]:
        return (*self._root, *map(as_label, parts))

    def _call(self, method: Callable[..., T], *args: Any) -> T:
        try:
            return method(*args)
        # The store's database may raise anything.
        except BaseException as raised:
            error = recordable(raised)
            raise StoreError(f"{self!r} cannot be used: {type(error).__name__}: {error}") from error


def _value(item: object) -> dict[str, Any]:
    return item.value if isinstance(item, Item) else {}
