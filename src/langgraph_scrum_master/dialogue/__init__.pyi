from langgraph_scrum_master.dialogue.assembler import (
    AssembledPrompt as AssembledPrompt,
    PromptAssembler as PromptAssembler,
)
from langgraph_scrum_master.dialogue.budgets import (
    DynamicBudget as DynamicBudget,
    FixedBudget as FixedBudget,
    PrioritizedBudget as PrioritizedBudget,
)
from langgraph_scrum_master.dialogue.entities import (
    Entity as Entity,
    EntityRegistry as EntityRegistry,
    Relation as Relation,
)
from langgraph_scrum_master.dialogue.knowledge import (
    Document as Document,
    KnowledgeBase as KnowledgeBase,
)
from langgraph_scrum_master.dialogue.model import (
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
from langgraph_scrum_master.dialogue.settings import (
    EntityContextConfig as EntityContextConfig,
    HistoryConfig as HistoryConfig,
    RAGConfig as RAGConfig,
)
from langgraph_scrum_master.dialogue.summarize import (
    ExtractiveSummarizer as ExtractiveSummarizer,
    ModelSummarizer as ModelSummarizer,
)
from langgraph_scrum_master.dialogue.turn_store import TurnRecords as TurnRecords
