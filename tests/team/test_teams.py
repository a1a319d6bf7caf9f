"""Teams of other libraries, stuck without the scrum master and done with it: those in `graphs/`, and variations."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from langgraph_supervisor import create_supervisor

import create_agent as alone
import deep_agent
import delivery_team
import supervisor
import swarm
from builders import DECISION, QUESTION, Given, a_context, calls
from langgraph_scrum_master import InjectionConfig, ScrumMaster, checkpoint_serde, request_context
from langgraph_scrum_master.errors import GraphError
from langgraph_scrum_master.testing import ScriptedChatModel
from played import play

pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent has been moved")

LIMITED: Any = {"recursion_limit": 60, "configurable": {"thread_id": "t"}}
GRAPHS = {
    alone: "Sent: the refund is in refunds-v2.",
    supervisor: "Written with Alembic.",
    swarm: "Invoice: 300 euros and 63 euros VAT.",
    deep_agent: "Twice, say the logs in reports-archive.",
}


async def run(graph: Any, way: str, state: Any, config: Any = LIMITED) -> Any:
    if way == "ainvoke":
        return await graph.ainvoke(state, config)
    return await asyncio.to_thread(graph.invoke, state, config)


def task_of(graph: ModuleType) -> Any:
    return {"messages": [HumanMessage(graph.TASK)]}


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_without_the_scrum_master_the_team_does_not_get_there(graph: ModuleType) -> None:
    built = graph.build(None)
    stuck = built.compile() if hasattr(built, "compile") else built

    end = stuck.invoke(task_of(graph), LIMITED)

    assert end["messages"][-1].text != GRAPHS[graph]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
async def test_with_it_the_team_gets_the_context_and_goes_on(graph: ModuleType, way: str) -> None:
    made = await graph.make_graph()

    end = await run(made, way, task_of(graph))

    assert end["messages"][-1].text == GRAPHS[graph]
    assert end["injection_result"].injected


@pytest.mark.slow
def test_a_team_that_is_run_as_a_script_prints_its_conversation() -> None:
    done = subprocess.run([sys.executable, str(swarm.__file__)], capture_output=True, text=True, check=True)

    said = [line for line in done.stdout.splitlines() if "context.injected" not in line]
    assert said[0] == f"human: {swarm.TASK}"
    assert said[1].endswith("[calls transfer_to_clerk]")
    assert said[-1] == f"clerk: {GRAPHS[swarm]}"


@pytest.mark.parametrize("graph", [*GRAPHS, delivery_team], ids=lambda graph: graph.__name__)
def test_every_team_can_be_run_as_a_script(graph: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    play(graph.make_graph, graph.TASK)

    assert GRAPHS.get(graph, "Gate passed") in capsys.readouterr().out.splitlines()[-1]
    assert inspect.getsource(graph).endswith("    play(make_graph, TASK)\n")


@pytest.mark.checkpoint
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
async def test_a_checkpoint_of_the_team_gives_back_what_went_in(graph: ModuleType) -> None:
    made = await graph.make_graph()
    made.checkpointer = InMemorySaver(serde=checkpoint_serde())

    end = await made.ainvoke(task_of(graph), LIMITED)

    saved = (await made.aget_state(LIMITED)).values
    assert saved["injection_result"] == end["injection_result"]
    assert saved["injection_history"] == end["injection_history"]


async def test_the_subagent_of_a_deep_agent_is_served_through_the_agent_it_reports_to() -> None:
    end = await (await deep_agent.make_graph()).ainvoke(task_of(deep_agent), LIMITED)

    assert end["injection_result"].gap.agent == "researcher"
    described = [
        call["args"]["description"] for message in end["messages"] for call in getattr(message, "tool_calls", [])
    ]
    assert ["reports-archive" in description for description in described] == [False, True]


class Worker:
    """A model that asks until its prompt holds the decision."""

    def __init__(self) -> None:
        self.prompts: list[list[BaseMessage]] = []

    def __call__(self, prompt: list[BaseMessage]) -> str:
        self.prompts.append(prompt)
        return "Done: Redis." if any(DECISION in message.text for message in prompt) else QUESTION


def hands_over_until_done(prompt: list[BaseMessage]) -> AIMessage:
    done = any(message.name == "coder" and "Done" in message.text for message in prompt)
    return AIMessage("The team is done.") if done else calls("transfer_to_coder", id=f"c{len(prompt)}")


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_a_supervisors_worker_with_a_hook_of_its_own_gets_its_context_itself(way: str) -> None:
    coder, master = Worker(), ScrumMaster(sources=[Given(a_context())])
    worker: Any = create_react_agent(
        ScriptedChatModel(script=coder),
        tools=[],
        pre_model_hook=master.hook_for("coder"),
        state_schema=supervisor.TeamState,
        name="coder",
    )
    team = create_supervisor(
        [worker], model=ScriptedChatModel(script=hands_over_until_done), state_schema=supervisor.TeamState
    ).compile()

    end = await run(team, way, {"messages": [HumanMessage("Build PAY-42.")]})

    assert end["messages"][-1].text == "The team is done."
    assert len(coder.prompts) == 2
    assert DECISION in coder.prompts[1][-1].text


class Requesting:
    """A model that requests context with the tool until its prompt holds the decision."""

    def __init__(self) -> None:
        self.prompts: list[list[BaseMessage]] = []

    def __call__(self, prompt: list[BaseMessage]) -> AIMessage:
        self.prompts.append(prompt)
        told = any(DECISION in message.text for message in prompt) or "PAY-43" in prompt[-1].text
        return AIMessage("Done.") if told else calls("request_context", need=QUESTION, id=f"c{len(prompt)}")


def reacting(script: Any, master: ScrumMaster) -> Any:
    return create_react_agent(
        ScriptedChatModel(script=script),
        tools=[request_context],
        prompt="You are the developer.",
        pre_model_hook=master.pre_model_hook,
        state_schema=supervisor.TeamState,
        name="dev",
    )


async def test_the_hook_gives_the_model_the_context_and_leaves_the_messages_as_they_are() -> None:
    dev = Requesting()
    agent = reacting(dev, ScrumMaster(sources=[Given(a_context())]))

    end = await agent.ainvoke({"messages": [HumanMessage("Build PAY-42.")]}, LIMITED)

    assert [message.type for message in dev.prompts[1]] == ["system", "human", "ai", "tool", "human"]
    assert [message.type for message in end["messages"]] == ["human", "ai", "tool", "ai"]
    assert not any(DECISION in message.text for message in end["messages"])


def test_a_team_whose_state_would_drop_what_we_write_is_refused() -> None:
    master = ScrumMaster()
    agent: Any = create_react_agent(ScriptedChatModel(script=Worker()), tools=[], pre_model_hook=master.pre_model_hook)

    with pytest.raises(GraphError, match="would drop 'injected_context'"):
        master.check(agent)

    master.check(supervisor.build(master))


async def test_what_the_hook_gave_once_is_not_given_again_when_the_agent_has_spoken() -> None:
    dev = Requesting()
    agent = reacting(dev, ScrumMaster(sources=[Given(a_context())]))
    first = await agent.ainvoke({"messages": [HumanMessage("Build PAY-42.")]}, LIMITED)

    again = {**first, "messages": [*first["messages"], HumanMessage("And now PAY-43.")]}
    await agent.ainvoke(again, LIMITED)

    assert [message.type for message in dev.prompts[2]] == ["system", "human", "ai", "tool", "ai", "human"]


async def test_delivered_as_a_message_the_hooks_context_stands_in_the_messages_alone() -> None:
    dev = Requesting()
    master = ScrumMaster(sources=[Given(a_context())], config=InjectionConfig(deliver="message"))

    await reacting(dev, master).ainvoke({"messages": [HumanMessage("Build PAY-42.")]}, LIMITED)

    assert [DECISION in message.text for message in dev.prompts[1]] == [False, False, False, False, True]
