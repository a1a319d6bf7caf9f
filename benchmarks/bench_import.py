"""The cost of importing the scrum master on top of LangGraph: CPU time of fresh processes, interleaved, medians.

Both have their bytecode, as what is installed has. `import langgraph.graph` ends shortly before a full garbage
collection, which the next few thousand objects trigger, ours or another package's: so the ratio is also measured
without the collector.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from statistics import median

BASE = "import langgraph.graph"
OURS = "from langgraph_scrum_master import ScrumMaster, ScrumMasterState, checkpoint_serde; ScrumMaster().node"
OFF = "import gc; gc.disable(); "
TIMED = "import time\n{}\nprint(time.process_time())"
ROUNDS = 15


def cpu_seconds(statement: str, bytecode: str) -> float:
    command = [sys.executable, "-c", TIMED.format(statement)]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    statements = (BASE, OURS, OFF + BASE, OFF + OURS)
    with tempfile.TemporaryDirectory() as bytecode:
        rounds = [[cpu_seconds(each, bytecode) for each in statements] for _ in range(ROUNDS + 1)][1:]
    base, ours, base_off, ours_off = (median(column) for column in zip(*rounds, strict=True))
    print(
        f"import: {ours:.2f} s of CPU against {base:.2f} s for langgraph.graph alone: {ours / base:.2f} x (bar: 1.15 x)"
    )
    print(
        f"import without garbage collection: {ours_off:.2f} s of CPU against {base_off:.2f} s: "
        f"{ours_off / base_off:.2f} x"
    )


if __name__ == "__main__":
    main()
