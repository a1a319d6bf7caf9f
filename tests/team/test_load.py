"""Many graphs at once, and parts that hang: every graph ends, and what is left out is recorded."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from langgraph_scrum_master import ChromaMemory, InjectionConfig, RetrievedContext, ScrumMaster
from langgraph_scrum_master._internal.admission import ADMISSION, OverloadedError
from langgraph_scrum_master.model import InjectionResult, Query
from langgraph_scrum_master.protocols import State
from soak_load import ANSWER, HungStore, graph, hung_store, overload, stuck

QUICK = InjectionConfig(deadline=0.05, log_injections=False)


@pytest.mark.parametrize("threads", [False, True], ids=["async", "sync"])
def test_of_many_graphs_at_once_each_is_served_or_says_that_it_is_not(threads: bool) -> None:
    assert overload(120, deadline=1.0, threads=threads) == (120, [])


def test_those_that_are_served_are_served_in_order() -> None:
    assert overload(30, deadline=5.0, most=1) == (30, [])


class Slow:
    """A source that takes its time, and notes how many searches run at once."""

    name = "slow"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.running = self.most = self.calls = 0

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(self._seconds)
        self.running -= 1
        return [RetrievedContext(source=self.name, content=ANSWER, relevance_score=0.9)]


async def test_no_more_gaps_are_searched_for_at_once_than_set_and_late_ones_never_start() -> None:
    source = Slow(0.3)
    config = InjectionConfig(deadline=0.5, max_concurrent=2, enabled_sources=(), log_injections=False)
    team = graph(ScrumMaster(config=config, sources=[source]))

    values = await asyncio.gather(*(team.ainvoke(stuck(number)) for number in range(20)))
    results = [value["injection_result"] for value in values]
    overloaded = [result for result in results if result.failures]

    assert source.most == 2
    assert len(overloaded) >= 10
    assert source.calls == sum(result.injected for result in results)
    assert all(failure.error.startswith("overloaded: ") for result in overloaded for failure in result.failures)


async def test_a_gap_that_had_no_turn_is_searched_for_in_the_next_step() -> None:
    config = InjectionConfig(deadline=0.05, max_concurrent=1, enabled_sources=(), log_injections=False)
    team = graph(ScrumMaster(config=config, sources=[Slow(0.0)]))

    async with ADMISSION.turn(1, 1.0):
        first = await team.ainvoke(stuck())
    second = await team.ainvoke(first)

    assert not first["injection_result"].injected
    assert second["injection_result"].injected


async def test_a_task_that_gives_up_leaves_its_turn_to_the_next_one() -> None:
    done: list[str] = []

    async def run(name: str, seconds: float) -> None:
        try:
            async with ADMISSION.turn(1, seconds):
                done.append(name)
                await asyncio.sleep(0.1)
        except OverloadedError:
            done.append(f"{name} late")

    first = asyncio.create_task(run("first", 1.0))
    await asyncio.sleep(0.01)
    late, cancelled, last = (asyncio.create_task(run(*task)) for task in (("late", 0.01), ("no", 5.0), ("last", 5.0)))
    await asyncio.sleep(0.03)
    cancelled.cancel()
    await asyncio.gather(first, late, last)

    assert done == ["first", "late late", "last"]


def test_a_hung_store_leaves_few_threads_and_is_used_again_once_it_answers() -> None:
    assert hung_store(120, deadline=0.02) == (120, [])


def results_of(team: Any, steps: int) -> list[InjectionResult]:
    return [team.invoke(stuck(number))["injection_result"] for number in range(steps)]


def test_the_states_of_a_breaker_are_logged_and_part_of_the_result(logged: list[dict[str, object]]) -> None:
    store = HungStore()
    team = graph(ScrumMaster(config=QUICK), store)
    results = results_of(team, 5)
    store.released.set()
    until = time.monotonic() + 30
    while team.invoke(stuck())["injection_result"].failures and time.monotonic() < until:
        time.sleep(0.05)

    assert [result.failures[0].late for result in results] == [True, True, True, False, False]
    assert results[4].failures[0].error.startswith("suspended: no answer 3 times in a row, next attempt in 0.")
    assert [each["event"] for each in logged if str(each["event"]).startswith("breaker")] == [
        "breaker.opened",
        "breaker.closed",
    ]


def test_a_hung_store_does_not_suspend_another_one() -> None:
    scrum_master = ScrumMaster(config=QUICK)
    hung, other = HungStore(), InMemoryStore()

    results_of(graph(scrum_master, hung), 4)

    assert results_of(graph(scrum_master, other), 1)[0].failures == ()
    hung.released.set()


class SlowToOpen(ChromaMemory):
    """A memory whose opening hangs."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()
        self.openings = 0

    async def open(self) -> None:
        self.openings += 1
        await self.released.wait()


async def test_a_slow_opening_is_recorded_and_afterwards_counted_against_the_deadline() -> None:
    memory = SlowToOpen()
    config = InjectionConfig(deadline=0.2, enabled_sources=("memory",), log_injections=False)
    team = graph(ScrumMaster(config=config, memory=memory))

    first, second = [(await team.ainvoke(stuck()))["injection_result"].failures for _ in range(2)]
    memory.released.set()
    await team.ainvoke(stuck())
    await team.ainvoke(stuck())

    assert [failure.error for failure in first] == ["late: not open within 2 s"]
    assert [failure.error for failure in second] == ["late: no answer within 0.2 s"]
    assert memory.openings == 3, "an open memory is not opened again"


def test_a_hung_recorder_leaves_few_threads() -> None:
    released = threading.Event()
    before = threading.active_count()

    def hang(result: InjectionResult) -> None:
        released.wait()

    team = graph(ScrumMaster(config=QUICK, recorder=hang))

    results_of(team, 40)
    left = threading.active_count() - before
    released.set()

    assert left < 30
