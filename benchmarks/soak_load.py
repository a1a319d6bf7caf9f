"""Slow proofs of what happens under load and with hostile parts: what the soak runs beside the memory's own proofs.

Each function takes a size and returns how many things it tried and what failed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from random import Random
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
    elif not result.injected and not any(failure.late for failure in result.failures):
        yield f"neither served nor recorded as late: {result.failures}, {[drop.why for drop in result.dropped]}"


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
    failures, most, waits = [], 0, 0
    for number in range(steps):
        result = team.invoke(stuck(number))["injection_result"]
        waits += any(failure.source == "memory" and failure.late for failure in result.failures)
        most = max(most, threading.active_count() - before)
        if not any(failure.source == "memory" for failure in result.failures):
            failures.append(f"step {number}: the store is not recorded as failed")
    if most > 40:
        failures.append(f"{most} threads")
    if waits > 3 + steps / 5:
        failures.append(f"{waits} of {steps} steps waited for the store")
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


class PanicError(BaseException):
    """What native code raises, as PyO3's `PanicException` does."""


class Grenade:
    """A value of which everything raises."""

    def __getattr__(self, name: str) -> Any:
        raise PanicError(name)

    def __str__(self) -> str:
        raise PanicError("str")

    def __bool__(self) -> bool:
        raise PanicError("bool")

    def __eq__(self, other: object) -> bool:
        raise PanicError("eq")

    __hash__ = None  # type: ignore[assignment]


class HostileSource:
    """A source that fails in another way each time."""

    name = "hostile"

    def __init__(self, random: Random) -> None:
        self._random = random

    async def find(self, query: Query, state: Mapping[str, Any]) -> Iterable[RetrievedContext]:
        good = RetrievedContext(source=self.name, content=ANSWER, relevance_score=0.9, key="good")
        bad: list[Any] = [None, 7, Grenade(), "text", ValueError("an item"), _with(good, title=Grenade())]
        bad += [_with(good, title="t" * 1_000_000), _with(good, content=3), _with(good, content="\ud800 " + ANSWER)]
        chance = self._random.random()
        if chance < 0.4:
            raise self._random.choice([SystemExit(3), PanicError("find"), ValueError("find"), StopIteration()])
        if chance < 0.5:
            await asyncio.sleep(60.0)
        if chance < 0.6:
            return self._random.choice(bad)
        return self._random.sample([good, *bad], k=4)


def _with(context: RetrievedContext, **fields: Any) -> RetrievedContext:
    other = RetrievedContext.from_dict(context.to_dict())
    for name, value in fields.items():
        object.__setattr__(other, name, value)
    return other


def hostile_sources(steps: int, seed: int = 1) -> Tried:
    """Serve gaps with a source that fails in every way: the graph goes on, and the other sources serve."""
    config = InjectionConfig(deadline=0.3, log_injections=False)
    team = graph(ScrumMaster(config=config, sources=[HostileSource(Random(seed))]))
    team.invoke(stuck())
    failures = []
    for number in range(steps):
        result = team.invoke(stuck(number)).get("injection_result")
        if result is None or not (result.injected or result.failures):
            failures.append(f"step {number}: {result}")
    return Tried(steps, failures)


ODD: tuple[Any, ...] = (
    *(None, 7, -1.5, float("nan"), True, "", "text", "\ud800", "?" * 500, b"bytes", [], {}, [[]], {"a": {"b": []}}),
    *(object(), Grenade(), {"type": "ai"}, {"type": "ai", "content": {"a": 1}}, {"content": Grenade()}, ("ai", 3)),
    *({"role": "assistant", "name": "dev", "content": QUESTION}, {"id": Grenade(), "content": "x", "type": "human"}),
)
KEYS = (
    *("messages", "current_agent", "active_agent", "current_story", "handoff_context", "missing_context"),
    *("structured_response", "gate_blocked", "gate_failure", "gate_results", "health_status", "cycle_analysis"),
    *("decisions", "sprint_plan", "sprint_progress", "adrs", "constraints", "dev_output"),
    *("injected_context", "injection_history", "injection_result", "sm_output", "team_figures"),
)


def odd(random: Random, depth: int = 0) -> Any:
    """A value that no host would write on purpose."""
    chance = random.random()
    if depth > 2 or chance < 0.6:
        return random.choice(ODD)
    if chance < 0.8:
        return [odd(random, depth + 1) for _ in range(random.randrange(4))]
    return {random.choice(("id", "title", "text", "gap_id", "agent", "stories")): odd(random, depth + 1)}


def fuzzed_states(states: int, seed: int = 1, seconds: float = 120.0) -> Tried:
    """Look at random states, and compute the update: nothing raises."""
    random, failures, tried = Random(seed), [], 0
    scrum_master, until = ScrumMaster(config=InjectionConfig(log_injections=False)), time.monotonic() + seconds
    while tried < states and time.monotonic() < until:
        state: dict[str, Any] = {key: odd(random) for key in random.sample(KEYS, random.randrange(1, 6))}
        if random.random() < 0.7:
            state["messages"] = [random.choice(ODD) for _ in range(random.randrange(6))]
        tried += 1
        try:
            sighting = scrum_master.pipeline.sight(state, running=True)
            scrum_master.pipeline.look(state, running=True)
            scrum_master.pipeline.update(sighting, None)
        except BaseException as error:
            failures.append(f"state {tried}: {type(error).__name__}: {error}")
            if not isinstance(error, Exception | PanicError):
                raise
    return Tried(tried, failures)


LOAD: Mapping[str, tuple[str, Callable[[bool], Tried]]] = {
    "overload": (
        "graphs at once, async and sync",
        lambda quick: _both(overload(100 if quick else 1_000), overload(100 if quick else 1_000, threads=True)),
    ),
    "hung store": ("steps with a store that hangs", lambda quick: hung_store(100 if quick else 1_000)),
    "hostile sources": ("steps with a hostile source", lambda quick: hostile_sources(20 if quick else 300)),
    "fuzzed states": ("random states", lambda quick: fuzzed_states(2_000 if quick else 100_000)),
}
"""What is counted as a try, and what is done, quickly or at full size: each in two minutes at most."""


def _both(one: Tried, other: Tried) -> Tried:
    return Tried(one.tries + other.tries, [*one.failures, *other.failures])
