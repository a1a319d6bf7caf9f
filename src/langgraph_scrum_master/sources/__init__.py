"""One file per place that contexts come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from langgraph_scrum_master.config import InjectionConfig
from langgraph_scrum_master.learned import Shown
from langgraph_scrum_master.protocols import MemoryStore, Source
from langgraph_scrum_master.sources.architecture import ArchitectureSource
from langgraph_scrum_master.sources.learned import shelved
from langgraph_scrum_master.sources.memory import MemorySource
from langgraph_scrum_master.sources.sprint import SprintSource
from langgraph_scrum_master.sources.state import StateSource


def enabled(
    config: InjectionConfig, memory: MemoryStore | None, given: Iterable[Source], shown: Mapping[str, Shown]
) -> tuple[Source, ...]:
    """The built-in sources that are enabled, and all that are given; a given one replaces its namesake.

    `shown` says how what was learned is shown, by the names of its sources.
    """
    built_in: dict[str, Source] = {
        "state": StateSource(config.view_window),
        "sprint": SprintSource(),
        "architecture": ArchitectureSource(config.architecture_path),
    }
    if memory is not None:
        built_in["memory"] = MemorySource(memory)
        built_in |= shelved(memory, shown)
    chosen = {name: built_in[name] for name in config.enabled_sources if name in built_in}
    return tuple((chosen | {source.name: source for source in given}).values())


__all__ = ["ArchitectureSource", "MemorySource", "SprintSource", "StateSource", "enabled"]
