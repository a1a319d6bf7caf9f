"""Renders a prompt as chat messages."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from langgraph_scrum_master._internal.serialisation import json_shapes
from langgraph_scrum_master._internal.threads import wait_for
from langgraph_scrum_master.dialogue.model import ContextContent, FormattedTurn
from langgraph_scrum_master.dialogue.prompt import chat_context, chat_turns
from langgraph_scrum_master.protocols import TokenCounter
from langgraph_scrum_master.text.trim import trim

MESSAGE_TOKENS = 4
"""Overhead of a message on top of its text."""

_TOOL_RESULT_LIMITS = (1_000, 500, 250, 120, 60, 30, 10)
"""Token limits for tool results, tried in order until the messages fit."""

_API_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that every provider accepts."""


def user_message(query: str) -> HumanMessage:
    """The user's turn as a message."""
    return HumanMessage(query)


def to_messages(messages: Sequence[object]) -> list[BaseMessage]:
    """Convert message-likes to LangChain messages."""
    return convert_to_messages(list(messages))  # type: ignore[arg-type]


def runnable(work: Callable[[Any, RunnableConfig], Awaitable[dict[str, Any]]]) -> Runnable[Any, dict[str, Any]]:
    """Wrap the coroutine function as a runnable with both `invoke` and `ainvoke`."""

    async def run_async(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return await work(state, config)

    def run_sync(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return wait_for(run_async(state, config))

    return RunnableLambda(run_sync, afunc=run_async, name="prompt_assembler")


def chat_messages(
    content: ContextContent, user_turn: BaseMessage, after: Sequence[BaseMessage], in_system: bool
) -> list[BaseMessage]:
    """One system message, the recent turns, the user's turn and the agent's steps after it.

    Retrieved context is enclosed as data at the end of the system message, or before the user's turn.
    """
    data, system = chat_context(content), content.system.text
    if not in_system:
        user_turn = _prepend_data(user_turn, data)
    top = "\n\n".join(part for part in (system, data if in_system else "") if part)
    turns = [_message(turn) for turn in chat_turns(content)]
    return [*([SystemMessage(top)] if top else []), *turns, user_turn, *after]


def message_tokens(messages: Sequence[BaseMessage], count: TokenCounter) -> int:
    """Tokens of the messages, including their tool calls."""
    return sum(count(_text_with_calls(message)) + MESSAGE_TOKENS for message in messages)


def shorten_steps(messages: Sequence[BaseMessage], room: int, count: TokenCounter) -> list[BaseMessage]:
    """Fit the agent's steps since the user's turn: tool results are cut first, then the oldest steps are dropped.

    The last step is always kept, even if it exceeds the room: otherwise the agent would repeat it.
    """
    if message_tokens(messages, count) <= room:
        return list(messages)
    steps = _steps(messages)
    while True:
        for limit in _TOOL_RESULT_LIMITS:
            shortened = [_cut_tool_result(message, limit, count) for step in steps for message in step]
            if message_tokens(shortened, count) <= room:
                return shortened
        if len(steps) <= 1:
            return shortened
        steps.pop(0)


def _steps(messages: Sequence[BaseMessage]) -> list[list[BaseMessage]]:
    """Group each tool call with its results."""
    steps: list[list[BaseMessage]] = []
    for message in messages:
        if not steps or not isinstance(message, ToolMessage):
            steps.append([])
        steps[-1].append(message)
    return steps


def _cut_tool_result(message: BaseMessage, limit: int, count: TokenCounter) -> BaseMessage:
    if not isinstance(message, ToolMessage) or count(message.text) <= limit:
        return message
    return message.model_copy(update={"content": trim(message.text, lambda start: count(start) <= limit)})


def _text_with_calls(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return f"{message.text}{json.dumps(json_shapes(calls)) if calls else ''}"


def _message(turn: FormattedTurn) -> BaseMessage:
    kind = AIMessage if turn.role == "assistant" else HumanMessage
    if turn.speaker.lower() == turn.role:
        return kind(turn.content)
    if _API_NAME.fullmatch(turn.speaker):
        return kind(turn.content, name=turn.speaker)
    return kind(f"{turn.speaker}: {turn.content}")


def _prepend_data(user_turn: BaseMessage, data: str) -> BaseMessage:
    """Insert the data before the user's content, which may be text or content blocks."""
    if not data:
        return user_turn
    content = user_turn.content
    text = f"{data}\n\n"
    joined = text + content if isinstance(content, str) else [{"type": "text", "text": text}, *content]
    return user_turn.model_copy(update={"content": joined})
