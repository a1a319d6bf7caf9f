from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from builders import DECISION, QUESTION, Given, a_context, says
from langgraph_scrum_master import (
    ChromaMemory,
    ContextGap,
    Decision,
    InjectionConfig,
    ScrumMaster,
    ScrumMasterState,
    StoreMemory,
    checkpoint_serde,
    context_for,
)
from langgraph_scrum_master.errors import GraphError, ScrumMasterWarning
from langgraph_scrum_master.model import Observation


class State(MessagesState, ScrumMasterState):
    handoff_context: dict[str, Any]


class Team:
    """A developer that asks until it is told, and what it was told."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def dev(self, state: State) -> dict[str, Any]:
        self.prompts.append(context_for(state, "dev"))
        answer = "Done: the keys go into Redis." if DECISION in self.prompts[-1] else QUESTION
        return {"messages": [says("dev", answer)]}


def route(state: State) -> str:
    return END if "Done" in state["messages"][-1].text else "dev"


def a_builder(team: Team, master: ScrumMaster, node: Any = None) -> StateGraph[State, None, State, State]:
    builder = StateGraph(State)
    builder.add_node("dev", team.dev)
    builder.add_node("scrum_master", node or master.node)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")
    builder.add_conditional_edges("scrum_master", route, ["dev", END])
    return builder


@pytest.fixture
async def memory() -> ChromaMemory:
    memory = ChromaMemory()
    await memory.store_decision(Decision(id="D-104", agent_type="architect", context=DECISION))
    return memory


START_STATE: Any = {"messages": [HumanMessage("Build PAY-42.")]}
LIMITED: Any = {"recursion_limit": 8}


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_the_next_agents_prompt_holds_the_decision(memory: ChromaMemory, way: str) -> None:
    team = Team()
    graph = a_builder(team, ScrumMaster(memory=memory)).compile()

    match way:
        case "invoke":
            await asyncio.to_thread(graph.invoke, START_STATE, LIMITED)
        case "ainvoke":
            await graph.ainvoke(START_STATE, LIMITED)
        case "stream":
            await asyncio.to_thread(lambda: list(graph.stream(START_STATE, LIMITED)))
        case _:
            [update async for update in graph.astream(START_STATE, LIMITED)]

    assert len(team.prompts) == 2
    assert team.prompts[0] == ""
    assert DECISION in team.prompts[1]


def test_the_same_graph_without_a_memory_never_gets_there() -> None:
    team = Team()

    with pytest.raises(Exception, match="Recursion limit"):
        a_builder(team, ScrumMaster()).compile().invoke(START_STATE, LIMITED)

    assert set(team.prompts) == {""}


async def test_the_result_in_the_state_is_frozen_and_complete(memory: ChromaMemory) -> None:
    end = await a_builder(Team(), ScrumMaster(memory=memory)).compile().ainvoke(START_STATE, LIMITED)

    result = end["injection_result"]
    assert result.injected
    assert [(context.key, context.size) for context in result.contexts_retrieved] == [("D-104", len(DECISION))]
    assert end["injected_context"] is None
    assert [record.status for record in end["injection_history"]] == ["injected"]
    assert "dev lacks context" in end["sm_output"].processing_notes
    with pytest.raises(AttributeError):
        result.injected = False


async def test_the_node_serves_as_a_coroutine_with_a_timeout(memory: ChromaMemory) -> None:
    team, master = Team(), ScrumMaster(memory=memory)
    builder = StateGraph(State)
    builder.add_node("dev", team.dev)
    builder.add_node(master.async_node, timeout=30.0)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")
    builder.add_conditional_edges("scrum_master", route, ["dev", END])
    master.check(builder)

    await builder.compile().ainvoke(START_STATE, LIMITED)

    assert DECISION in team.prompts[1]


async def test_without_a_memory_the_graphs_own_store_serves() -> None:
    store, team = InMemoryStore(), Team()
    await StoreMemory(store).store_decision(Decision(agent_type="architect", context=DECISION))

    await a_builder(team, ScrumMaster()).compile(store=store).ainvoke(START_STATE, LIMITED)

    assert DECISION in team.prompts[1]


async def test_another_namespaces_memory_in_the_graphs_store_is_not_seen() -> None:
    store, team = InMemoryStore(), Team()
    await StoreMemory(store, namespace="other").store_decision(Decision(agent_type="architect", context=DECISION))
    master = ScrumMaster(config=InjectionConfig(namespace="mine"))

    with pytest.raises(Exception, match="Recursion limit"):
        await a_builder(team, master).compile(store=store).ainvoke(START_STATE, LIMITED)

    assert set(team.prompts) == {""}


async def test_a_delivered_message_is_in_the_history_with_our_tag(memory: ChromaMemory) -> None:
    master = ScrumMaster(memory=memory, config=InjectionConfig(deliver="message"))

    end = await a_builder(Team(), master).compile().ainvoke(START_STATE, LIMITED)

    (ours,) = [message for message in end["messages"] if message.additional_kwargs.get("lc_source") == "scrum_master"]
    assert DECISION in ours.text
    assert ours.type == "human"
    assert [message.type for message in end["messages"]] == ["human", "ai", "human", "ai"]


def test_no_message_is_put_between_a_tool_call_and_its_answer() -> None:
    call = {"name": "request_context", "args": {"need": "the key store"}, "id": "c1"}
    master = ScrumMaster(sources=[Given(a_context())], config=InjectionConfig(deliver="message"))

    update = master.node.invoke({"messages": [says("dev", "", tool_calls=[call])]})

    assert "injected_context" in update
    assert "messages" not in update


async def test_events_are_streamed_as_they_happen(memory: ChromaMemory) -> None:
    graph = a_builder(Team(), ScrumMaster(memory=memory)).compile()

    events = [event async for event in graph.astream(START_STATE, LIMITED, stream_mode="custom")]

    assert [event["event"] for event in events] == [
        "scrum_master.gap",
        "scrum_master.retrieved",
        "scrum_master.injected",
    ]
    assert events[0]["agent"] == "dev"


class Host(TypedDict):
    messages: Annotated[list[Any], add_messages]


def test_a_graph_that_would_drop_our_keys_is_rejected_with_the_keys_and_a_fix() -> None:
    builder = StateGraph(Host)
    builder.add_node("dev", lambda state: {})

    with pytest.raises(GraphError, match=r"would drop 'injected_context', 'injection_result'.*Mix ScrumMasterState"):
        ScrumMaster().check(builder)


class Narrow(TypedDict):
    messages: Annotated[list[Any], add_messages]


def test_a_graph_in_which_nobody_can_read_the_context_is_warned_of() -> None:
    def blind(state: Narrow) -> dict[str, Any]:
        return {}

    master = ScrumMaster()
    builder = StateGraph(State)
    builder.add_node(master.node)
    builder.add_node("dev", blind)

    with pytest.warns(ScrumMasterWarning, match="no node of the graph can receive the context"):
        master.check(builder)


def test_a_good_graph_passes_the_check() -> None:
    master = ScrumMaster()

    master.check(a_builder(Team(), master))


class OtherTypes(ScrumMasterState):
    messages: Annotated[list[Any], operator.add]
    decisions: dict[str, int]


def test_a_hosts_keys_of_other_types_do_no_harm() -> None:
    def dev(state: OtherTypes) -> dict[str, Any]:
        return {"messages": [says("dev", QUESTION)], "decisions": {"count": 3}}

    builder = StateGraph(OtherTypes)
    builder.add_node("dev", dev)
    builder.add_node(ScrumMaster(sources=[Given(a_context())]).node)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")

    end = builder.compile().invoke({"messages": [], "decisions": {}})

    assert end["decisions"] == {"count": 3}
    assert end["injection_result"].injected


def parallel(first: ScrumMaster, second: ScrumMaster) -> Any:
    builder = StateGraph(State)
    builder.add_node(
        "ask",
        lambda state: {
            "messages": [says("dev", QUESTION, id="q1"), says("pm", QUESTION + " Please tell me.", id="q2")]
        },
    )
    builder.add_node("one", first.node)
    builder.add_node("two", second.node)
    builder.add_edge(START, "ask")
    for name in ("one", "two"):
        builder.add_edge("ask", name)
    return builder.compile()


def only(agent: str) -> Callable[[Observation], list[ContextGap]]:
    from langgraph_scrum_master.team.detect.gap import gap

    def detector(observation: Observation) -> list[ContextGap]:
        return [
            gap(observation, agent=agent, reason="explicit_flag", query="key store", confidence=1, indicators=(agent,))
        ]

    return detector


def test_two_scrum_masters_in_one_step_lose_nothing() -> None:
    source = Given(a_context())
    graph = parallel(
        ScrumMaster(sources=[source], detectors=[only("dev")]), ScrumMaster(sources=[source], detectors=[only("pm")])
    )

    end = graph.invoke(START_STATE)

    assert DECISION in context_for(end, "dev")
    assert DECISION in context_for(end, "pm")


def test_the_same_scrum_master_twice_in_one_step_is_one() -> None:
    master = ScrumMaster(sources=[Given(a_context())])

    end = parallel(master, master).invoke(START_STATE)

    assert len([record for record in end["injection_history"] if record.status == "injected"]) == 1


def test_a_subgraph_that_returns_its_whole_state_duplicates_nothing() -> None:
    inner_builder = StateGraph(State)
    inner_builder.add_node("dev", Team().dev)
    inner_builder.add_node(ScrumMaster(sources=[Given(a_context())]).node)
    inner_builder.add_edge(START, "dev")
    inner_builder.add_edge("dev", "scrum_master")
    inner = inner_builder.compile()
    outer = StateGraph(State)
    outer.add_node("team", inner)
    outer.add_node("again", inner)
    outer.add_edge(START, "team")
    outer.add_edge("team", "again")

    end = outer.compile().invoke(START_STATE)

    assert end["messages"][-1].text.startswith("Done")
    assert [record.status for record in end["injection_history"]] == ["injected"]


class Unreadable(dict[str, Any]):
    """A host's value that fails when it is looked at."""

    def get(self, key: str, default: Any = None) -> Any:
        raise ZeroDivisionError("a host's bug")


def test_a_failure_inside_is_recorded_and_the_graph_goes_on(logged: list[dict[str, Any]]) -> None:
    builder = StateGraph(State)
    builder.add_node("host", lambda state: {"handoff_context": Unreadable(a=1)})
    builder.add_node(ScrumMaster().node)
    builder.add_node("dev", lambda state: {"messages": [says("dev", "Done.")]})
    builder.add_edge(START, "host")
    builder.add_edge("host", "scrum_master")
    builder.add_edge("scrum_master", "dev")

    end = builder.compile().invoke(START_STATE)

    assert end["messages"][-1].text == "Done."
    assert end["sm_output"].processing_notes == "failed, the graph continues: ZeroDivisionError: a host's bug"
    assert [entry["event"] for entry in logged] == ["observation.failed"]


@pytest.mark.parametrize("clock", [lambda: float("nan"), lambda: 1 / 0], ids=["nan", "raises"])
def test_even_a_broken_clock_does_not_fail_the_graph(clock: Callable[[], float]) -> None:
    update = ScrumMaster(sources=[Given(a_context())], clock=clock).node.invoke({"messages": [says("dev", QUESTION)]})

    assert "failed, the graph continues" in update["sm_output"].processing_notes


def test_a_broken_detector_is_logged_and_the_others_run(logged: list[dict[str, Any]]) -> None:
    def broken(observation: Observation) -> list[ContextGap]:
        raise ZeroDivisionError("a detector's bug")

    gaps = ScrumMaster(detectors=[broken]).detect({"messages": [says("dev", QUESTION)]})

    assert [gap.reason for gap in gaps] == ["clarification_requested"]
    assert [(entry["event"], entry["detector"]) for entry in logged] == [("detector.failed", "broken")]


@pytest.mark.checkpoint
def test_an_interrupt_raised_in_a_detector_passes_through() -> None:
    def asks_a_person(observation: Observation) -> list[ContextGap]:
        interrupt("which store?")
        return []

    builder = StateGraph(State)
    builder.add_node(ScrumMaster(detectors=[asks_a_person]).node)
    builder.add_edge(START, "scrum_master")
    graph = builder.compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}

    stopped = graph.invoke(START_STATE, thread)
    graph.invoke(Command(resume="Redis"), thread)

    assert [each.value for each in stopped["__interrupt__"]] == ["which store?"]
    assert graph.get_state(thread).next == ()


def test_the_node_can_be_called_outside_a_graph() -> None:
    update = ScrumMaster(sources=[Given(a_context())]).node.invoke({"messages": [AIMessage(QUESTION, name="dev")]})

    assert update["injection_result"].injected


def test_a_subgraph_that_never_saw_the_payload_does_not_delete_it() -> None:
    quiet = StateGraph(State)
    quiet.add_node("pm", lambda state: {"messages": [says("pm", "Plan is ready.")]})
    quiet.add_edge(START, "pm")
    builder = StateGraph(State)
    builder.add_node(ScrumMaster(sources=[Given(a_context())]).node)
    builder.add_node("team", quiet.compile())
    for name in ("scrum_master", "team"):
        builder.add_edge(START, name)
    start: Any = {"messages": [says("dev", QUESTION)], "injected_context": None}

    end = builder.compile().invoke(start)

    assert DECISION in context_for(end, "dev")


def test_a_message_delayed_by_a_tool_call_comes_after_the_tools_answer() -> None:
    calls = [{"name": "request_context", "args": {"need": "the key store"}, "id": i} for i in ("c1", "c2")]
    asks = says("dev", "", tool_calls=calls, id="a")
    first = ToolMessage("Noted.", tool_call_id="c1", id="t1")
    second = ToolMessage("Noted.", tool_call_id="c2", id="t2")
    master = ScrumMaster(sources=[Given(a_context())], config=InjectionConfig(deliver="message"))

    state: dict[str, Any] = {"messages": [asks, first]}
    update = master.node.invoke(state)
    assert "messages" not in update

    state |= update
    state["messages"] = [asks, first, second]
    (message,) = master.node.invoke(state)["messages"]
    assert DECISION in message.text

    state["messages"] = [asks, first, second, message]
    assert master.node.invoke(state) == {}


class NoReducers(TypedDict):
    messages: Annotated[list[Any], add_messages]
    injected_context: Any
    injection_result: Any
    injection_history: list[Any]
    sm_output: Any
    team_figures: Any


def test_keys_without_reducers_are_refused() -> None:
    builder = StateGraph(NoReducers)
    builder.add_node("dev", lambda state: {})

    with pytest.raises(GraphError, match=r"would overwrite 'injected_context'.*no reducer"):
        ScrumMaster().check(builder)


def test_check_warns_about_two_scrum_masters_that_may_write_the_same_handoff() -> None:
    master = ScrumMaster()
    builder = a_builder(Team(), master)
    builder.add_node("second", master.async_node)

    with pytest.warns(ScrumMasterWarning, match="'handoff_context' has no reducer, and 2 scrum masters"):
        master.check(builder)


def test_a_compiled_graph_can_be_checked_too() -> None:
    master = ScrumMaster()

    master.check(a_builder(Team(), master).compile())  # type: ignore[arg-type]


async def test_a_store_with_blocking_methods_only_serves() -> None:
    with SqliteStore.from_conn_string(":memory:") as store:
        store.setup()
        team = Team()
        await StoreMemory(store).store_decision(Decision(agent_type="architect", context=DECISION))

        await a_builder(team, ScrumMaster()).compile(store=store).ainvoke(START_STATE, LIMITED)

    assert DECISION in team.prompts[1]


async def test_a_store_that_lives_on_the_event_loop_serves(tmp_path: Path) -> None:
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
        await store.setup()
        team = Team()
        await StoreMemory(store).store_decision(Decision(agent_type="architect", context=DECISION))

        await a_builder(team, ScrumMaster()).compile(store=store).ainvoke(START_STATE, LIMITED)

    assert DECISION in team.prompts[1]


async def test_an_empty_memory_is_still_the_memory() -> None:
    class Sized(ChromaMemory):
        def __len__(self) -> int:
            return 0

    store, memory, team = InMemoryStore(), Sized(), Team()
    await memory.store_decision(Decision(agent_type="architect", context=DECISION))

    await a_builder(team, ScrumMaster(memory=memory)).compile(store=store).ainvoke(START_STATE, LIMITED)

    assert DECISION in team.prompts[1]


@pytest.mark.checkpoint
def test_numbers_of_other_libraries_go_into_a_checkpoint() -> None:
    context = a_context(score=cast(float, np.float32(0.9)))
    builder = StateGraph(State)
    builder.add_node(ScrumMaster(sources=[Given(context)]).node)
    builder.add_edge(START, "scrum_master")
    graph = builder.compile(checkpointer=InMemorySaver(serde=checkpoint_serde()))
    thread: Any = {"configurable": {"thread_id": "t"}}

    start: Any = {"messages": [says("dev", QUESTION)]}

    graph.invoke(start, thread)

    assert graph.get_state(thread).values["injection_result"].injected


class Stubborn:
    """A developer that asks the same again until a person's answer reaches it."""

    def dev(self, state: State) -> dict[str, Any]:
        told = "DynamoDB" in context_for(state, "dev")
        return {"messages": [says("dev", "Done: DynamoDB it is." if told else QUESTION)]}


@pytest.mark.checkpoint
@pytest.mark.parametrize("way", ["sync", "async"])
async def test_a_person_is_asked_when_context_does_not_help_and_the_answer_is_given_and_remembered(way: str) -> None:
    memory = ChromaMemory()
    await memory.store_decision(Decision(agent_type="architect", context=DECISION))
    master = ScrumMaster(memory=memory, config=InjectionConfig(escalate="interrupt", max_attempts=2))
    builder = StateGraph(State)
    builder.add_node("dev", Stubborn().dev)
    builder.add_node(master.node)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")
    builder.add_conditional_edges("scrum_master", route, ["dev", END])
    graph = builder.compile(checkpointer=InMemorySaver(serde=checkpoint_serde()))
    thread: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 20}

    async def run(start: Any) -> Any:
        if way == "async":
            return await graph.ainvoke(start, thread)
        return await asyncio.to_thread(graph.invoke, start, thread)

    stopped = await run(START_STATE)
    (asked,) = [each.value for each in stopped["__interrupt__"]]
    end = await run(Command(resume="We moved on: keys go into DynamoDB now."))

    assert (asked["agent"], asked["question"]) == ("dev", QUESTION)
    assert end["messages"][-1].text == "Done: DynamoDB it is."
    assert end["injection_result"].escalated
    assert any("DynamoDB" in result.content for result in await memory.search_similar(QUESTION))


def test_without_a_person_the_result_tells_it_once() -> None:
    master = ScrumMaster(sources=[Given(a_context())], config=InjectionConfig(max_attempts=1))
    state: dict[str, Any] = {"messages": []}
    told = []
    for i in range(4):
        state["messages"] = [*state["messages"], says("dev", QUESTION, id=f"q{i}")]
        update = master.node.invoke(state)
        told += [update["injection_result"].escalated] if "injection_result" in update else []
        state |= update

    assert told == [False, True]
