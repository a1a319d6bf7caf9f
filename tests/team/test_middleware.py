"""The scrum master inside agents of `create_agent`, alone and in teams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from builders import DECISION, QUESTION, Given, a_context, calls
from langgraph_scrum_master import (
    ConfigError,
    ContextGap,
    InjectionConfig,
    ScrumMaster,
    ScrumMasterMiddleware,
    ScrumMasterState,
    checkpoint_serde,
)
from langgraph_scrum_master.model import Observation
from langgraph_scrum_master.testing import ScriptedChatModel

ROLE = "You are the developer."
DONE = "Done: the keys go into Redis."
START_STATE: Any = {"messages": [HumanMessage("Build PAY-42.")]}


class Developer:
    """A model that does one thing until its prompt holds the decision, and what it was prompted with."""

    def __init__(self, until_told: str | Callable[[int], AIMessage] = QUESTION) -> None:
        self.prompts: list[list[BaseMessage]] = []
        self._until_told = until_told

    def __call__(self, prompt: list[BaseMessage]) -> str | AIMessage:
        self.prompts.append(prompt)
        if any(DECISION in message.text for message in prompt):
            return DONE
        return self._until_told if isinstance(self._until_told, str) else self._until_told(len(self.prompts))

    def agent(self, *middleware: Any, **options: Any) -> Any:
        defaults: dict[str, Any] = {"name": "dev", "system_prompt": ROLE, "tools": []}
        return create_agent(ScriptedChatModel(script=self), middleware=middleware, **(defaults | options))


def asks_with_the_tool(turn: int) -> AIMessage:
    return calls("request_context", need=QUESTION, id=f"c{turn}")


def served(**options: Any) -> ScrumMasterMiddleware:
    return ScrumMasterMiddleware(sources=[Given(a_context())], **options)


async def run(agent: Any, way: str, state: Any = START_STATE, config: Any = None) -> Any:
    if way == "ainvoke":
        return await agent.ainvoke(state, config)
    return await asyncio.to_thread(agent.invoke, state, config)


WAYS = pytest.mark.parametrize("way", ["invoke", "ainvoke"])


@WAYS
async def test_an_agent_that_requests_context_has_it_in_its_next_prompt(way: str) -> None:
    dev = Developer(asks_with_the_tool)

    end = await run(dev.agent(served()), way)

    assert end["messages"][-1].text == DONE
    assert len(dev.prompts) == 2
    assert end["injection_result"].gap.reason == "explicit_flag"


@WAYS
async def test_an_agent_that_would_end_with_a_question_goes_on_with_the_answer(way: str) -> None:
    dev = Developer()

    end = await run(dev.agent(served()), way)

    assert [message.text for message in end["messages"][1:]] == [QUESTION, DONE]
    assert [message.type for message in dev.prompts[1]] == ["system", "human", "ai", "human"]
    assert DECISION not in dev.prompts[1][-1].text


async def test_a_question_for_which_nothing_is_found_goes_to_whoever_called() -> None:
    dev = Developer()

    end = await dev.agent(ScrumMasterMiddleware()).ainvoke(START_STATE)

    assert end["messages"][-1].text == QUESTION
    assert len(dev.prompts) == 1


@pytest.mark.parametrize(("setting", "calls"), [("auto", 1), ("leave", 1), ("serve", 2)])
async def test_a_question_that_only_the_user_can_answer_goes_to_the_user(setting: Any, calls: int) -> None:
    dev = Developer("What is your order number?")

    await run(dev.agent(served(config=InjectionConfig(user_questions=setting))), "ainvoke")

    assert len(dev.prompts) == calls


async def test_if_it_is_not_to_go_on_the_question_goes_to_whoever_called() -> None:
    dev = Developer()

    end = await dev.agent(served(go_on=False)).ainvoke(START_STATE)

    assert end["messages"][-1].text == QUESTION
    assert "injection_result" not in end


async def test_an_agent_that_calls_the_same_tool_again_and_again_is_helped() -> None:
    @tool
    def look_up(what: str) -> str:
        """Look something up."""
        return "nothing found"

    dev = Developer(lambda turn: calls("look_up", what="the store of idempotency keys", id=f"c{turn}"))

    end = await dev.agent(served(), tools=[look_up]).ainvoke(START_STATE, {"recursion_limit": 60})

    assert end["messages"][-1].text == DONE
    assert end["injection_result"].gap.reason == "circular_logic"


async def test_the_context_stands_at_the_end_of_the_one_system_message_as_data() -> None:
    dev = Developer(asks_with_the_tool)

    await dev.agent(served()).ainvoke(START_STATE)

    assert dev.prompts[0][0].text == ROLE
    after = dev.prompts[1][0].text
    assert after.startswith(f"{ROLE}\n\n<injected_context")
    assert after.endswith("</injected_context>")
    assert [message.type for message in dev.prompts[1]].count("system") == 1


class Cached(AgentMiddleware[Any, Any, Any]):
    """Marks the system message for a provider's cache."""

    BLOCK = {"type": "text", "text": ROLE, "cache_control": {"type": "ephemeral"}}  # noqa: RUF012

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
        return await handler(request.override(system_message=SystemMessage(content=[self.BLOCK])))


async def test_a_block_that_is_marked_for_the_cache_stays_as_it_is() -> None:
    dev = Developer(asks_with_the_tool)

    await dev.agent(Cached(), served()).ainvoke(START_STATE)

    assert dev.prompts[0][0].content == [Cached.BLOCK]
    assert dev.prompts[1][0].content[0] == Cached.BLOCK
    assert DECISION in dev.prompts[1][0].content[1]["text"]  # type: ignore[index]


async def test_without_a_system_prompt_it_makes_the_system_message() -> None:
    dev = Developer(asks_with_the_tool)

    await dev.agent(served(), system_prompt=None).ainvoke(START_STATE)

    assert [message.type for message in dev.prompts[1]] == ["system", "human", "ai", "tool"]


async def test_it_is_there_while_the_agent_uses_tools_and_gone_when_it_has_spoken() -> None:
    @tool
    def write_code(what: str) -> str:
        """Write code."""
        return "written"

    def script(prompt: list[BaseMessage]) -> AIMessage:
        prompts.append(prompt[0].text)
        turn = len(prompts)
        if turn == 1:
            return asks_with_the_tool(turn)
        return calls("write_code", what=f"part {turn}", id=f"c{turn}") if turn < 4 else AIMessage(DONE)

    prompts: list[str] = []
    agent: Any = create_agent(ScriptedChatModel(script=script), tools=[write_code], middleware=[served()], name="dev")

    end = await agent.ainvoke(START_STATE)

    assert [DECISION in prompt for prompt in prompts] == [False, True, True, True]
    assert end["injected_context"] is None


async def test_a_healthy_agent_is_left_alone() -> None:
    def script(prompt: list[BaseMessage]) -> str:
        return "The form is written, and its 14 tests pass."

    agent: Any = create_agent(ScriptedChatModel(script=script), tools=[], middleware=[served()], name="dev")

    end = await agent.ainvoke(START_STATE)

    assert {key: value for key, value in end.items() if value} == {"messages": end["messages"]}


@pytest.mark.checkpoint
@WAYS
async def test_the_agent_goes_on_from_a_checkpoint_that_holds_our_types(way: str) -> None:
    dev = Developer(asks_with_the_tool)
    agent = dev.agent(served(), checkpointer=InMemorySaver(serde=checkpoint_serde()))
    thread = {"configurable": {"thread_id": "t"}}

    end = await run(agent, way, config=thread)

    saved = agent.get_state(thread).values
    assert saved["injection_result"] == end["injection_result"]
    assert [record.status for record in saved["injection_history"]] == ["injected"]
    assert saved["injected_context"] is None


@pytest.mark.parametrize("options", [{}, {"agent": "dev"}], ids=["unnamed", "named in the middleware"])
async def test_an_agent_that_create_agent_does_not_name_is_served_too(options: dict[str, Any]) -> None:
    dev = Developer(asks_with_the_tool)

    end = await dev.agent(served(**options), name=None).ainvoke(START_STATE)

    assert end["messages"][-1].text == DONE


class TeamState(MessagesState, ScrumMasterState):
    """A team's."""


async def test_in_a_team_each_agent_gets_its_own_context_and_no_other() -> None:
    dev, tester = Developer(), Developer("The login form has 14 tests, and the coverage of its module went up to 91 %.")
    master = ScrumMaster(sources=[Given(a_context())])
    middleware = ScrumMasterMiddleware(master, go_on=False)
    builder = StateGraph(TeamState)
    builder.add_node(dev.agent(middleware))
    builder.add_node(tester.agent(middleware, name="tester"))
    builder.add_node("dev_again", dev.agent(middleware))
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "tester")
    builder.add_edge("tester", "dev_again")

    end = await builder.compile().ainvoke(START_STATE)

    assert end["messages"][-1].text == DONE
    assert DECISION not in "".join(message.text for message in tester.prompts[0])
    assert [record.agent for record in end["injection_history"]] == ["dev"]


async def test_what_a_node_of_the_team_found_for_an_agent_is_in_that_agents_prompt_once() -> None:
    dev = Developer()
    builder = StateGraph(TeamState)
    builder.add_node(ScrumMaster(sources=[Given(a_context())]).node)
    builder.add_node(dev.agent(ScrumMasterMiddleware()))
    builder.add_node("dev_again", dev.agent(ScrumMasterMiddleware()))
    builder.add_edge(START, "scrum_master")
    builder.add_edge("scrum_master", "dev")
    builder.add_edge("dev", "dev_again")
    start: Any = {"messages": [AIMessage(QUESTION, name="dev")]}

    await builder.compile().ainvoke(start)

    assert [DECISION in "".join(message.text for message in prompt) for prompt in dev.prompts] == [True, False]


def test_what_waits_for_another_agent_is_neither_served_nor_closed() -> None:
    other = AIMessage("Which VAT rate applies to invoices within the union?", name="pm")
    state: dict[str, Any] = {"messages": [AIMessage(QUESTION, name="dev"), other]}
    master = ScrumMaster(sources=[Given(a_context())])
    state |= master.node.invoke(state)
    before = {record.agent: record.status for record in state["injection_history"]}

    update = ScrumMasterMiddleware(master, agent="tester").before_model(state, None)  # type: ignore[arg-type]

    assert sorted(before.values()) == ["injected", "pending"]
    assert update == {}


def test_an_agent_that_has_ended_is_not_called_again_for_another_ones_question() -> None:
    report = ToolMessage(QUESTION, tool_call_id="t")
    task = calls("task", description="Find it.", subagent_type="researcher", id="t")
    state: Any = {
        "messages": [task, report, AIMessage("The researcher could not find the answer to that in the logs.")]
    }

    update = served().after_model(state, None)  # type: ignore[arg-type]

    assert update is not None
    assert "jump_to" not in update


async def test_delivered_as_a_message_it_is_not_given_twice() -> None:
    dev = Developer(asks_with_the_tool)

    await dev.agent(served(config=InjectionConfig(deliver="message"))).ainvoke(START_STATE)

    assert [DECISION in message.text for message in dev.prompts[1]] == [False, False, False, False, True]
    assert [message.type for message in dev.prompts[1]] == ["system", "human", "ai", "tool", "human"]


def test_the_tool_can_be_left_out() -> None:
    assert [each.name for each in served().tools] == ["request_context"]
    assert served(request_tool=False).tools == []


class Unreadable(dict[str, Any]):
    """A payload that fails when it is looked at."""

    def get(self, key: str, default: Any = None) -> Any:
        raise ZeroDivisionError("a host's bug")


async def test_a_failure_inside_does_not_fail_the_agent(logged: list[dict[str, Any]]) -> None:
    dev = Developer("Built.")
    start = {**START_STATE, "injected_context": Unreadable(gap_id="g", agent="dev")}

    end = await dev.agent(served(clock=lambda: 1 / 0)).ainvoke(start)

    assert end["messages"][-1].text == "Built."
    assert "failed" in " ".join(str(entry["event"]) for entry in logged)


@pytest.mark.checkpoint
async def test_an_interrupt_passes_through() -> None:
    def asks_a_person(observation: Observation) -> list[ContextGap]:
        interrupt("which store?")
        return []

    dev = Developer("Built.")
    agent = dev.agent(served(detectors=[asks_a_person]), checkpointer=InMemorySaver(serde=checkpoint_serde()))
    thread: Any = {"configurable": {"thread_id": "t"}}

    stopped = await agent.ainvoke(START_STATE, thread)

    assert [each.value for each in stopped["__interrupt__"]] == ["which store?"]
    assert dev.prompts == []
    await agent.ainvoke(Command(resume="Redis"), thread)
    assert len(dev.prompts) == 1


def test_a_scrum_master_and_what_one_is_made_of_are_not_taken_together() -> None:
    with pytest.raises(ConfigError, match=r"not both; got a ScrumMaster and \['config'\]"):
        ScrumMasterMiddleware(ScrumMaster(), config=InjectionConfig())
    with pytest.raises(ConfigError, match="must be a ScrumMaster, got 'me'"):
        ScrumMasterMiddleware("me")  # type: ignore[arg-type]


def test_outside_a_graph_it_looks_at_what_it_is_given() -> None:
    request = AIMessage("", tool_calls=[{"name": "request_context", "args": {"need": QUESTION}, "id": "c"}])
    state: Any = {"messages": [request, ToolMessage("Noted.", tool_call_id="c")]}

    update = served().before_model(state, None)  # type: ignore[arg-type]

    assert update is not None
    assert update["injection_result"].injected
