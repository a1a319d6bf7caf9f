"""The scrum master of a team of LangGraph agents.

It watches the team's state, notices when an agent lacks context, finds that context, and puts it into the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph_scrum_master.assistant import ChatAssistant as ChatAssistant
    from langgraph_scrum_master.checkpoint import (
        MSGPACK_TYPES as MSGPACK_TYPES,
        checkpoint_serde as checkpoint_serde,
    )
    from langgraph_scrum_master.config import (
        DEFAULT_MAX_CONTEXT_ITEMS as DEFAULT_MAX_CONTEXT_ITEMS,
        DEFAULT_MIN_RELEVANCE_SCORE as DEFAULT_MIN_RELEVANCE_SCORE,
        TEAM_REQUIREMENTS as TEAM_REQUIREMENTS,
        EntityContextConfig as EntityContextConfig,
        HistoryConfig as HistoryConfig,
        InjectionConfig as InjectionConfig,
        RAGConfig as RAGConfig,
        RecencyWeights as RecencyWeights,
        ScrumMasterContext as ScrumMasterContext,
        TokenBudget as TokenBudget,
    )
    from langgraph_scrum_master.dialogue import (
        AgentPersonality as AgentPersonality,
        ContextContent as ContextContent,
        DialogueSession as DialogueSession,
        DialogueTurn as DialogueTurn,
        EntityContext as EntityContext,
        EntityRelationship as EntityRelationship,
        FormattedHistory as FormattedHistory,
        FormattedTurn as FormattedTurn,
        FormattingPreferences as FormattingPreferences,
        KnowledgeChunk as KnowledgeChunk,
        ResolvedEntity as ResolvedEntity,
        RetrievedChunks as RetrievedChunks,
        UserPreferences as UserPreferences,
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
    from langgraph_scrum_master.doors.prompt_assembler import (
        AssembledPrompt as AssembledPrompt,
        PromptAssembler as PromptAssembler,
    )
    from langgraph_scrum_master.doors.session_briefing import (
        Briefing as Briefing,
        SessionBriefing as SessionBriefing,
    )
    from langgraph_scrum_master.entities import (
        Entity as Entity,
        EntityRegistry as EntityRegistry,
        Relation as Relation,
    )
    from langgraph_scrum_master.errors import (
        CannotCompressError as CannotCompressError,
        ConfigError as ConfigError,
        ContextAssemblyError as ContextAssemblyError,
        DecodeError as DecodeError,
        EmbeddingError as EmbeddingError,
        GraphError as GraphError,
        InjectionError as InjectionError,
        InvalidContextTypeError as InvalidContextTypeError,
        QueryTooLongError as QueryTooLongError,
        ScrumMasterError as ScrumMasterError,
        ScrumMasterWarning as ScrumMasterWarning,
        StoreError as StoreError,
    )
    from langgraph_scrum_master.fit.budgets import (
        DynamicBudget as DynamicBudget,
        FixedBudget as FixedBudget,
        PrioritizedBudget as PrioritizedBudget,
    )
    from langgraph_scrum_master.inject import (
        context_for as context_for,
    )
    from langgraph_scrum_master.knowledge import (
        Document as Document,
        KnowledgeBase as KnowledgeBase,
    )
    from langgraph_scrum_master.learned import (
        CodeUnit as CodeUnit,
        Commit as Commit,
        ContextItem as ContextItem,
        Experience as Experience,
        Iteration as Iteration,
        Value as Value,
    )
    from langgraph_scrum_master.lessons import (
        Lesson as Lesson,
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
    from langgraph_scrum_master.memory.postgres import (
        PostgresMemory as PostgresMemory,
    )
    from langgraph_scrum_master.memory.searcher import (
        Searcher as Searcher,
    )
    from langgraph_scrum_master.middleware import (
        PromptMiddleware as PromptMiddleware,
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
        Snapshot as Snapshot,
        SourceFailure as SourceFailure,
        SourceName as SourceName,
    )
    from langgraph_scrum_master.node import (
        ScrumMasterNode,
    )
    from langgraph_scrum_master.observe import (
        cycle_analysis as cycle_analysis,
        health_status as health_status,
    )
    from langgraph_scrum_master.protocols import (
        Assistant as Assistant,
        Clock as Clock,
        Detector as Detector,
        Embedder as Embedder,
        EntityLookup as EntityLookup,
        Follows as Follows,
        Knowledge as Knowledge,
        MemoryStore as MemoryStore,
        Namespaced as Namespaced,
        Recorder as Recorder,
        Reranker as Reranker,
        SessionMemory as SessionMemory,
        Source as Source,
        Summarizer as Summarizer,
        TokenCounter as TokenCounter,
    )
    from langgraph_scrum_master.rank.priority import (
        RecencyFactor as RecencyFactor,
        get_recency_factor as get_recency_factor,
    )
    from langgraph_scrum_master.record.audit import (
        JsonlRecorder as JsonlRecorder,
    )
    from langgraph_scrum_master.record.snapshots import (
        SnapshotRecorder as SnapshotRecorder,
    )
    from langgraph_scrum_master.record.turns import (
        TurnRecords as TurnRecords,
    )
    from langgraph_scrum_master.scrum_master import (
        ScrumMaster as ScrumMaster,
    )
    from langgraph_scrum_master.state import (
        ScrumMasterState as ScrumMasterState,
    )
    from langgraph_scrum_master.summarize import (
        ExtractiveSummarizer as ExtractiveSummarizer,
        ModelSummarizer as ModelSummarizer,
    )
    from langgraph_scrum_master.tools import (
        request_context as request_context,
    )

    sm_node: ScrumMasterNode

_HOMES = {
    "assistant": ("ChatAssistant",),
    "checkpoint": (
        "MSGPACK_TYPES",
        "checkpoint_serde",
    ),
    "config": (
        "DEFAULT_MAX_CONTEXT_ITEMS",
        "DEFAULT_MIN_RELEVANCE_SCORE",
        "TEAM_REQUIREMENTS",
        "EntityContextConfig",
        "HistoryConfig",
        "InjectionConfig",
        "RAGConfig",
        "RecencyWeights",
        "ScrumMasterContext",
        "TokenBudget",
    ),
    "dialogue": (
        "AgentPersonality",
        "ContextContent",
        "DialogueSession",
        "DialogueTurn",
        "EntityContext",
        "EntityRelationship",
        "FormattedHistory",
        "FormattedTurn",
        "FormattingPreferences",
        "KnowledgeChunk",
        "ResolvedEntity",
        "RetrievedChunks",
        "UserPreferences",
    ),
    "doors.context_assembler": (
        "ContextAssembler",
        "FormattedContext",
    ),
    "doors.context_injection": (
        "detect_context_gap",
        "inject_context",
        "injection_update",
        "manage_context_injection",
        "retrieve_relevant_context",
    ),
    "doors.injection_pipeline": ("InjectionPipeline",),
    "doors.prompt_assembler": (
        "AssembledPrompt",
        "PromptAssembler",
    ),
    "doors.session_briefing": (
        "Briefing",
        "SessionBriefing",
    ),
    "entities": (
        "Entity",
        "EntityRegistry",
        "Relation",
    ),
    "errors": (
        "CannotCompressError",
        "ConfigError",
        "ContextAssemblyError",
        "DecodeError",
        "EmbeddingError",
        "GraphError",
        "InjectionError",
        "InvalidContextTypeError",
        "QueryTooLongError",
        "ScrumMasterError",
        "ScrumMasterWarning",
        "StoreError",
    ),
    "fit.budgets": (
        "DynamicBudget",
        "FixedBudget",
        "PrioritizedBudget",
    ),
    "inject": ("context_for",),
    "knowledge": (
        "Document",
        "KnowledgeBase",
    ),
    "learned": (
        "CodeUnit",
        "Commit",
        "ContextItem",
        "Experience",
        "Iteration",
        "Value",
    ),
    "lessons": ("Lesson",),
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
    "memory.postgres": ("PostgresMemory",),
    "memory.searcher": ("Searcher",),
    "middleware": ("PromptMiddleware", "ScrumMasterMiddleware"),
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
        "Snapshot",
        "SourceFailure",
        "SourceName",
    ),
    "observe": (
        "cycle_analysis",
        "health_status",
    ),
    "protocols": (
        "Assistant",
        "Clock",
        "Detector",
        "Embedder",
        "EntityLookup",
        "Follows",
        "Knowledge",
        "MemoryStore",
        "Namespaced",
        "Recorder",
        "Reranker",
        "SessionMemory",
        "Source",
        "Summarizer",
        "TokenCounter",
    ),
    "rank.priority": (
        "RecencyFactor",
        "get_recency_factor",
    ),
    "record.audit": ("JsonlRecorder",),
    "record.snapshots": ("SnapshotRecorder",),
    "record.turns": ("TurnRecords",),
    "scrum_master": ("ScrumMaster",),
    "state": ("ScrumMasterState",),
    "summarize": (
        "ExtractiveSummarizer",
        "ModelSummarizer",
    ),
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
