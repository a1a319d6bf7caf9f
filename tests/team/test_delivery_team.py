"""The example graph: the same team, stuck without its scrum master, and done with it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.errors import GraphRecursionError

import delivery_team as team
from langgraph_scrum_master import ChromaMemory, Decision, ScrumMaster

TASK: Any = {"messages": [HumanMessage(team.TASK)]}
LIMITED: Any = {"recursion_limit": team.STEP_LIMIT}


async def test_without_the_scrum_master_the_developer_asks_until_the_step_limit() -> None:
    said: list[str] = []

    async def listen() -> None:
        async for update in team.build(None).compile().astream(TASK, LIMITED):
            said.extend(message.text for node in update.values() for message in node["messages"])

    with pytest.raises(GraphRecursionError):
        await listen()

    assert sum("cannot go on" in text for text in said) == 10


async def test_with_it_the_developer_uses_the_decision_and_the_gate_passes() -> None:
    graph = await team.make_graph()

    end = await graph.ainvoke(TASK, LIMITED)

    assert end["gate_passed"]
    assert "in Redis for 24 hours" in end["messages"][-2].text
    assert {context.key for context in end["injection_result"].contexts_retrieved} <= {
        "D-104",
        "adr:0012-idempotency-in-redis.md",
    }


async def test_the_developer_reads_the_injected_context() -> None:
    memory = ChromaMemory()
    await memory.store_decision(
        Decision(agent_type="architect", context="We keep idempotency keys of payments in DynamoDB, each for 6 hours.")
    )
    master = ScrumMaster(memory=memory)

    end = await team.build(master).compile().ainvoke(TASK, LIMITED)

    assert "in DynamoDB for 6 hours" in end["messages"][-2].text
    assert not end["gate_passed"]


async def test_the_superseded_decision_is_never_given() -> None:
    graph = await team.make_graph()

    end = await graph.ainvoke(TASK, LIMITED)

    result = end["injection_result"]
    keys = [context.key for context in result.contexts_retrieved] + [drop.key for drop in result.dropped]
    assert not any("0005" in key for key in keys)
