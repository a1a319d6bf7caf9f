"""Slow proofs of what happens under load and with hostile parts: what the soak runs beside the memory's own proofs.

Each function takes a size and returns how many things it tried and what failed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore

from langgraph_scrum_master import InjectionConfig, RetrievedContext, ScrumMaster, ScrumMasterState
from langgraph_scrum_master.model import InjectionResult, Query


class Tried(NamedTuple):
    """How many things were tried, and what failed."""

    tries: int
    failures: list[str]


class TeamState(MessagesState, ScrumMasterState):
    """The state of a team, with a key that is searched."""

    decisions: list[Any]


QUESTION = "To which queue do refunds go?"
ANSWER = "Refunds go to the queue refunds-eu, with three retries."


def stuck(number: int = 0) -> dict[str, Any]:
    """The state of a team with a question that a decision answers."""
    messages = [
        {"role": "user", "content": f"Build the refunds of shop {number}.", "id": f"u{number}"},
        {"role": "assistant", "name": "dev", "content": QUESTION, "id": f"q{number}"},
    ]
    return {"messages": messages, "decisions": [{"id": "d1", "agent": "architect", "summary": ANSWER}]}


def graph(scrum_master: ScrumMaster, store: InMemoryStore | None = None) -> Any:
    builder = StateGraph(TeamState)
    builder.add_node("scrum_master", scrum_master.node)
    builder.add_edge(START, "scrum_master")
    return builder.compile(store=store)


class Numbered:
    """A source that notes in which order it is searched."""

    name = "numbered"

    def __init__(self) -> None:
        self.order: list[int] = []

    async def find(self, query: Query, state: Mapping[str, Any]) -> Iterable[RetrievedContext]:
        number = int(state["messages"][0].id[1:])
        if number not in self.order:
            self.order.append(number)
        return [RetrievedContext(source=self.name, content=ANSWER, relevance_score=0.9)]


def overload(size: int, deadline: float = 2.0, most: int = 8, threads: bool = False) -> Tried:
    """Serve many graphs at once: all end, in the order in which they came, and those not served say so."""
    source = Numbered()
    config = InjectionConfig(deadline=deadline, max_concurrent=most, log_injections=False)
    team = graph(ScrumMaster(config=config, sources=[source]))
    began = time.monotonic()
    if threads:
        with ThreadPoolExecutor(size) as pool:
            results = list(pool.map(lambda number: team.invoke(stuck(number)), range(size)))
    else:
        results = asyncio.run(_at_once(team, size))
    took = time.monotonic() - began
    failures = [failure for result in results for failure in _not_accounted(result.get("injection_result"))]
    if not any(result["injection_result"].injected for result in results if "injection_result" in result):
        failures.append("none was served")
    if not threads and (early := _out_of_order(source.order, most)):
        failures.append(f"served before their turn: {early[:20]}")
    if took > 20 * deadline + size / 10:
        failures.append(f"took {took:.0f} s")
    return Tried(size, failures)


def _out_of_order(order: list[int], most: int) -> list[int]:
    """The numbers that came before one that is smaller by more than as many as are served at once."""
    return [number for place, number in enumerate(order) if number - min(order[place:]) >= 2 * most]


async def _at_once(team: Any, size: int) -> list[Any]:
    return await asyncio.gather(*(team.ainvoke(stuck(number)) for number in range(size)))


def _not_accounted(result: InjectionResult | None) -> Iterator[str]:
    if result is None:
        yield "no result"
    elif not result.injected and not any(failure.error.startswith("overloaded") for failure in result.failures):
        yield f"neither served nor overloaded: {result.failures}, {[drop.why for drop in result.dropped]}"


class HungStore(InMemoryStore):
    """A store whose every call hangs until it is released."""

    __slots__ = ("released",)

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        self.released.wait()
        return super().batch(ops)


def hung_store(steps: int, deadline: float = 0.05) -> Tried:
    """Take many steps with a store that hangs: few threads are left, and the store is used again once it answers."""
    store, before = HungStore(), threading.active_count()
    team = graph(ScrumMaster(config=InjectionConfig(deadline=deadline, log_injections=False)), store)
    failures, most, seconds = [], 0, []
    for number in range(steps):
        began = time.monotonic()
        result = team.invoke(stuck(number))["injection_result"]
        seconds.append(time.monotonic() - began)
        most = max(most, threading.active_count() - before)
        if not any(failure.source == "memory" for failure in result.failures):
            failures.append(f"step {number}: the store is not recorded as failed")
    if most > 40:
        failures.append(f"{most} threads")
    slow = sum(each > deadline for each in seconds)
    if steps >= 100 and slow > steps / 2:
        failures.append(f"{slow} of {steps} steps waited for the store")
    store.released.set()
    if not _answers_again(team, deadline):
        failures.append("the store is not used again")
    return Tried(steps, failures)


def _answers_again(team: Any, deadline: float) -> bool:
    until = time.monotonic() + 60 * max(deadline, 0.5)
    while time.monotonic() < until:
        if not team.invoke(stuck(1))["injection_result"].failures:
            return True
        time.sleep(deadline)
    return False
