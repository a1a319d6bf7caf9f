"""What importing the scrum master costs on top of LangGraph: CPU time of fresh processes, interleaved, medians."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

BASE = "import langgraph.graph"
OURS = "from langgraph_scrum_master import ScrumMaster, ScrumMasterState, checkpoint_serde; ScrumMaster().node"
TIMED = "import time\n{}\nprint(time.process_time())"
ROUNDS = 7


def cpu_seconds(statement: str) -> float:
    done = subprocess.run([sys.executable, "-c", TIMED.format(statement)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    cpu_seconds(OURS)
    rounds = [(cpu_seconds(BASE), cpu_seconds(OURS)) for _ in range(ROUNDS)]
    base, ours = (median(column) for column in zip(*rounds, strict=True))
    print(
        f"import: {ours:.2f} s of CPU against {base:.2f} s for langgraph.graph alone: {ours / base:.2f} x (bar: 1.15 x)"
    )


if __name__ == "__main__":
    main()
