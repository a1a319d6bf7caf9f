"""Run detection over a folder of real traces, as they are and damaged, and tell whatever raises or disagrees.

    python benchmarks/fuzz_traces.py FOLDER [--seed N]

A trace is a line of a JSONL file: an object with `messages`, each with `content` and, if known, `agent` and `kind`.
Each is read whole and by difference, which must agree; then with messages dropped, doubled, shuffled and broken, which
must not raise.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langgraph_scrum_master.team.detect import detect
from langgraph_scrum_master.team.observe import Watcher, observe

KINDS = {"agent": "ai", "human": "human", "tool": "tool", "system": "system"}
ODD: tuple[Any, ...] = (None, 7, "text", [], {}, {"type": "ai"}, {"type": "ai", "content": {"a": 1}}, "\ud800")
STRIDE = 5


def traces(folder: Path) -> Iterator[tuple[str, list[Any]]]:
    for path in sorted(folder.rglob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            trace = json.loads(line)
            if isinstance(trace, dict) and isinstance(trace.get("messages"), list):
                yield f"{path.name}:{number}", [as_message(message) for message in trace["messages"]]


def as_message(message: dict[str, Any]) -> dict[str, Any]:
    kind = KINDS.get(str(message.get("kind")), "ai")
    return {"type": kind, "name": message.get("agent"), "content": message.get("content")}


def by_difference(messages: list[Any]) -> bool:
    watcher = Watcher()
    for end in range(STRIDE, len(messages) + STRIDE, STRIDE):
        state = {"messages": messages[:end]}
        whole, stepwise = observe(state, now=""), observe(state, now="", watcher=watcher)
        if (whole.turns, whole.questions, whole.flags) != (stepwise.turns, stepwise.questions, stepwise.flags):
            return False
    return True


def damaged(messages: list[Any], dice: random.Random) -> Iterator[list[Any]]:
    yield dice.sample(messages, len(messages) // 2)
    yield [message for message in messages for _ in range(dice.randint(1, 2))]
    yield dice.sample(messages, len(messages))
    yield [dice.choice(ODD) if dice.random() < 0.3 else message for message in messages]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice, read, disagreed = random.Random(options.seed), 0, []
    for name, messages in traces(options.folder):
        read += 1
        if not by_difference(messages):
            disagreed.append(name)
        for broken in damaged(messages, dice):
            detect(observe({"messages": broken}, now=""))
    print(f"{read} traces read: none raised, {len(disagreed)} differ between whole and by difference {disagreed[:5]}")
    raise SystemExit(bool(disagreed))


if __name__ == "__main__":
    main()
