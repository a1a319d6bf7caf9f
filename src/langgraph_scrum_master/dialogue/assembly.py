"""The prompt of one turn in the making: how long it is, and how it gets short enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from langgraph_scrum_master.config import TokenBudget
from langgraph_scrum_master.dialogue.chat import chat_messages, cost
from langgraph_scrum_master.dialogue.compress import compress, compress_at_level, truncate_system
from langgraph_scrum_master.dialogue.history import LEVELS, Summarize, keep_last_turns
from langgraph_scrum_master.dialogue.model import ContextContent, FormattedHistory, SystemPrompt
from langgraph_scrum_master.dialogue.prompt import prompt_text
from langgraph_scrum_master.errors import CannotCompressError
from langgraph_scrum_master.protocols import TokenCounter

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


class PromptRequest(NamedTuple):
    """The user's turn, and the steps that an agent took since."""

    query: str
    message: BaseMessage
    after: Sequence[BaseMessage] = ()
    turn_id: str = ""


class Assembly(NamedTuple):
    """A turn's prompt in the making."""

    asked: PromptRequest
    max_tokens: int
    in_system: bool
    count: TokenCounter
    summarize: Summarize

    def messages(self, content: ContextContent) -> list[BaseMessage]:
        """The prompt for a chat model."""
        return chat_messages(content, self.asked.message, self.asked.after, self.in_system)

    def size(self, content: ContextContent) -> int:
        """The tokens of the prompt, as text or as messages, whichever has more."""
        return max(self.count(prompt_text(content, self.asked.query)), cost(self.messages(content), self.count))

    async def fitted(self, content: ContextContent) -> ContextContent:
        """The content with all that goes around it within the tokens: compressed, then less and less of it."""
        if (over := self.size(content) - self.max_tokens) <= 0:
            return content
        try:
            target = max(0, content.total_tokens(self.count) - over)
            content = await compress(content, target, self.summarize, self.count)
        except CannotCompressError:
            content = await compress_at_level(content, LEVELS[-1], self.summarize, self.count)
        for less in _LESS:
            if (over := self.size(content) - self.max_tokens) <= 0:
                break
            content = less(content, over, self.count)
        return content

    def with_more_system(
        self, content: ContextContent, system: SystemPrompt, budget: TokenBudget
    ) -> tuple[ContextContent, TokenBudget]:
        """The content with as much of the system prompt as fits in what is left of the query's reserve."""
        reserve = budget["query"] - self.count(self.asked.query)
        left = min(reserve, self.max_tokens - self.size(content))
        if left <= 0 or content.system == system:
            return content, budget
        room = content.tokens(self.count)["system"] + left
        # What goes around it may cost some of that.
        for _ in range(3):
            longer = replace(content, system=truncate_system(system, room, self.count))
            told = longer.tokens(self.count)["system"]
            if (over := self.size(longer) - self.max_tokens) <= 0:
                more = max(0, told - budget["system"])
                moved = {"system": budget["system"] + more, "query": budget["query"] - more}
                return longer, TokenBudget(**dict(budget) | moved)
            room = max(0, told - over)
        return content, budget


def _last_turns(content: ContextContent, over: int, count: TokenCounter) -> ContextContent:
    room = max(0, count(content.history.text) - over)
    return replace(content, history=keep_last_turns(content.history, room, count))


def _shorter_system(content: ContextContent, over: int, count: TokenCounter) -> ContextContent:
    room = max(0, count(content.system.text) - over)
    return replace(content, system=truncate_system(content.system, room, count))


_LESS: tuple[Callable[[ContextContent, int, TokenCounter], ContextContent], ...] = (
    lambda content, over, count: replace(content, rag_chunks=()),
    lambda content, over, count: replace(content, entities=()),
    _last_turns,
    lambda content, over, count: replace(content, history=FormattedHistory(level=LEVELS[-1])),
    _shorter_system,
    lambda content, over, count: replace(content, system=SystemPrompt()),
)
"""What goes, in this order, where compressing is not enough: instructions stay longest."""
