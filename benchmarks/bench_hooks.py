"""What a coding agent's hook costs as a whole process, imports included, over 1,000 memories, 200 experiences and the
turns of 50 sessions: medians of fresh processes, interleaved with a Python that only imports `sqlite3` and `typer`.

Then the 95th percentile with two busy loops beside it, and what a process would cost that only asks a helper which
stays in memory.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from bench_memory import texts
from langgraph_scrum_master import ChromaMemory, Memory
from langgraph_scrum_master.cli.hook import DEFAULT_SESSIONS
from langgraph_scrum_master.cli.session_log import TURNS_PER_SESSION
from langgraph_scrum_master.learning import Experience, Searcher
from langgraph_scrum_master.learning.records import AXES, experiences_on

MEMORIES, EXPERIENCES, ROUNDS, BUSY_ROUNDS, BUSY_LOOPS = 1_000, 200, 7, 20, 2
TURNS = DEFAULT_SESSIONS * TURNS_PER_SESSION
BAR = 2_000
FACT = "Idempotency keys of payments are kept in Redis for 24 hours."
COMMAND = str(Path(sys.executable).with_name("scrum-master"))
BASE = [sys.executable, "-c", "import sqlite3, typer"]
HELPED = [sys.executable, "-S", "-c", "import json, socket, sys; json.loads(sys.stdin.read())"]
"""What a hook would still do if a helper did the rest."""


async def filled(folder: str) -> None:
    memory, said = ChromaMemory(folder), texts(MEMORIES, Random(1))
    await memory.store_many([Memory(content=text) for text in [*said[1:], FACT]])
    turns = [
        Memory(content=text, session=f"s{i // TURNS_PER_SESSION}", created_at=f"2026-03-{1 + i // 100:02d}T10:00:00Z")
        for i, text in enumerate(texts(TURNS, Random(2)))
    ]
    await memory.beside("sessions").store_many(turns)
    tried = [
        Experience(
            domain="testing",
            strategy="read-the-error",
            goal=text,
            outcome_status="falsified",
            surprise=said[-i],
            id=f"e{i}",
        )
        for i, text in enumerate(said[:EXPERIENCES])
    ]
    for axis in AXES:
        kept = [made for each in tried if (made := each.to_memory(axis))]
        await Searcher(memory).shelf(experiences_on(axis)).store_many(kept)


def milliseconds(command: Sequence[str], event: dict[str, Any], speaks: bool) -> tuple[float, float]:
    """Wall and CPU milliseconds; the latter depend less on the machine's other load."""
    started, computed = perf_counter(), _computed()
    done = subprocess.run(command, capture_output=True, text=True, check=True, input=json.dumps(event))
    took = (perf_counter() - started) * 1000, (_computed() - computed) * 1000
    if bool(done.stdout) != speaks:
        raise SystemExit(f"{command} should {'speak' if speaks else 'be silent'}: {done.stdout or done.stderr}")
    return took


def _computed() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def failing(session: int, **response: Any) -> dict[str, Any]:
    name = "PostToolUse" if response else "PostToolUseFailure"
    tool = {"tool_name": "Bash", "tool_input": {"command": "npm test"}}
    return {"hook_event_name": name, "session_id": f"s{session}", **tool, "error": "Exit code 1", **response}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(filled(folder))
        prompt = [COMMAND, "hook", "user-prompt-submit", "--deadline", "60", "--memory", folder]
        failure = [COMMAND, "hook", "post-tool-failure", "--deadline", "60", "--memory", folder]
        stop = [COMMAND, "hook", "stop", "--deadline", "60", "--memory", folder]
        passed = {"tool_response": {"stdout": "15 passed"}}
        calls: dict[str, Callable[[int], tuple[float, float]]] = {
            "user-prompt-submit": lambda i: milliseconds(prompt, asking(i), True),
            "user-prompt-submit, nothing to say": lambda i: milliseconds(prompt, asking(i, "fix the typo"), False),
            "stop": lambda i: milliseconds(stop, {**asking(i), "last_assistant_message": f"Done {i}."}, False),
            "post-tool-failure, the first": lambda i: milliseconds(failure, failing(i), True),
            "post-tool-failure, the second": lambda i: milliseconds(failure, failing(i), False),
            "no failure": lambda i: milliseconds(failure, failing(i, **passed), False),
        }
        rounds = [(milliseconds(BASE, {}, False), *(call(i) for call in calls.values())) for i in range(ROUNDS + 1)][1:]
        clock, cpu = ([median(row[i][j] for row in rounds) for i in range(len(calls) + 1)] for j in (0, 1))
        for name, took, computing in zip(calls, clock[1:], cpu[1:], strict=True):
            told = f"{took:.0f} ms, of computing {computing:.0f} ms, {computing / cpu[0]:.1f} x `import sqlite3, typer`"
            print(f"hook {name}: {told} (bar: {BAR} ms)")
        load = os.getloadavg()[0]
        helped = median(milliseconds(HELPED, {}, False)[0] for _ in range(ROUNDS))
        print(f"a process that only asks a helper: {helped:.0f} ms; the helper would keep {helper_size(folder)} MB")
        print(told_busy(calls["user-prompt-submit"]))
        print(f"load of the machine before the busy loops: {load:.1f}")


def helper_size(folder: str) -> str:
    """The megabytes of a process that has answered a prompt, and stays."""
    code = (
        "import asyncio, resource, sys\n"
        "from langgraph_scrum_master import ChromaMemory\n"
        "asyncio.run(ChromaMemory(sys.argv[1]).search_answers('Where are the keys kept?'))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True
    ).stdout.strip()


def told_busy(call: Callable[[int], tuple[float, float]]) -> str:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_LOOPS)]
    try:
        took = sorted(call(1_000 + i)[0] for i in range(BUSY_ROUNDS))
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    late, load = took[-1 - len(took) // 20], os.getloadavg()[0]
    beside = f"{BUSY_LOOPS} busy loops beside it on {os.cpu_count()} cores, load {load:.1f}"
    return f"hook user-prompt-submit, 95th percentile, {beside}: {late:.0f} ms (bar: {BAR} ms)"


def asking(session: int, prompt: str = "Where are the idempotency keys of payments kept?") -> dict[str, Any]:
    return {"session_id": f"b{session}", "prompt": prompt}


if __name__ == "__main__":
    main()
