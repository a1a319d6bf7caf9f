"""A deep agent whose subagent reports what it lacks: the scrum master tells the agent, which passes it on.

No network, no keys.
"""

from __future__ import annotations

import re
from typing import Any

from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from langgraph_scrum_master import Decision, ScrumMaster, ScrumMasterMiddleware, StoreMemory
from langgraph_scrum_master.testing import ScriptedChatModel

TASK = "Find out how often the nightly report failed this month."
DECIDED = "Logs of the nightly report are kept in the bucket reports-archive for 90 days."


def build(master: ScrumMaster | None) -> Any:
    """The agent, with its scrum master or without one."""
    return create_deep_agent(
        ScriptedChatModel(script=lead),
        system_prompt="You lead. Let the researcher look things up, and tell it what it needs to know.",
        middleware=[] if master is None else [ScrumMasterMiddleware(master)],
        subagents=[
            {
                "name": "researcher",
                "description": "Looks things up in logs.",
                "system_prompt": "You look things up in logs.",
                "tools": [],
                "model": ScriptedChatModel(script=researcher),
            }
        ],
        name="lead",
    )


def lead(prompt: list[BaseMessage]) -> AIMessage:
    """Gives the work to the researcher, with the place of the logs where it is told, and ends with its report."""
    reports = [message.text for message in prompt if isinstance(message, ToolMessage)]
    place = re.search(r"bucket [\w-]+", prompt[0].text)
    if not reports:
        return _to_the_researcher(TASK, "task-1")
    if "?" in reports[-1] and place:
        return _to_the_researcher(f"{TASK} The logs are in the {place[0]}.", "task-2")
    return AIMessage(reports[-1])


def researcher(prompt: list[BaseMessage]) -> str:
    """Reads the logs in the bucket that its task names, and asks where none is named."""
    place = re.search(r"bucket ([\w-]+)", prompt[-1].text)
    return f"Twice, say the logs in {place[1]}." if place else "Where are the logs of the nightly report kept?"


def _to_the_researcher(description: str, call_id: str) -> AIMessage:
    task = {"description": description, "subagent_type": "researcher"}
    return AIMessage("", tool_calls=[{"name": "task", "args": task, "id": call_id, "type": "tool_call"}])


async def make_graph() -> Any:
    """The agent that `langgraph dev` serves."""
    memory = StoreMemory(InMemoryStore())
    await memory.store_decision(Decision(id="D-10", agent_type="ops", context=DECIDED))
    return build(ScrumMaster(memory=memory))


if __name__ == "__main__":
    from played import play

    play(make_graph, TASK)
