"""An agent of `create_agent` with its scrum master as middleware: it asks, is told, and goes on.

No network, no keys.
"""

from __future__ import annotations

import re
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.memory import InMemoryStore

from langgraph_scrum_master import Decision, ScrumMaster, ScrumMasterMiddleware, StoreMemory
from langgraph_scrum_master.testing import ScriptedChatModel

TASK = "Send the refund of order 4711."
DECIDED = "Refunds go to the queue refunds-v2; the old queue is read by nobody."


def build(master: ScrumMaster | None) -> Any:
    """The agent, with its scrum master or without one."""
    return create_agent(
        ScriptedChatModel(script=clerk),
        tools=[],
        system_prompt="You send refunds.",
        middleware=[] if master is None else [ScrumMasterMiddleware(master)],
        name="clerk",
    )


def clerk(prompt: list[BaseMessage]) -> str | AIMessage:
    """Sends the refund to the queue that the prompt names, and asks where none is named."""
    queue = re.search(r"queue (refunds-\w+)", "\n".join(message.text for message in prompt))
    return f"Sent: the refund is in {queue[1]}." if queue else "Which queue do refunds go to?"


async def make_graph() -> Any:
    """The agent that `langgraph dev` serves."""
    memory = StoreMemory(InMemoryStore())
    await memory.store_decision(Decision(id="D-7", agent_type="architect", context=DECIDED))
    return build(ScrumMaster(memory=memory))


if __name__ == "__main__":
    from played import play

    play(make_graph, TASK)
