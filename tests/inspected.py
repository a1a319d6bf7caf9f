"""Runs to look at: a question that was answered from the state, and a team that goes round in circles."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph_scrum_master.cli.page import page, page_data
from langgraph_scrum_master.replay import replay
from langgraph_scrum_master.team.record.files import write_snapshots
from langgraph_scrum_master.team.record.snapshots import taken

SCRIPT = "</script><script>document.title = 'attacked'</script><img src=x onerror=\"document.title = 'attacked'\">"


def messages() -> list[dict[str, Any]]:
    """A conversation of three agents; the developer asks, and then the same is said again and again."""
    told = [
        ("user", "Refund customers whose order was cancelled."),
        ("analyst", f"Refunds are due within 14 days. {SCRIPT}"),
        ("dev", "Which queue do refunds go to?"),
        ("analyst", "I will ask around."),
        *[("dev", "I will run the refund job again."), ("tester", "The refund job fails with the same error.")] * 4,
    ]
    return [
        {"role": "user" if name == "user" else "assistant", "name": name, "content": text, "id": f"m{i}"}
        for i, (name, text) in enumerate(told)
    ]


def states() -> list[dict[str, Any]]:
    """The state after each message."""
    decisions = [
        {"agent": "architect", "summary": "Refunds go to the queue refunds-v2."},
        {"agent": "architect", "summary": "The landing page has a teal header."},
    ]
    said = messages()
    return [{"messages": said[:end], "decisions": decisions} for end in range(1, len(said) + 1)]


def write_run(folder: Path) -> Path:
    """The states as a file, one a line."""
    path = folder / "run.jsonl"
    path.write_text("".join(json.dumps(state) + "\n" for state in states()), encoding="utf-8")
    return path


OTHER = "a-customer-whose-thread-has-a-rather-long-name-0193f2"
ASKED = ("Build the invoices.", "Which queue do invoices go to?", "Let me look.")


def write_threads(folder: Path) -> Path:
    """Two threads whose steps were taken in turns."""
    path = folder / "threads.jsonl"
    said = zip(("pm", "ops", "pm"), ASKED, strict=True)
    invoices = [{"role": "assistant", "name": who, "content": text, "id": text} for who, text in said]
    taken_in_turns = [
        taken({**state, "messages": spoken[:step]}, at="", thread=thread, step=step, origin="checkpoint", ran=False)
        for step, state in enumerate(states(), 1)
        for thread, spoken in (("refunds", messages()), (OTHER, invoices))
        if step <= len(spoken)
    ]
    write_snapshots(path, taken_in_turns)
    return path


def written_page(folder: Path, write: Callable[[Path], Path] = write_run) -> Path:
    """The page that shows the run."""
    path, source = folder / "inspector.html", write(folder)
    path.write_text(page(page_data(replay(source), source.name)), encoding="utf-8")
    return path
