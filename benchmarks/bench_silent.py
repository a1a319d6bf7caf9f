"""What the silent path costs: detection on a healthy state, by length of history, in one run."""

from __future__ import annotations

from statistics import median
from time import process_time

from langchain_core.messages import AIMessage

from langgraph_scrum_master import ScrumMaster

ROUNDS = 15


def healthy(length: int) -> dict[str, list[AIMessage]]:
    return {
        "messages": [AIMessage(f"Module {i} is done, {3 * i} tests pass.", name=f"dev{i % 3}") for i in range(length)]
    }


def cpu_milliseconds(master: ScrumMaster, state: dict[str, list[AIMessage]]) -> float:
    started = process_time()
    assert master.detect(state) == ()
    return (process_time() - started) * 1000


def main() -> None:
    master, short, long = ScrumMaster(), healthy(200), healthy(10_000)
    rounds = [(cpu_milliseconds(master, short), cpu_milliseconds(master, long)) for _ in range(ROUNDS)]
    few, many = (median(column) for column in zip(*rounds, strict=True))
    print(f"silent detection: {few:.1f} ms at 200 messages, {many:.1f} ms at 10,000: {many / few:.2f} x")


if __name__ == "__main__":
    main()
