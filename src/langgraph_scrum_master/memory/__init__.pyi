from langgraph_scrum_master.memory.backend import Backend as Backend
from langgraph_scrum_master.memory.chroma import ChromaMemory as ChromaMemory
from langgraph_scrum_master.memory.external import ForeignBackend as ForeignBackend
from langgraph_scrum_master.memory.langgraph_store import StoreMemory as StoreMemory
from langgraph_scrum_master.memory.postgres import PostgresMemory as PostgresMemory
from langgraph_scrum_master.memory.record_memory import RecordMemory as RecordMemory
from langgraph_scrum_master.memory.records import (
    CodePattern as CodePattern,
    Decision as Decision,
    DecisionFilter as DecisionFilter,
    DecisionResult as DecisionResult,
    Kind as Kind,
    Memory as Memory,
    MemoryResult as MemoryResult,
    PatternResult as PatternResult,
    Ranked as Ranked,
    Record as Record,
)
