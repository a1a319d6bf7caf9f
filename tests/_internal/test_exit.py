"""A process ends cleanly while calls are still running."""

from __future__ import annotations

import subprocess
import sys
import time

SCRIPT = """
import asyncio, sys, time
import numpy as np
from langgraph_scrum_master._internal.threads import off_loop

def computes():
    numbers, end = np.arange(50_000, dtype="u2"), time.monotonic() + 2
    while time.monotonic() < end:
        np.unique(numbers)

def hangs():
    time.sleep(60)

async def main(call):
    try:
        await asyncio.wait_for(off_loop(call), 0.2)
    except asyncio.TimeoutError:
        print("late")

asyncio.run(main({"computes": computes, "hangs": hangs}[sys.argv[1]]))
"""


def ended(call: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", SCRIPT, call], capture_output=True, text=True, timeout=50, check=False)


def test_a_process_ends_cleanly_while_a_call_that_is_late_still_computes() -> None:
    done = ended("computes")

    assert (done.stdout, done.stderr, done.returncode) == ("late\n", "", 0)


def test_a_process_does_not_wait_for_a_call_that_hangs() -> None:
    started = time.monotonic()

    assert ended("hangs").returncode == 0
    assert time.monotonic() - started < 45
