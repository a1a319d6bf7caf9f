"""A delivery team of four agents and their scrum master, with scripted chat models: no network, no keys.

The developer needs a decision that was taken sprints ago. Without the scrum master it asks until the step limit; with
it, the decision comes out of the team's memory, and the tester's gate passes.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

from langgraph_scrum_master import (
    ChromaMemory,
    Decision,
    InjectionConfig,
    ScrumMaster,
    ScrumMasterState,
    context_for,
)
from langgraph_scrum_master.testing import ScriptedChatModel

MEMORY = Path(__file__).parent / "delivery_team_memory"
TASK = "PAY-42: a payment request that is sent twice must charge the customer once."
STEP_LIMIT = 12


class TeamState(MessagesState, ScrumMasterState):
    """The conversation, what the scrum master writes, and the tester's verdict."""

    gate_passed: bool


class Node(Protocol):
    """What an agent is to the graph."""

    def __call__(self, state: TeamState) -> dict[str, Any]: ...


def build(master: ScrumMaster | None) -> StateGraph[TeamState, None, TeamState, TeamState]:
    """The team's graph, with the scrum master after the developer, or without one."""
    builder = StateGraph(TeamState)
    for name, (role, script) in TEAM.items():
        builder.add_node(name, agent(name, role, ScriptedChatModel(script=script)))
    builder.add_edge(START, "analyst")
    builder.add_edge("analyst", "architect")
    builder.add_edge("architect", "dev")
    if master is None:
        builder.add_conditional_edges("dev", whose_turn)
    else:
        builder.add_node(master.node)
        builder.add_edge("dev", "scrum_master")
        builder.add_conditional_edges("scrum_master", whose_turn)
        master.check(builder)
    builder.add_edge("tester", END)
    return builder


def agent(name: str, role: str, model: ScriptedChatModel) -> Node:
    """A node in which the agent reads its role, the conversation, and what the scrum master found for it."""

    def speak(state: TeamState) -> dict[str, Any]:
        prompt: list[BaseMessage] = [SystemMessage(role), *state["messages"]]
        if context := context_for(state, name):
            prompt.append(HumanMessage(context))
        turn = sum(message.name == name for message in state["messages"]) + 1
        reply = model.invoke(prompt).model_copy(update={"name": name, "id": f"{name}-{turn}"})
        return {"messages": [reply], "gate_passed": "gate passed" in reply.text.lower()}

    return speak


def whose_turn(state: TeamState) -> Literal["dev", "tester"]:
    """The developer goes on until it has something to test."""
    return "tester" if "implemented" in state["messages"][-1].text.lower() else "dev"


def analyst(prompt: list[BaseMessage]) -> str:
    """Restates the person's task."""
    task = next(message.text for message in prompt if isinstance(message, HumanMessage))
    return f"The requirement is clear. {task} The client sends an Idempotency-Key header."


def architect(prompt: list[BaseMessage]) -> str:
    """Says how to build it, and leaves out what was decided long ago."""
    return "Put the check in front of the payment service, and keep each key with its answer. Over to the developer."


def dev(prompt: list[BaseMessage]) -> str:
    """Implements what the prompt says about the keys' store and lifetime, and asks as long as it says nothing."""
    known = "\n".join(message.text for message in prompt)
    store = re.search(r"idempotency keys? [^.]*?\bin (Redis|PostgreSQL|DynamoDB)", known, re.I)
    lifetime = re.search(r"(\d+) hours", known)
    if store and lifetime:
        return (
            f"Implemented PAY-42: the middleware keeps each idempotency key in {store[1]} for {lifetime[1]} hours, "
            "with the answer it got. Tester, over to you."
        )
    still = "still " if any(message.name == "dev" for message in prompt) else ""
    return f"I {still}cannot go on without one thing: in which store do we keep idempotency keys, and how long?"


def tester(prompt: list[BaseMessage]) -> str:
    """Compares what was implemented with what was decided."""
    done = prompt[-1].text
    if "Redis" in done and "24 hours" in done:
        return "Gate passed: a repeated key answers from Redis, and is forgotten after 24 hours as decided."
    return f"Gate failed: the implementation is not what was decided. It says: {done}"


TEAM: dict[str, tuple[str, Callable[[list[BaseMessage]], str]]] = {
    "analyst": ("You are the analyst. Say what is required.", analyst),
    "architect": ("You are the architect. Say how it is to be built.", architect),
    "dev": ("You are the developer. Implement the story; ask if you lack anything.", dev),
    "tester": ("You are the tester. Let only pass what does what was decided.", tester),
}


async def remember(memory: ChromaMemory) -> ChromaMemory:
    """Fill the memory with the decisions of earlier sprints."""
    for decision in json.loads((MEMORY / "decisions.json").read_text(encoding="utf-8")):
        await memory.store_decision(Decision.from_dict(decision))
    return memory


def scrum_master(memory: ChromaMemory, **options: Any) -> ScrumMaster:
    """The team's scrum master: it knows the decisions, the ADRs, the sprint and the state."""
    config = InjectionConfig(
        enabled_sources=("memory", "state", "sprint", "architecture"),
        architecture_path=str(MEMORY / "adr"),
        max_context_items=2,
        log_injections=False,
    )
    return ScrumMaster(memory=memory, config=config, **options)


_filled: list[ChromaMemory] = []


async def make_graph() -> CompiledStateGraph[TeamState, None, TeamState, TeamState]:
    """The graph that `langgraph dev` serves; its memory lives as long as the server."""
    if not _filled:
        _filled.append(await asyncio.to_thread(lambda: asyncio.run(remember(ChromaMemory()))))
    return build(scrum_master(_filled[0])).compile()


if __name__ == "__main__":
    from played import play

    play(make_graph, TASK)
