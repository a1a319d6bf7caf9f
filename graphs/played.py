"""A graph of this folder at work on its task, printed: `python graphs/swarm.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

STEP_LIMIT = 60


def play(make_graph: Callable[[], Awaitable[Any]], task: str) -> None:
    """Run the graph on its task, and print the conversation."""
    for message in asyncio.run(_conversation(make_graph, task)):
        print(f"{message.name or message.type}: {_said(message)}")


async def _conversation(make_graph: Callable[[], Awaitable[Any]], task: str) -> list[BaseMessage]:
    graph = await make_graph()
    end = await graph.ainvoke({"messages": [HumanMessage(task)]}, {"recursion_limit": STEP_LIMIT})
    messages: list[BaseMessage] = end["messages"]
    return messages


def _said(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return " ".join(filter(None, [message.text, *(f"[calls {call['name']}]" for call in calls)]))
