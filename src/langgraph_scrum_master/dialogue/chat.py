"""The messages that a chat model gets."""

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
"""What a message takes beside its text."""

_CAPS = (1_000, 500, 250, 120, 60, 30, 10)
"""Tokens to which the results of tools are cut, the most that do."""

_API_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that every provider takes."""


def user_message(query: str) -> HumanMessage:
    """The user's turn."""
    return HumanMessage(query)


def messages_of(given: Sequence[object]) -> list[BaseMessage]:
    """LangChain's messages, from any form that it takes."""
    return convert_to_messages(list(given))  # type: ignore[arg-type]


def runnable(work: Callable[[Any, RunnableConfig], Awaitable[dict[str, Any]]]) -> Runnable[Any, dict[str, Any]]:
    """The coroutine as something that a graph runs, whether it is awaited or not."""

    async def awaited(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return await work(state, config)

    def waited_for(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return wait_for(awaited(state, config))

    return RunnableLambda(waited_for, afunc=awaited, name="prompt_assembler")


def chat_messages(
    content: ContextContent, asked: BaseMessage, after: Sequence[BaseMessage], in_system: bool
) -> list[BaseMessage]:
    """One system message, the turns, the user's turn and what came after it.

    What was found stands as data at the end of the system message, or before the user's turn.
    """
    data, system = chat_context(content), content.system.text
    if not in_system:
        asked = _preceded(asked, data)
    top = "\n\n".join(part for part in (system, data if in_system else "") if part)
    turns = [_message(turn) for turn in chat_turns(content)]
    return [*([SystemMessage(top)] if top else []), *turns, asked, *after]


def cost(messages: Sequence[BaseMessage], count: TokenCounter) -> int:
    """The tokens of the messages, with the calls in them."""
    return sum(count(_shown(message)) + MESSAGE_TOKENS for message in messages)


def shortened_messages(messages: Sequence[BaseMessage], room: int, count: TokenCounter) -> list[BaseMessage]:
    """The agent's steps since the user's turn in so many tokens: results of tools are cut, then the oldest steps go.

    The last step stays, even if it takes more: without it the agent would take it again.
    """
    if cost(messages, count) <= room:
        return list(messages)
    steps = _steps(messages)
    while True:
        for cap in _CAPS:
            kept = [_cut(message, cap, count) for step in steps for message in step]
            if cost(kept, count) <= room:
                return kept
        if len(steps) <= 1:
            return kept
        steps.pop(0)


def _steps(messages: Sequence[BaseMessage]) -> list[list[BaseMessage]]:
    """What belongs together: a call and the results that answer it."""
    steps: list[list[BaseMessage]] = []
    for message in messages:
        if not steps or not isinstance(message, ToolMessage):
            steps.append([])
        steps[-1].append(message)
    return steps


def _cut(message: BaseMessage, cap: int, count: TokenCounter) -> BaseMessage:
    if not isinstance(message, ToolMessage) or count(message.text) <= cap:
        return message
    return message.model_copy(update={"content": trim(message.text, lambda start: count(start) <= cap)})


def _shown(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return f"{message.text}{json.dumps(json_shapes(calls)) if calls else ''}"


def _message(turn: FormattedTurn) -> BaseMessage:
    kind = AIMessage if turn.role == "assistant" else HumanMessage
    if turn.speaker.lower() == turn.role:
        return kind(turn.content)
    if _API_NAME.fullmatch(turn.speaker):
        return kind(turn.content, name=turn.speaker)
    return kind(f"{turn.speaker}: {turn.content}")


def _preceded(asked: BaseMessage, data: str) -> BaseMessage:
    """The user's turn with the data before it, whether it is text or blocks."""
    if not data:
        return asked
    content = asked.content
    text = f"{data}\n\n"
    joined = text + content if isinstance(content, str) else [{"type": "text", "text": text}, *content]
    return asked.model_copy(update={"content": joined})
