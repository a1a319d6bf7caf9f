"""The cost of a coding agent's hook as a process, including imports, with 1,000 memories and 200 experiences.

Medians of fresh processes, interleaved with a Python that only imports `sqlite3` and `typer`.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from bench_memory import texts
from langgraph_scrum_master import ChromaMemory, Memory
from langgraph_scrum_master.learning import Experience, Searcher
from langgraph_scrum_master.learning.records import AXES, experiences_on

MEMORIES, EXPERIENCES, ROUNDS = 1_000, 200, 7
BAR = 2_000
COMMAND = str(Path(sys.executable).with_name("scrum-master"))
BASE = [sys.executable, "-c", "import sqlite3, typer"]


async def filled(folder: str) -> None:
    memory, said = ChromaMemory(folder), texts(MEMORIES, Random(1))
    await memory.store_many([Memory(content=text) for text in said])
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
        asked = {"session_id": "s", "prompt": "Which service retries every order?"}
        passed = {"tool_response": {"stdout": "15 passed"}}
        rounds = [
            (
                milliseconds(BASE, {}, False),
                milliseconds(prompt, asked, True),
                milliseconds(failure, failing(i), True),
                milliseconds(failure, failing(i), False),
                milliseconds(failure, failing(i, **passed), False),
            )
            for i in range(ROUNDS + 1)
        ][1:]
    clock, cpu = ([median(row[i][j] for row in rounds) for i in range(5)] for j in (0, 1))
    names = ("user-prompt-submit", "post-tool-failure, the first", "post-tool-failure, the second", "no failure")
    for name, took, computing in zip(names, clock[1:], cpu[1:], strict=True):
        told = f"{took:.0f} ms, {computing:.0f} ms of CPU, {computing / cpu[0]:.1f} x `import sqlite3, typer`"
        print(f"hook {name}: {told} (bar: {BAR} ms)")


if __name__ == "__main__":
    main()
