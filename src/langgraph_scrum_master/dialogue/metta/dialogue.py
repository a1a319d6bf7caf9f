"""MeTTa predicates for a dialogue prompt: assembly, budget, sections and compression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langgraph_scrum_master._internal.threads import wait_for
from langgraph_scrum_master.config import TokenBudget
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
from langgraph_scrum_master.dialogue.history import format_history, format_turns, shorten_history, transcript
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
from langgraph_scrum_master.dialogue.settings import HistoryConfig
from langgraph_scrum_master.dialogue.summarize import SUMMARY_DEADLINE, summarize_or_extract
from langgraph_scrum_master.dialogue.system import format_personality, system_prompt
from langgraph_scrum_master.protocols import Clock, Summarizer, TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class DialoguePredicates:
    """The predicates, bound to the options of an assembler."""

    entities: EntityRegistry | None
    knowledge: KnowledgeBase | None
    instructions: str
    summarizer: Summarizer
    strategy: str | BudgetStrategy
    history: HistoryConfig
    clock: Clock
    count: TokenCounter

    def by_name(self) -> dict[str, Callable[..., object]]:
        """The predicates by their MeTTa names."""
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
            "format-personality": lambda personality: format_personality(instance(AgentPersonality, personality)),
            "format-preferences": format_preferences_text,
            "truncate-system-prompt": self.truncate_system_prompt,
            "simplify-formatting": lambda history: self.shorten(history, "light"),
            "aggressive-summarize": lambda history: self.shorten(history, "heavy"),
            "reduce-entity-detail": self.reduce_entity_detail,
        }

    def inject_context(self, query: str, state: object, knowledge: object, tokens: int) -> AssembledPrompt:
        """Assemble the prompt for a query in a dialogue."""
        return self._assembler(state, optional(KnowledgeBase, knowledge)).assemble(query, _as_messages(state), tokens)

    def allocate_token_budget(self, query: str, state: object, tokens: int) -> TokenBudget:
        """Allocate the token budget of that prompt."""
        return self._assembler(state, self.knowledge).allocate(query, _as_messages(state), tokens)

    def format_dialogue_history(self, state: object, tokens: int) -> FormattedHistory:
        """Render the dialogue's history."""
        turns = read_session(_as_messages(state)).turns
        return wait_for(format_history(turns, tokens, self._summarize, self.count, self.history))

    def build_system_prompt(self, preferences: object, personality: object, tokens: int) -> str:
        """Render the system prompt within the tokens. Empty parts are left out."""
        prompt = system_prompt(
            self.instructions, optional(AgentPersonality, personality), optional(UserPreferences, preferences)
        )
        return truncate_system(prompt, tokens, self.count).text

    def truncate_system_prompt(self, parts: Sequence[str], tokens: int) -> str:
        """Cut the parts of a system prompt to the tokens."""
        return truncate_system(SystemPrompt.of(parts), tokens, self.count).text

    def total_tokens(self, content: object) -> int:
        """Tokens of all sections."""
        return instance(ContextContent, content).total_tokens(self.count)

    def handle_overflow(self, content: object, budget: object) -> ContextContent:
        """Fit every section to its budget."""
        checked = instance(ContextContent, content), instance(TokenBudget, budget)
        return wait_for(handle_overflow(*checked, self._summarize, self.count))

    def compress_content(self, content: object, tokens: int) -> ContextContent:
        """Compress the content to the tokens."""
        return wait_for(compress(instance(ContextContent, content), tokens, self._summarize, self.count))

    def summarize_turns(self, turns: Sequence[object], tokens: int) -> str:
        """Summarise the turns."""
        return wait_for(self._summarize(transcript(_turns(turns)), tokens))

    def format_recent_turns(self, turns: Sequence[object]) -> tuple[FormattedTurn, ...]:
        """Render the turns verbatim."""
        return format_turns(_turns(turns), self.history)

    def shorten(self, history: object, level: CompressionLevel) -> FormattedHistory:
        """Compress the history at a level."""
        return wait_for(shorten_history(instance(FormattedHistory, history), level, self._summarize, self.count))

    def reduce_entity_detail(self, entities: Sequence[object]) -> list[EntityContext]:
        """Use the compressed form of the entities."""
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
        return await summarize_or_extract(self.summarizer, text, room, "", deadline=SUMMARY_DEADLINE, count=self.count)


def assemble_history(summary: str, turns: Sequence[object]) -> str:
    """Render the summary, if any, followed by the turns."""
    recent = tuple(instance(FormattedTurn, turn) for turn in turns)
    return FormattedHistory(summary=summary or "", recent_turns=recent).text


def format_preferences_text(preferences: object) -> str:
    """Render the user's preferences."""
    return system_prompt("", None, instance(UserPreferences, preferences)).preferences_text


def _turns(state: Sequence[object]) -> list[DialogueTurn]:
    return read_dialogue(_as_messages(state))


def _as_messages(state: object) -> object:
    """Convert a dialogue written in MeTTa to messages. Other objects are returned unchanged."""
    if not isinstance(state, list | tuple):
        return state
    return [tuple(each) if isinstance(each, list) else each for each in state]
