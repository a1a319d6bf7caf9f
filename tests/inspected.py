"""Runs to look at: a question that was answered from the state, and a team that goes round in circles."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from langgraph_scrum_master import ScrumMaster, ScrumMasterState, checkpoint_serde
from langgraph_scrum_master.cli.page import page, page_data
from langgraph_scrum_master.cli.page_snapshots import SnapshotPool
from langgraph_scrum_master.protocols import MemoryStore
from langgraph_scrum_master.replay import replay
from langgraph_scrum_master.team.record.files import write_snapshots
from langgraph_scrum_master.team.record.snapshots import taken
from langgraph_scrum_master.testing import a_memory

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


KNOWN = (
    "Refunds go to the queue refunds-v2, decided by the architect in ADR-10: the old queue loses messages.",
    "The refund worker retries a payment three times, then asks a person.",
    "Invoices go to the queue invoices-eu, one message for each order.",
    "A cancelled order frees its stock at once.",
    "The landing page has a teal header.",
)
"""What the memory of the team knows."""

TEAM_RUNS: dict[str, list[tuple[str, str]]] = {
    "invoices": [
        ("pm", "Next are the invoices of the European shops, one for each order."),
        ("dev", "Which queue do invoices go to?"),
        ("dev", "I will write the header of the page first, that is independent."),
        ("dev", "The header is ready and has its tests."),
        ("reviewer", "The header looks good to me, approved."),
    ],
    "refunds": [
        ("pm", "Customers whose order was cancelled get their money back. Please build the refunds."),
        ("analyst", f"Refunds are due within 14 days, also for partial deliveries. {SCRIPT}"),
        ("architect", "One worker takes refunds from a queue and pays them out, so that the shop stays responsive."),
        ("dev", "I have the worker's skeleton. Before I go on: which queue do refunds go to?"),
        ("dev", "The worker reads refunds-v2 now, as ADR-10 says, and acknowledges after the payout."),
        ("tester", "What is the limit of retries for a payment that fails?"),
        ("tester", "The test expects three retries, then a person."),
        ("dev", "I will run the refund job again."),
        ("tester", "The refund job fails with the same error: the account is locked."),
        ("dev", "I will run the refund job again."),
        ("tester", "The refund job fails with the same error: the account is locked."),
        ("dev", "I will run the refund job again."),
        ("tester", "The refund job fails with the same error: the account is locked."),
        ("architect", "Stop. The account is locked because the test pays the same order twice."),
        ("dev", "Each test uses an order of its own now, and the job passes."),
        ("reviewer", "Approved: retries, acknowledgement and tests are in place."),
    ],
}
"""What the agents say, by thread. The developer of the invoices ignores what it gets."""


def write_database(folder: Path, runs: Mapping[str, list[tuple[str, str]]] = TEAM_RUNS) -> Path:
    """A checkpoint database of a graph with a scrum master, one thread for each of the team's runs."""
    path = folder / "team.sqlite"
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        saver = SqliteSaver(connection, serde=checkpoint_serde())
        for thread, said in runs.items():
            graph: Any = _team(said).compile(checkpointer=saver)
            graph.invoke({"messages": [("user", "Please go on.")]}, {"configurable": {"thread_id": thread}})
    return path


class _State(MessagesState, ScrumMasterState):
    pass


def _team(said: list[tuple[str, str]]) -> StateGraph[Any, None, Any, Any]:
    def speak(state: _State) -> dict[str, Any]:
        number = len(state["messages"]) - 1
        name, text = said[number]
        return {"messages": [AIMessage(text, name=name, id=f"m{number + 1}")]}

    builder = StateGraph(_State)
    builder.add_node("speak", speak)
    builder.add_node(ScrumMaster(memory=a_memory(*KNOWN)).node)
    builder.add_edge(START, "speak")
    builder.add_edge("speak", "scrum_master")
    builder.add_conditional_edges("scrum_master", lambda state: END if len(state["messages"]) > len(said) else "speak")
    return builder


def written_page(folder: Path, write: Callable[[Path], Path] = write_run, memory: MemoryStore | None = None) -> Path:
    """The page that shows the run."""
    path, source, pool = folder / "inspector.html", write(folder), SnapshotPool()
    shown = replay(source, memory=memory, keep=pool.add)
    path.write_text(page(page_data(shown, source.name, pool=pool)), encoding="utf-8")
    return path
