from langgraph_scrum_master.briefing.session import SessionBriefing as SessionBriefing
from langgraph_scrum_master.config import InjectionConfig as InjectionConfig
from langgraph_scrum_master.context_injection import (
    detect_context_gap as detect_context_gap,
    inject_context as inject_context,
    injection_update as injection_update,
    manage_context_injection as manage_context_injection,
    retrieve_relevant_context as retrieve_relevant_context,
)
from langgraph_scrum_master.dialogue.assembler import PromptAssembler as PromptAssembler
from langgraph_scrum_master.errors import (
    ConfigError as ConfigError,
    ScrumMasterError as ScrumMasterError,
    StoreError as StoreError,
)
from langgraph_scrum_master.learning.assembler import ContextAssembler as ContextAssembler
from langgraph_scrum_master.memory.chroma import ChromaMemory as ChromaMemory
from langgraph_scrum_master.memory.langgraph_store import StoreMemory as StoreMemory
from langgraph_scrum_master.memory.postgres import PostgresMemory as PostgresMemory
from langgraph_scrum_master.memory.records import (
    Decision as Decision,
    Memory as Memory,
)
from langgraph_scrum_master.middleware import (
    PromptMiddleware as PromptMiddleware,
    ScrumMasterMiddleware as ScrumMasterMiddleware,
)
from langgraph_scrum_master.model import (
    ContextGap as ContextGap,
    InjectionResult as InjectionResult,
    RetrievedContext as RetrievedContext,
)
from langgraph_scrum_master.prompts.pipeline import InjectionPipeline as InjectionPipeline
from langgraph_scrum_master.scrum_master import ScrumMaster as ScrumMaster
from langgraph_scrum_master.team.checkpoint import (
    MSGPACK_TYPES as MSGPACK_TYPES,
    checkpoint_serde as checkpoint_serde,
)
from langgraph_scrum_master.team.delivery import context_for as context_for
from langgraph_scrum_master.team.node import ScrumMasterNode
from langgraph_scrum_master.team.state import ScrumMasterState as ScrumMasterState
from langgraph_scrum_master.team.tools import request_context as request_context

sm_node: ScrumMasterNode
