"""Sources that raise what no `except Exception` catches: the graph goes on, and the next one does too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_scrum_master import RetrievedContext, ScrumMaster, ScrumMasterState
from langgraph_scrum_master._internal.threads import off_loop, wait_for
from langgraph_scrum_master.model import Query
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.testing import a_state


class PanicError(BaseException):
    """What native code raises, as PyO3's `PanicException` does."""


RAISED = [SystemExit(3), KeyboardInterrupt(), PanicError("index out of bounds"), GeneratorExit()]


class TeamState(MessagesState, ScrumMasterState):
    """A team's state."""


class Hostile:
    name = "hostile"

    def __init__(self, error: BaseException, blocking: bool) -> None:
        self._error = error
        self._blocking = blocking

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        if self._blocking:
            await off_loop(self._fail)
        self._fail()
        return []

    def _fail(self) -> None:
        raise self._error


STUCK: Any = a_state(("user", "Build the refunds."), ("dev", "To which queue do refunds go?"))


@pytest.mark.parametrize("blocking", [False, True], ids=["on the loop", "in a thread"])
@pytest.mark.parametrize("error", RAISED[:3], ids=lambda error: type(error).__name__)
def test_a_sync_graph_goes_on_and_so_does_the_next(error: BaseException, blocking: bool) -> None:
    builder = StateGraph(TeamState)
    builder.add_node("scrum_master", ScrumMaster(sources=[Hostile(error, blocking)]).node)
    builder.add_edge(START, "scrum_master")
    graph = builder.compile()

    for _ in range(2):
        failures = graph.invoke(STUCK)["injection_result"].failures

        assert [failure.source for failure in failures] == ["hostile"]
        assert type(error).__name__ in failures[0].error


async def test_in_an_async_graph_a_panic_is_a_failure_of_its_source() -> None:
    builder = StateGraph(TeamState)
    builder.add_node("scrum_master", ScrumMaster(sources=[Hostile(RAISED[2], blocking=False)]).node)
    builder.add_edge(START, "scrum_master")

    result = await builder.compile().ainvoke(STUCK)

    assert "PanicError: index out of bounds" in result["injection_result"].failures[0].error


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=lambda error: type(error).__name__)
def test_the_shared_event_loop_survives_what_ends_others(error: BaseException) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        wait_for(fail())

    assert wait_for(asyncio.sleep(0, "alive")) == "alive"


class Unprintable:
    def __str__(self) -> str:
        raise PanicError("no text")


class Name(str):
    """A text whose own methods raise."""

    def __str__(self) -> str:
        raise PanicError("no text")


GOOD = RetrievedContext(source="given", content="Refunds go to the queue refunds-eu.", relevance_score=0.95)


def with_field(name: str, value: object) -> RetrievedContext:
    context = replace(GOOD, key="bad", content="Refunds of Peru go to the queue refunds-pe.")
    object.__setattr__(context, name, value)
    return context


class Returns:
    name = "given"

    def __init__(self, *items: Any) -> None:
        self._items = items

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        return self._items


@pytest.mark.parametrize(
    "bad",
    [None, "text", Unprintable()]
    + [with_field(name, value) for name in ("title", "content", "key") for value in (7, Unprintable(), None)]
    + [with_field("title", "t" * 100_000)],
    ids=lambda bad: type(bad).__name__,
)
async def test_a_bad_item_is_lost_alone_and_recorded(bad: Any) -> None:
    result = await ScrumMaster(sources=[Returns(bad, GOOD)]).aevaluate(STUCK)

    assert result is not None
    assert [context.content for context in result.contexts_retrieved] == [GOOD.content]
    assert [(each.source, each.error[:20]) for each in result.failures] == [("given", "1 of 2 items dropped")]


@pytest.mark.parametrize("title", ["\ud800 surrogate", Name("own text"), "t" * 9_000])
async def test_an_odd_title_does_not_lose_the_step(title: str) -> None:
    result = await ScrumMaster(sources=[Returns(with_field("title", title), GOOD)]).aevaluate(STUCK)

    assert result is not None
    assert GOOD.content in [context.content for context in result.contexts_retrieved]
    result.text.encode()


async def test_a_decision_of_the_host_that_cannot_be_printed_is_lost_alone_and_recorded() -> None:
    state = {
        **STUCK,
        "decisions": [
            {"id": "d1", "summary": "Refunds go to the queue refunds-eu."},
            {"id": "d2", "summary": "Other.", "timestamp": Unprintable()},
        ],
    }

    result = await ScrumMaster().aevaluate(state)

    assert result is not None
    assert result.injected
    assert [(each.source, each.error) for each in result.failures] == [
        ("state", "1 of 2 items dropped: RuntimeError: PanicError: no text")
    ]
