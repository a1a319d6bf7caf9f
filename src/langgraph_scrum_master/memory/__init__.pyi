from langgraph_scrum_master.memory.chroma import ChromaMemory as ChromaMemory
from langgraph_scrum_master.memory.langgraph_store import StoreMemory as StoreMemory
from langgraph_scrum_master.memory.postgres import PostgresMemory as PostgresMemory
from langgraph_scrum_master.memory.record_memory import RecordMemory as RecordMemory
from langgraph_scrum_master.memory.records import (
    CodePattern as CodePattern,
    Decision as Decision,
    DecisionFilter as DecisionFilter,
    DecisionResult as DecisionResult,
    Memory as Memory,
    MemoryResult as MemoryResult,
    PatternResult as PatternResult,
    Record as Record,
)
