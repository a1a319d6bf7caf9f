"""What a folder of decision records costs at a gap, on the clock: the first time, and once its texts were read.

Records of about 3 KB with random words. The rest is medians.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter

from bench_memory import texts
from langgraph_scrum_master import InjectionConfig, ScrumMaster

ROUNDS = 7


def write(folder: Path, records: int) -> None:
    random = Random(records)
    said = texts(records, random)
    for i, decision in enumerate(said):
        context = " ".join(random.sample(said, min(records, 30)))
        text = f"# ADR-{i}: Record {i}\n\nStatus: accepted\n\n## Decision\n{decision}\n\n## Context\n{context}\n"
        (folder / f"{i:04}.md").write_text(text, encoding="utf-8")


def milliseconds(master: ScrumMaster, asked: int) -> float:
    asks = {"role": "assistant", "name": "dev", "content": f"Which service retries every order of shop {asked}?"}
    started = perf_counter()
    result = master.evaluate({"messages": [asks]})
    if result is None or result.failures:
        raise SystemExit(f"the folder was not read in time: {result}")
    return (perf_counter() - started) * 1000


def main() -> None:
    for records in (100, 300, 1_000):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), records)
            config = InjectionConfig(enabled_sources=("architecture",), architecture_path=folder, deadline=60)
            master = ScrumMaster(config=config)
            first, *others = (milliseconds(master, i) for i in range(ROUNDS + 1))
        print(f"a gap with {records:,} decision records: {first:.0f} ms the first time, then {median(others):.0f} ms")


if __name__ == "__main__":
    main()
