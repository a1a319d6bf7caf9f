"""The inspector's page of a long run: 2,000 turns of 6 agents, from a file of messages and from snapshots.

Times are of one process that replays the run and writes the page; the first render is measured in Chromium, where
there is one, from the navigation on until the page has drawn itself.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from random import Random
from time import perf_counter, process_time

from langgraph_scrum_master.cli.page import page, page_data
from langgraph_scrum_master.cli.page_snapshots import SnapshotPool
from langgraph_scrum_master.replay import replay
from langgraph_scrum_master.team.record.files import write_snapshots
from langgraph_scrum_master.team.record.snapshots import taken

TURNS = 2_000
AGENTS = ("pm", "analyst", "architect", "dev", "tester", "reviewer")
SECONDS, MEGABYTES, FIRST_RENDER = 20, 10, 1_000
PARTS = ("refund worker", "invoice page", "stock service", "login form", "mail queue", "price index")
DID = ("has its tests now", "handles an empty basket", "logs each failure with its order", "is documented")


def messages(turns: int = TURNS) -> list[dict[str, str]]:
    """A long run: mostly reports, now and then a question, and circles of a developer and a tester."""
    random, said = Random(7), list[tuple[str, str]]()
    while len(said) < turns:
        part, number = random.choice(PARTS), len(said)
        kind = random.random()
        if kind < 0.03:
            asks, answers = random.sample(AGENTS, 2)
            said.append((asks, f"Which queue does the {part} of order {number} read?"))
            said.append((answers, f"The {part} reads the queue {part.split()[0]}-v{random.randint(2, 9)}."))
        elif kind < 0.04:
            said += [("dev", f"I will run the {part} again."), ("tester", f"The {part} fails with the same error.")] * 4
        else:
            said.append((random.choice(AGENTS), f"The {part} of order {number} {random.choice(DID)}."))
    return [
        {"role": "assistant", "name": name, "content": text, "id": f"m{i}"}
        for i, (name, text) in enumerate(said[:turns])
    ]


def write_messages(folder: Path) -> Path:
    """The run as a list of messages."""
    path = folder / "messages.json"
    path.write_text(json.dumps(messages()), encoding="utf-8")
    return path


def write_page(source: Path, output: Path) -> int:
    """Write the page; its number of steps."""
    pool = SnapshotPool()
    shown = replay(source, keep=pool.add)
    output.write_text(page(page_data(shown, source.name, pool=pool)), encoding="utf-8")
    return len(shown.steps)


def _write_snapshots(folder: Path) -> Path:
    """The run as snapshots, each with the messages so far, as `scrum-master snapshot` saves a thread."""
    path, said = folder / "snapshots.jsonl", messages()
    decisions = [{"agent": "architect", "summary": f"The {part} has a queue of its own."} for part in PARTS]
    states = ({"messages": said[max(0, end - 100) : end], "decisions": decisions} for end in range(1, len(said) + 1))
    write_snapshots(
        path, [taken(state, at="", thread="run", step=i, origin="checkpoint") for i, state in enumerate(states)]
    )
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, source in (("messages", write_messages(folder)), ("snapshots", _write_snapshots(folder))):
            output, started, computed = folder / f"{what}.html", perf_counter(), process_time()
            steps = write_page(source, output)
            seconds, computing = perf_counter() - started, process_time() - computed
            size = output.stat().st_size / 1e6
            print(
                f"{steps:,} steps of {len(AGENTS)} agents from {what}: page written with {computing:.1f} s of "
                f"computing (bar: {SECONDS} s), in {seconds:.1f} s"
            )
            print(f"size of the page from {what}: {size:.1f} MB (bar: {MEGABYTES} MB)")
            print(_first_render(output, what))


def _first_render(output: Path, what: str) -> str:
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    try:
        from chromium import browser, installed
    except ImportError:
        return "first render: not measured, playwright is not installed"
    if installed() is None:
        return "first render: not measured, there is no Chromium"
    times = []
    with browser() as chromium:
        for _ in range(3):
            shown = chromium.new_page(viewport={"width": 1400, "height": 900})
            shown.goto(output.as_uri())
            times.append(int(shown.evaluate("document.documentElement.dataset.ready")))
            drawn = shown.locator("#rows .turn").count()
            shown.close()
    return (
        f"first render in Chromium of the page from {what}: {min(times)} ms (bar: {FIRST_RENDER} ms), "
        f"with {drawn} turns in the document"
    )


if __name__ == "__main__":
    main()
