"""The built-in sources, one per file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from langgraph_scrum_master.config import InjectionConfig
from langgraph_scrum_master.protocols import MemoryStore, Source
from langgraph_scrum_master.retrieval.sources.architecture import ArchitectureSource
from langgraph_scrum_master.retrieval.sources.memory import MemorySource
from langgraph_scrum_master.retrieval.sources.sprint import SprintSource
from langgraph_scrum_master.retrieval.sources.state import StateSource

ShelfSources: TypeAlias = Callable[[MemoryStore], Mapping[str, Source]]
"""Creates the sources over a memory's shelves, by name."""


def enabled_sources(
    config: InjectionConfig, memory: MemoryStore | None, given: Iterable[Source], shelf_sources: ShelfSources
) -> tuple[Source, ...]:
    """The enabled built-in sources and the given ones. A given source replaces a built-in one of the same name."""
    built_in: dict[str, Source] = {
        "state": StateSource(config.view_window),
        "sprint": SprintSource(),
        "architecture": ArchitectureSource(config.architecture_path),
    }
    if memory is not None:
        built_in["memory"] = MemorySource(memory)
        built_in |= shelf_sources(memory)
    chosen = {name: built_in[name] for name in config.enabled_sources if name in built_in}
    return tuple((chosen | {source.name: source for source in given}).values())


__all__ = ["ArchitectureSource", "MemorySource", "ShelfSources", "SprintSource", "StateSource", "enabled_sources"]
