"""What can be asked about a dialogue's prompt: all of it, its budget, its parts, and how they get shorter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langgraph_scrum_master._internal.threads import wait_for
from langgraph_scrum_master.config import HistoryConfig, TokenBudget
from langgraph_scrum_master.dialogue.assembler import AssembledPrompt, PromptAssembler
from langgraph_scrum_master.dialogue.budgets import BudgetStrategy
from langgraph_scrum_master.dialogue.compress import (
    compress,
    compression_level,
    handle_overflow,
    reduce_entities,
    truncate_system,
)
from langgraph_scrum_master.dialogue.entities import EntityRegistry
from langgraph_scrum_master.dialogue.history import format_history, format_turns, prepared, shorten_history
from langgraph_scrum_master.dialogue.knowledge import KnowledgeBase
from langgraph_scrum_master.dialogue.metta.values import instance, optional, registry_of
from langgraph_scrum_master.dialogue.model import (
    AgentPersonality,
    CompressionLevel,
    ContextContent,
    DialogueTurn,
    EntityContext,
    FormattedHistory,
    FormattedTurn,
    SystemPrompt,
    UserPreferences,
)
from langgraph_scrum_master.dialogue.session import read_dialogue, read_session
from langgraph_scrum_master.dialogue.summarize import SUMMARY_DEADLINE, summarized
from langgraph_scrum_master.dialogue.system import format_personality, system_prompt
from langgraph_scrum_master.protocols import Clock, Summarizer, TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class DialoguePredicates:
    """The predicates for these options of an assembler."""

    entities: EntityRegistry | None
    knowledge: KnowledgeBase | None
    instructions: str
    summarizer: Summarizer
    strategy: str | BudgetStrategy
    history: HistoryConfig
    clock: Clock
    count: TokenCounter

    def by_name(self) -> dict[str, Callable[..., object]]:
        """What to call, by the name it has in MeTTa."""
        return {
            "inject-context": self.inject_context,
            "allocate-token-budget": self.allocate_token_budget,
            "format-dialogue-history": self.format_dialogue_history,
            "build-system-prompt": self.build_system_prompt,
            "total-tokens": self.total_tokens,
            "handle-overflow": self.handle_overflow,
            "compress-content": self.compress_content,
            "compression-level": compression_level,
            "summarize-turns": self.summarize_turns,
            "format-recent-turns": self.format_recent_turns,
            "assemble-history": assemble_history,
            "format-personality": lambda who: format_personality(instance(AgentPersonality, who)),
            "format-preferences": lambda given: system_prompt("", None, instance(UserPreferences, given)).wishes,
            "truncate-system-prompt": self.truncate_system_prompt,
            "simplify-formatting": lambda history: self.shorten(history, "light"),
            "aggressive-summarize": lambda history: self.shorten(history, "heavy"),
            "reduce-entity-detail": self.reduce_entity_detail,
        }

    def inject_context(self, query: str, state: object, knowledge: object, tokens: int) -> AssembledPrompt:
        """The prompt for a query in a dialogue."""
        return self._assembler(state, optional(KnowledgeBase, knowledge)).assemble(query, _spoken(state), tokens)

    def allocate_token_budget(self, query: str, state: object, tokens: int) -> TokenBudget:
        """What each section of it may take."""
        return self._assembler(state, self.knowledge).allocate(query, _spoken(state), tokens)

    def format_dialogue_history(self, state: object, tokens: int) -> FormattedHistory:
        """What was said, as it is told."""
        turns = read_session(_spoken(state)).turns
        return wait_for(format_history(turns, tokens, self._summarize, self.count, self.history))

    def build_system_prompt(self, preferences: object, personality: object, tokens: int) -> str:
        """The system prompt within so many tokens; without what is empty."""
        prompt = system_prompt(
            self.instructions, optional(AgentPersonality, personality), optional(UserPreferences, preferences)
        )
        return truncate_system(prompt, tokens, self.count).text

    def truncate_system_prompt(self, parts: Sequence[str], tokens: int) -> str:
        """Its parts within so many tokens."""
        return truncate_system(SystemPrompt.of(parts), tokens, self.count).text

    def total_tokens(self, content: object) -> int:
        """The tokens of all sections."""
        return instance(ContextContent, content).total_tokens(self.count)

    def handle_overflow(self, content: object, budget: object) -> ContextContent:
        """The content with every section within its budget."""
        given = instance(ContextContent, content), instance(TokenBudget, budget)
        return wait_for(handle_overflow(*given, self._summarize, self.count))

    def compress_content(self, content: object, tokens: int) -> ContextContent:
        """The content within so many tokens."""
        return wait_for(compress(instance(ContextContent, content), tokens, self._summarize, self.count))

    def summarize_turns(self, turns: Sequence[object], tokens: int) -> str:
        """What the turns come to."""
        return wait_for(self._summarize(prepared(_turns(turns)), tokens))

    def format_recent_turns(self, turns: Sequence[object]) -> tuple[FormattedTurn, ...]:
        """The turns word for word."""
        return format_turns(_turns(turns), self.history)

    def shorten(self, history: object, level: CompressionLevel) -> FormattedHistory:
        """The history at a level of compression."""
        return wait_for(shorten_history(instance(FormattedHistory, history), level, self._summarize, self.count))

    def reduce_entity_detail(self, entities: Sequence[object]) -> list[EntityContext]:
        """The entities in their shorter form."""
        return reduce_entities([instance(EntityContext, entity) for entity in entities], self.count)

    def _assembler(self, state: object, knowledge: KnowledgeBase | None) -> PromptAssembler:
        return PromptAssembler(
            instructions=self.instructions,
            entities=registry_of(state, self.entities),
            knowledge=knowledge,
            summarizer=self.summarizer,
            strategy=self.strategy,
            history=self.history,
            clock=self.clock,
            count_tokens=self.count,
        )

    async def _summarize(self, text: str, room: int) -> str:
        return await summarized(self.summarizer, text, room, "", deadline=SUMMARY_DEADLINE, count=self.count)


def assemble_history(summary: str, turns: Sequence[object]) -> str:
    """A summary, if there is one, and the turns after it."""
    recent = tuple(instance(FormattedTurn, turn) for turn in turns)
    return FormattedHistory(summary=summary or "", recent_turns=recent).text


def _turns(given: Sequence[object]) -> list[DialogueTurn]:
    return read_dialogue(_spoken(given))


def _spoken(state: object) -> object:
    """A dialogue that is written in MeTTa as messages; any other as it is."""
    if not isinstance(state, list | tuple):
        return state
    return [tuple(each) if isinstance(each, list) else each for each in state]
