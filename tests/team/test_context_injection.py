"""The four functions, called as a test harness calls them: on plain dicts, without a graph."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from builders import DECISION, QUESTION, Given, a_context, a_gap, a_state, texts
from langgraph_scrum_master import (
    ChromaMemory,
    Decision,
    InjectionConfig,
    ScrumMaster,
    context_for,
    detect_context_gap,
    inject_context,
    injection_update,
    manage_context_injection,
    retrieve_relevant_context,
)

STUCK = a_state(("user", "Build PAY-42."), ("dev", QUESTION))


@pytest.fixture
async def memory() -> ChromaMemory:
    memory = ChromaMemory()
    await memory.store_decision(Decision(id="D-104", agent_type="architect", context=DECISION))
    await memory.store_embedding("style", "The front end is written in TypeScript with React.", {})
    return memory


async def test_context_is_retrieved_from_memory_and_given_to_the_agent(memory: ChromaMemory) -> None:
    result = await manage_context_injection(STUCK, memory)

    assert result is not None
    assert result.injected
    assert texts(result.contexts_retrieved) == [DECISION]
    assert result.contexts_retrieved[0].source == "memory"
    assert DECISION in context_for(STUCK | injection_update(result, STUCK), "dev")


async def test_an_injection_is_logged_without_any_text(memory: ChromaMemory, logged: list[dict[str, Any]]) -> None:
    await manage_context_injection(STUCK, memory)

    (entry,) = [entry for entry in logged if entry["event"] == "context.injected"]
    assert (entry["agent"], entry["reason"], entry["contexts"]) == ("dev", "clarification_requested", ["D-104"])
    assert DECISION not in repr(logged)
    assert QUESTION not in repr(logged)


async def test_logging_can_be_turned_off(memory: ChromaMemory, logged: list[dict[str, Any]]) -> None:
    await manage_context_injection(STUCK, memory, InjectionConfig(log_injections=False))

    assert logged == []


async def test_without_a_gap_there_is_no_result(memory: ChromaMemory) -> None:
    assert await detect_context_gap({}) is None
    assert await manage_context_injection({}, memory) is None
    assert await manage_context_injection(a_state(("dev", "Done, all tests pass.")), memory) is None


async def test_without_a_memory_the_state_still_serves() -> None:
    state = a_state(("dev", QUESTION), decisions=[{"agent": "architect", "summary": DECISION}])

    result = await manage_context_injection(state)

    assert result is not None
    assert [context.source for context in result.contexts_retrieved] == ["state"]


async def test_retrieval_respects_bar_items_and_sources(memory: ChromaMemory) -> None:
    gap = a_gap()
    state = a_state(("dev", QUESTION), decisions=[{"agent": "pm", "summary": "Idempotency keys are kept in a store."}])

    async def found(**config: Any) -> list[str]:
        return texts(await retrieve_relevant_context(gap, memory, state, InjectionConfig(**config)))

    assert len(await found()) == 2
    assert len(await found(max_context_items=1)) == 1
    assert await found(enabled_sources=("memory",)) == [DECISION]
    assert await found(enabled_sources=()) == []
    assert await found(min_relevance_score=1.0) == []
    assert len(await found(min_relevance_score=0.0)) == 2, "what is far below the best is left out below any bar"


async def test_the_asking_message_is_never_given_back() -> None:
    state = a_state(("dev", QUESTION), ("tester", "Still on it."))
    memory = ChromaMemory()
    await memory.store_embedding("log", QUESTION, {})

    for window in (0, 50):
        config = InjectionConfig(min_relevance_score=0.0, view_window=window)
        assert QUESTION not in texts(await retrieve_relevant_context(a_gap(), memory, state, config))


async def test_injecting_changes_nothing_and_says_what_it_would_write() -> None:
    before = copy.deepcopy(STUCK)

    result = await inject_context(a_gap(), [a_context()], STUCK, InjectionConfig())

    assert before == STUCK
    assert result.injected
    assert result.injection_target == "injected_context"
    assert set(injection_update(result, STUCK)) == {
        "injection_result",
        "injection_history",
        "injected_context",
        "sm_output",
    }


async def test_injecting_nothing_is_a_result_too() -> None:
    result = await inject_context(a_gap(), [], STUCK, InjectionConfig())

    assert (result.injected, result.contexts_retrieved, result.total_context_size) == (False, (), 0)


@pytest.mark.parametrize(
    "state", [{"messages": None}, {"messages": "text"}, {"messages": [{"role": "assistant", "name": 7}]}, {}]
)
async def test_a_malformed_state_raises_nowhere(state: dict[str, Any]) -> None:
    config = InjectionConfig(enabled_sources=("memory", "state", "sprint", "architecture"))

    assert await detect_context_gap(state) is None
    assert await retrieve_relevant_context(a_gap(), None, state, config) == ()
    assert (await inject_context(a_gap(), [a_context()], state, config)).injected
    assert await manage_context_injection(state, None, config) is None


async def test_malformed_messages_are_told(logged: list[dict[str, Any]]) -> None:
    await detect_context_gap({"messages": None})

    assert [(entry["event"], entry["key"], entry["got"]) for entry in logged] == [
        ("state.malformed", "messages", "NoneType")
    ]


@pytest.mark.parametrize("agent", [None, 7, "", ["dev"]])
async def test_odd_agents_still_get_a_gap(agent: object) -> None:
    gap = await detect_context_gap({"current_agent": agent, "missing_context": "the schema"})

    assert gap is not None
    assert gap.agent == "unknown"


def test_the_duration_is_the_clocks() -> None:
    ticks = iter(range(100))

    result = ScrumMaster(sources=[Given(a_context())], clock=lambda: float(next(ticks))).evaluate(STUCK)

    assert result is not None
    assert result.duration_ms == 1000.0
