"""A supervisor of langgraph-supervisor whose worker gets stuck: the hook tells the supervisor what the worker lacks.

No network, no keys.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.graph import MessagesState
from langgraph.managed import RemainingSteps
from langgraph.store.memory import InMemoryStore
from langgraph_supervisor import create_supervisor

from langgraph_scrum_master import Decision, ScrumMaster, ScrumMasterState, StoreMemory
from langgraph_scrum_master.testing import ScriptedChatModel

TASK = "Write the migration of the orders table."
DECIDED = "Migrations of the orders table are written with Alembic and run at night."


class TeamState(MessagesState, ScrumMasterState):
    """The conversation, what the scrum master writes, and what the supervisor's own loop needs."""

    remaining_steps: RemainingSteps


def build(master: ScrumMaster | None) -> Any:
    """The team's graph, with a scrum master before the supervisor's model, or without one."""
    with warnings.catch_warnings():
        # langgraph-supervisor is built on what langgraph has moved.
        warnings.simplefilter("ignore", DeprecationWarning)
        return create_supervisor(
            [create_agent(ScriptedChatModel(script=coder), tools=[], name="coder")],
            model=ScriptedChatModel(script=supervisor),
            prompt="You lead the team. Give work to the coder, and tell it what it needs to know.",
            pre_model_hook=None if master is None else master.pre_model_hook,
            state_schema=TeamState,
        )


def supervisor(prompt: list[BaseMessage]) -> AIMessage:
    """Hands the work to the coder with what it was told for it, and ends with what the coder reports."""
    said = [message.text for message in prompt if message.name == "coder" and "Transferring" not in message.text]
    told = re.search(r"Migrations of the orders table[^.]*\.", prompt[-1].text)
    if not said:
        return _to_the_coder("", "to-coder-1")
    return _to_the_coder(told[0], "to-coder-2") if "?" in said[-1] and told else AIMessage(said[-1])


def coder(prompt: list[BaseMessage]) -> str:
    """Writes the migration with the tool that somebody names, and asks as long as nobody does."""
    known = "\n".join(message.text for message in prompt)
    return "Written with Alembic." if "Alembic" in known else "With which tool do we write migrations of orders?"


def _to_the_coder(words: str, call_id: str) -> AIMessage:
    return AIMessage(words, tool_calls=[{"name": "transfer_to_coder", "args": {}, "id": call_id, "type": "tool_call"}])


async def make_graph() -> Any:
    """The graph that `langgraph dev` serves."""
    memory = StoreMemory(InMemoryStore())
    await memory.store_decision(Decision(id="D-8", agent_type="architect", context=DECIDED))
    return build(ScrumMaster(memory=memory)).compile()


if __name__ == "__main__":
    from played import play

    play(make_graph, TASK)
