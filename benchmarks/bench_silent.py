"""The cost of the silent path, as ratios within one run: CPU time, interleaved, medians.

- detection on a healthy state of 100 and of 10,000 messages, cold (never seen before) and warm (one message more than
  the last time), warm also with a detector of one's own that finds nothing
- a loop of an agent and the silent scrum master against the same loop with an empty node, from 1,000 messages on,
  without a checkpointer and with InMemorySaver
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from langgraph_scrum_master import ContextGap, ScrumMaster, ScrumMasterState, checkpoint_serde
from langgraph_scrum_master.model import Observation

ROUNDS = 31
STEPS = 40


class State(MessagesState, ScrumMasterState):
    """The state of the loop."""


def healthy(length: int) -> list[AIMessage]:
    return [turn(i) for i in range(length)]


def turn(number: int) -> AIMessage:
    # With a time, as the ids of real chat models' messages carry: so the running figures are written too.
    return AIMessage(
        f"Module {number} is done, {3 * number} tests pass.",
        name=f"dev{number % 3}",
        id=f"m{number}",
        additional_kwargs={"timestamp": 1_772_452_800 + 10 * number},
    )


def cpu(work: Callable[[], object]) -> float:
    started = process_time()
    work()
    return process_time() - started


def ratio(ours: Callable[[], object], base: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    ours(), base()
    times = [(cpu(ours), cpu(base)) for _ in range(rounds)]
    mine, other = (median(column) for column in zip(*times, strict=True))
    return mine, other, mine / other


def nothing(_observation: Observation) -> tuple[ContextGap, ...]:
    return ()


def detection(cold: bool, own: bool = False) -> None:
    def detect(length: int) -> Callable[[], object]:
        history = healthy(length)
        master = ScrumMaster(detectors=[nothing] if own else ())
        master.detect({"messages": history})

        def again() -> object:
            # Many times over: one warm detection is too short to time.
            for _ in range(1 if cold else 50):
                history.append(turn(len(history)))
                assert (ScrumMaster() if cold else master).detect({"messages": history}) == ()
            return None

        return again

    many, few, times = ratio(detect(10_000), detect(100), ROUNDS)
    per_call = 1 if cold else 50
    how = "cold" if cold else "warm, with a custom detector" if own else "warm"
    print(
        f"detect, {how}: {many / per_call * 1e6:.0f} µs at 10,000 messages, "
        f"{few / per_call * 1e6:.0f} µs at 100: {times:.2f} x" + ("" if cold else " (bar: 1.5 x)")
    )


def loop(node: Any, checkpointer: Any) -> Any:
    def agent(state: State) -> dict[str, Any]:
        return {"messages": [turn(len(state["messages"]))]}

    builder = StateGraph(State)
    builder.add_node("agent", agent)
    builder.add_node("watcher", node)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "watcher")
    builder.add_conditional_edges(
        "watcher", lambda state: "agent" if len(state["messages"]) % STEPS else END, ["agent", END]
    )
    return builder.compile(checkpointer=checkpointer)


def loops(saved: bool, bar: float) -> None:
    def run(node: Any) -> Callable[[], object]:
        start: Any = {"messages": healthy(1_000)}

        def once() -> object:
            # A new thread each time: the history must not grow from round to round.
            graph = loop(node, InMemorySaver(serde=checkpoint_serde()) if saved else None)
            return graph.invoke(start, {"recursion_limit": 10_000, "configurable": {"thread_id": "t"}})

        return once

    ours, empty, times = ratio(run(ScrumMaster().node), run(lambda state: {}), ROUNDS)
    print(
        f"loop of {STEPS} steps at 1,000 messages {'with InMemorySaver' if saved else 'without a checkpointer'}: "
        f"{ours * 1e3:.1f} ms against {empty * 1e3:.1f} ms with an empty node: {times:.2f} x (bar: {bar} x)"
    )


def main() -> None:
    detection(cold=True)
    detection(cold=False)
    detection(cold=False, own=True)
    loops(saved=True, bar=1.10)
    loops(saved=False, bar=1.15)


if __name__ == "__main__":
    main()
