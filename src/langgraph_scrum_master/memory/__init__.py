"""Where memories are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph_scrum_master.memory.chroma import ChromaMemory
    from langgraph_scrum_master.memory.langgraph_store import StoreMemory
    from langgraph_scrum_master.memory.postgres import PostgresMemory

__all__ = ["ChromaMemory", "PostgresMemory", "StoreMemory"]

_HOMES = {
    "ChromaMemory": "langgraph_scrum_master.memory.chroma",
    "PostgresMemory": "langgraph_scrum_master.memory.postgres",
    "StoreMemory": "langgraph_scrum_master.memory.langgraph_store",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
