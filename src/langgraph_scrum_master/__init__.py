"""The scrum master of a team of LangGraph agents.

It watches the team's state, notices when an agent lacks context, finds that context, and puts it into the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph_scrum_master.checkpoint import (
        MSGPACK_TYPES as MSGPACK_TYPES,
        checkpoint_serde as checkpoint_serde,
    )
    from langgraph_scrum_master.config import (
        DEFAULT_MAX_CONTEXT_ITEMS as DEFAULT_MAX_CONTEXT_ITEMS,
        DEFAULT_MIN_RELEVANCE_SCORE as DEFAULT_MIN_RELEVANCE_SCORE,
        TEAM_REQUIREMENTS as TEAM_REQUIREMENTS,
        InjectionConfig as InjectionConfig,
        RecencyWeights as RecencyWeights,
        ScrumMasterContext as ScrumMasterContext,
        TokenBudget as TokenBudget,
    )
    from langgraph_scrum_master.doors.context_assembler import (
        ContextAssembler as ContextAssembler,
        FormattedContext as FormattedContext,
    )
    from langgraph_scrum_master.doors.context_injection import (
        detect_context_gap as detect_context_gap,
        inject_context as inject_context,
        injection_update as injection_update,
        manage_context_injection as manage_context_injection,
        retrieve_relevant_context as retrieve_relevant_context,
    )
    from langgraph_scrum_master.doors.injection_pipeline import (
        InjectionPipeline as InjectionPipeline,
    )
    from langgraph_scrum_master.errors import (
        ConfigError as ConfigError,
        ContextAssemblyError as ContextAssemblyError,
        DecodeError as DecodeError,
        EmbeddingError as EmbeddingError,
        GraphError as GraphError,
        InjectionError as InjectionError,
        InvalidContextTypeError as InvalidContextTypeError,
        ScrumMasterError as ScrumMasterError,
        ScrumMasterWarning as ScrumMasterWarning,
        StoreError as StoreError,
    )
    from langgraph_scrum_master.inject import (
        context_for as context_for,
    )
    from langgraph_scrum_master.learned import (
        CodeUnit as CodeUnit,
        Commit as Commit,
        ContextItem as ContextItem,
        Experience as Experience,
        Value as Value,
    )
    from langgraph_scrum_master.memories import (
        CodePattern as CodePattern,
        Decision as Decision,
        DecisionFilter as DecisionFilter,
        DecisionResult as DecisionResult,
        Memory as Memory,
        MemoryResult as MemoryResult,
        PatternResult as PatternResult,
    )
    from langgraph_scrum_master.memory.chroma import (
        ChromaMemory as ChromaMemory,
    )
    from langgraph_scrum_master.memory.langgraph_store import (
        StoreMemory as StoreMemory,
    )
    from langgraph_scrum_master.memory.searcher import (
        Searcher as Searcher,
    )
    from langgraph_scrum_master.middleware import (
        ScrumMasterMiddleware as ScrumMasterMiddleware,
    )
    from langgraph_scrum_master.model import (
        VALID_CONTEXT_SOURCES as VALID_CONTEXT_SOURCES,
        VALID_GAP_REASONS as VALID_GAP_REASONS,
        ContextGap as ContextGap,
        ContextSource as ContextSource,
        CycleAnalysis as CycleAnalysis,
        DivergenceAlert as DivergenceAlert,
        Dropped as Dropped,
        GapReason as GapReason,
        HealthStatus as HealthStatus,
        InjectionRecord as InjectionRecord,
        InjectionResult as InjectionResult,
        Observation as Observation,
        Query as Query,
        RetrievedContext as RetrievedContext,
        SMOutput as SMOutput,
        SourceFailure as SourceFailure,
    )
    from langgraph_scrum_master.node import (
        ScrumMasterNode,
    )
    from langgraph_scrum_master.observe import (
        cycle_analysis as cycle_analysis,
        health_status as health_status,
    )
    from langgraph_scrum_master.protocols import (
        Clock as Clock,
        Detector as Detector,
        Embedder as Embedder,
        MemoryStore as MemoryStore,
        Namespaced as Namespaced,
        Recorder as Recorder,
        SessionMemory as SessionMemory,
        Source as Source,
        TokenCounter as TokenCounter,
    )
    from langgraph_scrum_master.rank.priority import (
        RecencyFactor as RecencyFactor,
        get_recency_factor as get_recency_factor,
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
        "TEAM_REQUIREMENTS",
        "InjectionConfig",
        "RecencyWeights",
        "ScrumMasterContext",
        "TokenBudget",
    ),
    "doors.context_assembler": ("ContextAssembler", "FormattedContext"),
    "doors.context_injection": (
        "detect_context_gap",
        "inject_context",
        "injection_update",
        "manage_context_injection",
        "retrieve_relevant_context",
    ),
    "doors.injection_pipeline": ("InjectionPipeline",),
    "errors": (
        "ConfigError",
        "ContextAssemblyError",
        "DecodeError",
        "EmbeddingError",
        "GraphError",
        "InjectionError",
        "InvalidContextTypeError",
        "ScrumMasterError",
        "ScrumMasterWarning",
        "StoreError",
    ),
    "inject": ("context_for",),
    "learned": (
        "CodeUnit",
        "Commit",
        "ContextItem",
        "Experience",
        "Value",
    ),
    "memories": (
        "CodePattern",
        "Decision",
        "DecisionFilter",
        "DecisionResult",
        "Memory",
        "MemoryResult",
        "PatternResult",
    ),
    "memory.chroma": ("ChromaMemory",),
    "memory.langgraph_store": ("StoreMemory",),
    "memory.searcher": ("Searcher",),
    "middleware": ("ScrumMasterMiddleware",),
    "model": (
        "VALID_CONTEXT_SOURCES",
        "VALID_GAP_REASONS",
        "ContextGap",
        "ContextSource",
        "CycleAnalysis",
        "DivergenceAlert",
        "Dropped",
        "GapReason",
        "HealthStatus",
        "InjectionRecord",
        "InjectionResult",
        "Observation",
        "Query",
        "RetrievedContext",
        "SMOutput",
        "SourceFailure",
    ),
    "observe": (
        "cycle_analysis",
        "health_status",
    ),
    "protocols": (
        "Clock",
        "Detector",
        "Embedder",
        "MemoryStore",
        "Namespaced",
        "Recorder",
        "SessionMemory",
        "Source",
        "TokenCounter",
    ),
    "rank.priority": ("RecencyFactor", "get_recency_factor"),
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
