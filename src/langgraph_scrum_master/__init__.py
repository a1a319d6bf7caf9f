"""The scrum master of a team of LangGraph agents.

It watches the team's state, notices when an agent lacks context, finds that context, and puts it into the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph_scrum_master.checkpoint import (
        MSGPACK_TYPES as MSGPACK_TYPES,
    )
    from langgraph_scrum_master.checkpoint import (
        checkpoint_serde as checkpoint_serde,
    )
    from langgraph_scrum_master.config import (
        DEFAULT_MAX_CONTEXT_ITEMS as DEFAULT_MAX_CONTEXT_ITEMS,
    )
    from langgraph_scrum_master.config import (
        DEFAULT_MIN_RELEVANCE_SCORE as DEFAULT_MIN_RELEVANCE_SCORE,
    )
    from langgraph_scrum_master.config import (
        InjectionConfig as InjectionConfig,
    )
    from langgraph_scrum_master.doors.context_injection import (
        detect_context_gap as detect_context_gap,
    )
    from langgraph_scrum_master.doors.context_injection import (
        inject_context as inject_context,
    )
    from langgraph_scrum_master.doors.context_injection import (
        injection_update as injection_update,
    )
    from langgraph_scrum_master.doors.context_injection import (
        manage_context_injection as manage_context_injection,
    )
    from langgraph_scrum_master.doors.context_injection import (
        retrieve_relevant_context as retrieve_relevant_context,
    )
    from langgraph_scrum_master.errors import (
        ConfigError as ConfigError,
    )
    from langgraph_scrum_master.errors import (
        DecodeError as DecodeError,
    )
    from langgraph_scrum_master.errors import (
        GraphError as GraphError,
    )
    from langgraph_scrum_master.errors import (
        ScrumMasterError as ScrumMasterError,
    )
    from langgraph_scrum_master.errors import (
        ScrumMasterWarning as ScrumMasterWarning,
    )
    from langgraph_scrum_master.errors import (
        StoreError as StoreError,
    )
    from langgraph_scrum_master.inject import (
        context_for as context_for,
    )
    from langgraph_scrum_master.memories import (
        CodePattern as CodePattern,
    )
    from langgraph_scrum_master.memories import (
        Decision as Decision,
    )
    from langgraph_scrum_master.memories import (
        DecisionFilter as DecisionFilter,
    )
    from langgraph_scrum_master.memories import (
        DecisionResult as DecisionResult,
    )
    from langgraph_scrum_master.memories import (
        MemoryResult as MemoryResult,
    )
    from langgraph_scrum_master.memories import (
        PatternResult as PatternResult,
    )
    from langgraph_scrum_master.memory.chroma import (
        ChromaMemory as ChromaMemory,
    )
    from langgraph_scrum_master.memory.langgraph_store import (
        StoreMemory as StoreMemory,
    )
    from langgraph_scrum_master.model import (
        VALID_CONTEXT_SOURCES as VALID_CONTEXT_SOURCES,
    )
    from langgraph_scrum_master.model import (
        VALID_GAP_REASONS as VALID_GAP_REASONS,
    )
    from langgraph_scrum_master.model import (
        ContextGap as ContextGap,
    )
    from langgraph_scrum_master.model import (
        ContextSource as ContextSource,
    )
    from langgraph_scrum_master.model import (
        Dropped as Dropped,
    )
    from langgraph_scrum_master.model import (
        GapReason as GapReason,
    )
    from langgraph_scrum_master.model import (
        InjectionRecord as InjectionRecord,
    )
    from langgraph_scrum_master.model import (
        InjectionResult as InjectionResult,
    )
    from langgraph_scrum_master.model import (
        Observation as Observation,
    )
    from langgraph_scrum_master.model import (
        Query as Query,
    )
    from langgraph_scrum_master.model import (
        RetrievedContext as RetrievedContext,
    )
    from langgraph_scrum_master.model import (
        SMOutput as SMOutput,
    )
    from langgraph_scrum_master.model import (
        SourceFailure as SourceFailure,
    )
    from langgraph_scrum_master.node import (
        ScrumMasterNode,
    )
    from langgraph_scrum_master.protocols import (
        Clock as Clock,
    )
    from langgraph_scrum_master.protocols import (
        Detector as Detector,
    )
    from langgraph_scrum_master.protocols import (
        Embedder as Embedder,
    )
    from langgraph_scrum_master.protocols import (
        MemoryStore as MemoryStore,
    )
    from langgraph_scrum_master.protocols import (
        Recorder as Recorder,
    )
    from langgraph_scrum_master.protocols import (
        Source as Source,
    )
    from langgraph_scrum_master.protocols import (
        TokenCounter as TokenCounter,
    )
    from langgraph_scrum_master.record import (
        JsonlRecorder as JsonlRecorder,
    )
    from langgraph_scrum_master.scrum_master import (
        ScrumMaster as ScrumMaster,
    )
    from langgraph_scrum_master.state import (
        ScrumMasterState as ScrumMasterState,
    )
    from langgraph_scrum_master.tools import (
        request_context as request_context,
    )

    sm_node: ScrumMasterNode

_HOMES = {
    "checkpoint": (
        "MSGPACK_TYPES",
        "checkpoint_serde",
    ),
    "config": (
        "DEFAULT_MAX_CONTEXT_ITEMS",
        "DEFAULT_MIN_RELEVANCE_SCORE",
        "InjectionConfig",
    ),
    "doors.context_injection": (
        "detect_context_gap",
        "inject_context",
        "injection_update",
        "manage_context_injection",
        "retrieve_relevant_context",
    ),
    "errors": (
        "ConfigError",
        "DecodeError",
        "GraphError",
        "ScrumMasterError",
        "ScrumMasterWarning",
        "StoreError",
    ),
    "inject": ("context_for",),
    "memories": (
        "CodePattern",
        "Decision",
        "DecisionFilter",
        "DecisionResult",
        "MemoryResult",
        "PatternResult",
    ),
    "memory.chroma": ("ChromaMemory",),
    "memory.langgraph_store": ("StoreMemory",),
    "model": (
        "VALID_CONTEXT_SOURCES",
        "VALID_GAP_REASONS",
        "ContextGap",
        "ContextSource",
        "Dropped",
        "GapReason",
        "InjectionRecord",
        "InjectionResult",
        "Observation",
        "Query",
        "RetrievedContext",
        "SMOutput",
        "SourceFailure",
    ),
    "protocols": (
        "Clock",
        "Detector",
        "Embedder",
        "MemoryStore",
        "Recorder",
        "Source",
        "TokenCounter",
    ),
    "record": ("JsonlRecorder",),
    "scrum_master": ("ScrumMaster",),
    "state": ("ScrumMasterState",),
    "tools": ("request_context",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME_OF, "sm_node"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "sm_node":
        value = import_module(f"{__name__}.scrum_master").ScrumMaster.from_env().node
    elif name in _HOME_OF:
        value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
