"""What a run says for itself: whose memory is read, and how much an agent gets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

import supervisor
from builders import DECISION, QUESTION, Given, a_context, calls, says
from langgraph_scrum_master import (
    ChromaMemory,
    ConfigError,
    Decision,
    ScrumMaster,
    ScrumMasterMiddleware,
    ScrumMasterState,
    StoreError,
    StoreMemory,
    request_context,
)
from langgraph_scrum_master.config import ScrumMasterContext
from langgraph_scrum_master.protocols import MemoryStore
from langgraph_scrum_master.team.runtime import memory_for_namespace
from langgraph_scrum_master.testing import ScriptedChatModel

TENANTS = [f"tenant-{i}" for i in range(4)]
START_STATE: Any = {"messages": [HumanMessage("Build PAY-42.")]}


class State(MessagesState, ScrumMasterState):
    """A team's."""


def a_secret(tenant: str) -> str:
    return f"{tenant} keeps the idempotency keys of payment requests in the store {tenant}-redis, each for 24 hours."


async def filled(memory: Any) -> Any:
    for tenant in TENANTS:
        own = memory.for_namespace(tenant)
        await own.store_decision(Decision(id="D-1", agent_type="architect", context=a_secret(tenant)))
    return memory


def a_node_graph(master: ScrumMaster, store: Any = None) -> Any:
    def dev(state: State) -> dict[str, Any]:
        told = (state.get("injected_context") or {}).get("text", "")
        return {"messages": [says("dev", f"Done. {told}" if told else QUESTION)]}

    builder = StateGraph(State, context_schema=ScrumMasterContext)
    builder.add_node("dev", dev)
    builder.add_node(master.node)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")
    builder.add_conditional_edges(
        "scrum_master", lambda state: END if "Done" in state["messages"][-1].text else "dev", ["dev", END]
    )
    return builder.compile(store=store)


def repeats_what_it_is_told(prompt: list[BaseMessage]) -> AIMessage:
    told = next((message.text for message in prompt if "idempotency keys of" in message.text), "")
    return AIMessage(f"Done. {told}") if told else calls("request_context", need=QUESTION, id=f"c{len(prompt)}")


def a_middleware_graph(master: ScrumMaster, store: Any = None) -> Any:
    return create_agent(
        ScriptedChatModel(script=repeats_what_it_is_told),
        middleware=[ScrumMasterMiddleware(master)],
        context_schema=ScrumMasterContext,
        store=store,
        name="dev",
    )


def a_hook_graph(master: ScrumMaster, store: Any = None) -> Any:
    return create_react_agent(
        ScriptedChatModel(script=repeats_what_it_is_told),
        tools=[request_context],
        pre_model_hook=master.pre_model_hook,
        state_schema=supervisor.TeamState,
        context_schema=ScrumMasterContext,
        store=store,
        name="dev",
    )


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
@pytest.mark.parametrize("way", [a_node_graph, a_middleware_graph, a_hook_graph])
@pytest.mark.parametrize("place", ["chroma", "store", "the graph's store"])
async def test_tenants_that_run_at_the_same_time_never_see_each_others_memory(way: Any, place: str) -> None:
    store = InMemoryStore()
    memory = await filled(ChromaMemory() if place == "chroma" else StoreMemory(store))
    given = {} if place == "the graph's store" else {"memory": memory}
    graph = way(ScrumMaster(**given), store if not given else None)
    runs = [(tenant, ScrumMasterContext(namespace=tenant)) for tenant in TENANTS * 3]

    ends = await asyncio.gather(
        *(graph.ainvoke(START_STATE, {"recursion_limit": 12}, context=context) for _, context in runs)
    )

    for (tenant, _), end in zip(runs, ends, strict=True):
        said = end["messages"][-1].text
        assert a_secret(tenant) in said
        assert [other for other in TENANTS if f"{other}-redis" in said] == [tenant]


async def test_a_tenant_without_memory_gets_nothing_of_the_default_one() -> None:
    memory = ChromaMemory()
    await memory.store_decision(Decision(agent_type="architect", context=DECISION))
    agent = a_middleware_graph(ScrumMaster(memory=memory))

    with pytest.raises(Exception, match="Recursion limit"):
        await agent.ainvoke(START_STATE, {"recursion_limit": 20}, context=ScrumMasterContext(namespace="new"))


@dataclass
class HostContext:
    """A host's own."""

    user: str
    namespace: str


@pytest.mark.parametrize("context", [HostContext("ann", "tenant-2"), {"user": "ann", "namespace": "tenant-2"}])
async def test_a_hosts_own_context_is_read_by_its_names(context: Any) -> None:
    memory = await filled(StoreMemory(InMemoryStore()))
    builder = StateGraph(State, context_schema=type(context))
    builder.add_node(ScrumMaster(memory=memory).node)
    builder.add_edge(START, "scrum_master")

    end = await builder.compile().ainvoke({"messages": [says("dev", QUESTION)]}, context=context)

    assert "tenant-2-redis" in end["injected_context"]["text"]


async def test_a_run_can_give_an_agent_less() -> None:
    many = [a_context(f"Fact {i} about idempotency keys in Redis, of its own.", key=f"k{i}") for i in range(4)]
    builder = StateGraph(State, context_schema=ScrumMasterContext)
    builder.add_node(ScrumMaster(sources=[Given(*many)]).node)
    builder.add_edge(START, "scrum_master")
    graph: Any = builder.compile()
    start = {"messages": [says("dev", QUESTION)]}

    whole = await graph.ainvoke(start)
    one = await graph.ainvoke(start, context=ScrumMasterContext(max_context_items=1))
    none = await graph.ainvoke(start, context=ScrumMasterContext(max_context_tokens=10))

    assert [len(end["injection_result"].contexts_retrieved) for end in (whole, one, none)] == [4, 1, 0]


class Untyped(TypedDict):
    """A host's own, of which nobody says what it holds."""

    namespace: Any


@pytest.mark.parametrize("namespace", ["", 7, "default\x1fcode"])
async def test_a_namespace_that_is_none_gives_nothing_at_all(namespace: Any) -> None:
    memory = ChromaMemory()
    await memory.store_decision(Decision(agent_type="architect", context=DECISION))
    builder = StateGraph(State, context_schema=Untyped)
    builder.add_node(ScrumMaster(memory=memory).node)
    builder.add_edge(START, "scrum_master")
    start: Any = {"messages": [says("dev", QUESTION)]}

    end = await builder.compile().ainvoke(start, context={"namespace": namespace})

    assert "injection_result" not in end
    assert "ConfigError: namespace must be a" in end["sm_output"].processing_notes
    assert f"got {namespace!r}" in end["sm_output"].processing_notes


def test_a_bad_context_is_refused_when_it_is_made() -> None:
    with pytest.raises(ConfigError, match="max_context_tokens must be a whole number, 1 or more, got 0"):
        ScrumMasterContext(max_context_tokens=0)


def test_a_bad_context_is_refused_when_a_run_gives_it_as_a_dict() -> None:
    builder = StateGraph(State, context_schema=ScrumMasterContext)
    builder.add_node(ScrumMaster().node)
    builder.add_edge(START, "scrum_master")
    graph: Any = builder.compile()

    with pytest.raises(ConfigError, match="namespace must be a non-empty text without control characters, got 7"):
        graph.invoke({"messages": [says("dev", QUESTION)]}, context={"namespace": 7})


class Shared(StoreMemory):
    """A memory that gives everybody the same."""

    def for_namespace(self, namespace: str) -> Shared:
        return self


class Plain:
    """A memory that knows no tenants."""


def test_a_memory_that_gives_another_namespace_is_refused() -> None:
    with pytest.raises(StoreError, match=r"for_namespace\('a'\) returned Shared.*another namespace"):
        memory_for_namespace(Shared(InMemoryStore()), "a")


def test_a_memory_that_cannot_be_opened_for_a_namespace_is_not_shared() -> None:
    memory: Any = Plain()

    with pytest.raises(ConfigError, match=r"namespace 'a' .* needs .* 'namespaces' \(namespace, for_namespace\)"):
        memory_for_namespace(memory, "a")


def test_a_namespace_in_one_place_is_always_the_same_memory() -> None:
    memory = ChromaMemory()
    tenant = memory.for_namespace("a")

    assert isinstance(tenant, MemoryStore)
    assert memory.for_namespace("a") == tenant != memory
    assert tenant.for_namespace("default") == memory != ChromaMemory()
    assert tenant.for_namespace("b") == memory.for_namespace("b")
    assert tenant.beside("code") == memory.for_namespace("a").beside("code") != tenant


@pytest.mark.parametrize("place", [ChromaMemory, lambda: StoreMemory(InMemoryStore())], ids=["chroma", "store"])
async def test_a_tenant_that_is_called_like_what_another_keeps_beside_does_not_see_it(place: Any) -> None:
    memory = place()
    await memory.for_namespace("acme").beside("code").store_embedding("f", a_secret("acme"), {})

    assert await memory.for_namespace("acme/code").search_similar(QUESTION) == []


async def test_very_many_tenants_in_a_folder_are_not_all_kept_open(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("langgraph_scrum_master.memory.store.MOST_SHELVES", 2)
    memory = await filled(ChromaMemory(tmp_path))

    for tenant in (*TENANTS, *TENANTS):
        found = await memory.for_namespace(tenant).search_similar(QUESTION)
        assert [result.content for result in found] == [a_secret(tenant)]
