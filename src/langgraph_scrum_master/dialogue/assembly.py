"""Measures the prompt of one turn and fits it to its token limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from langgraph_scrum_master.config import TokenBudget
from langgraph_scrum_master.dialogue.chat import chat_messages, message_tokens
from langgraph_scrum_master.dialogue.compress import compress, compress_at_level, truncate_system
from langgraph_scrum_master.dialogue.history import LEVELS, Summarize, keep_last_turns
from langgraph_scrum_master.dialogue.model import ContextContent, FormattedHistory, SystemPrompt
from langgraph_scrum_master.dialogue.prompt import prompt_text
from langgraph_scrum_master.errors import CannotCompressError
from langgraph_scrum_master.protocols import TokenCounter

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


class PromptRequest(NamedTuple):
    """The user's turn and the agent's steps since then."""

    query: str
    message: BaseMessage
    after: Sequence[BaseMessage] = ()
    turn_id: str = ""


class Assembly(NamedTuple):
    """Renders, measures and shortens the prompt for one request."""

    request: PromptRequest
    max_tokens: int
    in_system: bool
    count: TokenCounter
    summarize: Summarize

    def messages(self, content: ContextContent) -> list[BaseMessage]:
        """The prompt as chat messages."""
        return chat_messages(content, self.request.message, self.request.after, self.in_system)

    def size(self, content: ContextContent) -> int:
        """Tokens of the prompt as text or as messages, whichever is more."""
        return max(
            self.count(prompt_text(content, self.request.query)), message_tokens(self.messages(content), self.count)
        )

    async def fit(self, content: ContextContent) -> ContextContent:
        """Compress the content until the whole prompt fits. If that is not enough, drop sections one by one."""
        if (over := self.size(content) - self.max_tokens) <= 0:
            return content
        try:
            target = max(0, content.total_tokens(self.count) - over)
            content = await compress(content, target, self.summarize, self.count)
        except CannotCompressError:
            content = await compress_at_level(content, LEVELS[-1], self.summarize, self.count)
        for reduce in _REDUCTIONS:
            if (over := self.size(content) - self.max_tokens) <= 0:
                break
            content = reduce(content, over, self.count)
        return content

    def with_more_system(
        self, content: ContextContent, system: SystemPrompt, budget: TokenBudget
    ) -> tuple[ContextContent, TokenBudget]:
        """Restore as much of a cut system prompt as the unused query reserve allows."""
        reserve = budget["query"] - self.count(self.request.query)
        left = min(reserve, self.max_tokens - self.size(content))
        if left <= 0 or content.system == system:
            return content, budget
        room = content.tokens(self.count)["system"] + left
        # Labels and delimiters may use some of the room.
        for _ in range(3):
            longer = replace(content, system=truncate_system(system, room, self.count))
            used = longer.tokens(self.count)["system"]
            if (over := self.size(longer) - self.max_tokens) <= 0:
                more = max(0, used - budget["system"])
                moved = {"system": budget["system"] + more, "query": budget["query"] - more}
                return longer, TokenBudget(**dict(budget) | moved)
            room = max(0, used - over)
        return content, budget


def _shorten_history(content: ContextContent, over: int, count: TokenCounter) -> ContextContent:
    room = max(0, count(content.history.text) - over)
    return replace(content, history=keep_last_turns(content.history, room, count))


def _shorten_system(content: ContextContent, over: int, count: TokenCounter) -> ContextContent:
    room = max(0, count(content.system.text) - over)
    return replace(content, system=truncate_system(content.system, room, count))


_REDUCTIONS: tuple[Callable[[ContextContent, int, TokenCounter], ContextContent], ...] = (
    lambda content, over, count: replace(content, rag_chunks=()),
    lambda content, over, count: replace(content, entities=()),
    _shorten_history,
    lambda content, over, count: replace(content, history=FormattedHistory(level=LEVELS[-1])),
    _shorten_system,
    lambda content, over, count: replace(content, system=SystemPrompt()),
)
"""Applied in order if compression is not enough. Instructions are cut last."""
