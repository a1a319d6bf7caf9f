"""A swarm of langgraph-swarm whose agents have one scrum master: each gets what it lacks itself.

No network, no keys.
"""

from __future__ import annotations

import re
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.memory import InMemoryStore
from langgraph_swarm import SwarmState, create_handoff_tool, create_swarm

from langgraph_scrum_master import Decision, ScrumMaster, ScrumMasterMiddleware, ScrumMasterState, StoreMemory
from langgraph_scrum_master.testing import ScriptedChatModel

TASK = "Write the invoice of order 4711."
DECIDED = "Invoices within the union carry a VAT rate of 21 percent."


class TeamState(SwarmState, ScrumMasterState):
    """The swarm's state with what the scrum master writes."""

    # Named here as well: the swarm looks for it in this class alone.
    active_agent: str | None


def build(master: ScrumMaster | None) -> Any:
    """The swarm's graph, with a scrum master or without one."""
    middleware = [] if master is None else [ScrumMasterMiddleware(master)]
    seller = create_agent(
        ScriptedChatModel(script=sells),
        tools=[create_handoff_tool(agent_name="clerk")],
        middleware=middleware,
        name="seller",
    )
    clerk = create_agent(ScriptedChatModel(script=bills), tools=[], middleware=middleware, name="clerk")
    return create_swarm([seller, clerk], default_active_agent="seller", state_schema=TeamState)


def sells(prompt: list[BaseMessage]) -> AIMessage:
    """Says what was sold, and hands over to the clerk."""
    call = {"name": "transfer_to_clerk", "args": {}, "id": f"to-clerk-{len(prompt)}", "type": "tool_call"}
    return AIMessage("Order 4711 is for three days at 100 euros each.", tool_calls=[call])


def bills(prompt: list[BaseMessage]) -> str | AIMessage:
    """Bills with the VAT rate that the prompt names, and requests it where none is named."""
    rate = re.search(r"VAT rate of (\d+)", "\n".join(message.text for message in prompt))
    if rate:
        return f"Invoice: 300 euros and {3 * int(rate[1])} euros VAT."
    if any(message.type == "tool" and message.name == "request_context" for message in prompt):
        return "I cannot write the invoice: nobody says which VAT rate applies."
    need = {"need": "The VAT rate of invoices within the union"}
    return AIMessage("", tool_calls=[{"name": "request_context", "args": need, "id": "need-1", "type": "tool_call"}])


async def make_graph() -> Any:
    """The graph that `langgraph dev` serves."""
    memory = StoreMemory(InMemoryStore())
    await memory.store_decision(Decision(id="D-9", agent_type="pm", context=DECIDED))
    return build(ScrumMaster(memory=memory)).compile()


if __name__ == "__main__":
    from played import play

    play(make_graph, TASK)
