"""Records of a dialogue's turns in any LangGraph store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from langgraph_scrum_master._internal.serialisation import json_shapes
from langgraph_scrum_master._internal.shapes import as_label, from_label, storable, text_of
from langgraph_scrum_master.dialogue.records import RECORD_SECTIONS, ROOT, TurnRecord, paths
from langgraph_scrum_master.errors import StoreError

T = TypeVar("T")

_PAGE = 1_000
"""Namespaces that are asked for at once."""


class TurnRecords:
    """What each turn of each dialogue was given.

    A turn's sections lie under `("context", session, turn)`, below the namespace if there is one. Calls may block.
    """

    def __init__(self, store: BaseStore, *, namespace: str = "") -> None:
        self._store = store
        self._root = (*([as_label(namespace)] if namespace else []), ROOT)

    def __repr__(self) -> str:
        return f"TurnRecords({type(self._store).__name__}, {'/'.join(self._root)!r})"

    def keep(self, session_id: str, turn_id: str, record: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep a turn's record; one that is there already is replaced."""
        labels = self._labels(session_id, turn_id)
        # Nobody looks for records by meaning: they are not to be embedded.
        puts = [PutOp(labels, name, storable(json_shapes(said)), index=False) for name, said in record.items()]
        self._called(self._store.batch, puts)

    def sessions(self) -> list[str]:
        """The sessions that have records."""
        return self._below()

    def turns(self, session_id: str) -> list[str]:
        """The turns of a session that have records, oldest first."""
        names = self._below(session_id)
        made = self._called(self._store.batch, [GetOp(self._labels(session_id, name), "turn") for name in names])
        at = {name: text_of(_value(item).get("at")) for name, item in zip(names, made, strict=True)}
        return sorted(names, key=lambda name: (at[name], name))

    def read(self, session_id: str, turn_id: str) -> TurnRecord:
        """A turn's record; empty if there is none."""
        labels = self._labels(session_id, turn_id)
        found = self._called(self._store.batch, [GetOp(labels, name) for name in RECORD_SECTIONS])
        return {name: said for name, item in zip(RECORD_SECTIONS, found, strict=True) if (said := _value(item))}

    def paths(self, session_id: str, turn_id: str) -> dict[str, Any]:
        """A turn's record by path, such as `/context/{session}/{turn}/budget/total`."""
        return paths(session_id, turn_id, self.read(session_id, turn_id))

    def _below(self, *parts: str) -> list[str]:
        """The names that come next below these."""
        labels = self._labels(*parts)
        depth = len(labels)

        def page(offset: int) -> list[tuple[str, ...]]:
            return self._store.list_namespaces(prefix=labels, max_depth=depth + 1, limit=_PAGE, offset=offset)

        found: list[tuple[str, ...]] = []
        while more := self._called(page, len(found)):
            found += more
        # A store may take a prefix for the start of a text, and answer with what lies beside it.
        return sorted({from_label(each[depth]) for each in found if each[:depth] == labels and len(each) > depth})

    def _labels(self, *parts: str) -> tuple[str, ...]:
        return (*self._root, *map(as_label, parts))

    def _called(self, call: Callable[..., T], *args: Any) -> T:
        try:
            return call(*args)
        # Whatever a store's database raises.
        except Exception as error:
            raise StoreError(f"{self!r} cannot be used: {type(error).__name__}: {error}") from error


def _value(item: object) -> dict[str, Any]:
    return item.value if isinstance(item, Item) else {}
