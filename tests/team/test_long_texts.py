"""Long texts: what is kept of them does not grow with them, and the event loop goes on."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_scrum_master import InjectionConfig, ScrumMaster, ScrumMasterState
from langgraph_scrum_master.team.observe import Watcher, observe

QUESTION = "To which queue do the refunds of shop {} go?"


def report(number: int, size: int) -> str:
    line = f"Report {number} of the shop: the cache of orders was emptied, and the queue is done. "
    return (line * (size // len(line) + 1))[:size]


def kept_after(steps: int, size: int, trimmed: int = 20) -> int:
    """The bytes that are still in use after so many steps with a text of a million characters each."""
    scrum_master = ScrumMaster(config=InjectionConfig(deadline=30.0, log_injections=False, enabled_sources=("state",)))
    scrum_master.node.invoke({"messages": conversation(0, 100)})
    gc.collect()
    tracemalloc.start()
    messages: list[Any] = []
    for number in range(steps):
        scrum_master.node.invoke({"messages": conversation(number, size)})
        messages = [*messages[-trimmed:], AIMessage(report(number, size), name=f"dev{number % 3}", id=f"s{number}")]
        scrum_master.detect({"messages": messages})
    del messages
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept


def conversation(number: int, size: int) -> list[Any]:
    return [
        HumanMessage("Build it.", id=f"h{number}"),
        AIMessage(report(number, size), name="dev", id=f"r{number}"),
        AIMessage(QUESTION.format(number), name="dev", id=f"q{number}"),
    ]


def test_what_is_kept_of_long_texts_is_bounded() -> None:
    few, many = kept_after(5, 400_000), kept_after(30, 400_000)

    assert many < few + 8_000_000, "25 more texts of 0.4 MB each, twice"


def test_a_conversation_with_long_messages_is_read_by_difference() -> None:
    watcher = Watcher()
    messages = [AIMessage(report(number, 60_000), name="dev", id=f"s{number}") for number in range(8)]
    observe({"messages": messages}, now="", watcher=watcher)

    again = [message.model_copy() for message in messages]
    assert watcher.unread(again) == 0
    assert watcher.take(again, "").length == 8


def test_an_edited_long_message_is_noticed() -> None:
    watcher = Watcher()
    messages = [AIMessage(report(1, 60_000), name="dev", id="s1"), AIMessage("Done.", name="dev", id="s2")]
    observe({"messages": messages}, now="", watcher=watcher)

    edited = [AIMessage(f"{report(1, 60_000)}\n{QUESTION.format(1)}", name="dev", id="s1"), messages[1]]

    assert observe({"messages": edited}, now="", watcher=watcher).questions


def test_a_question_at_the_end_of_a_long_message_is_noticed() -> None:
    text = f"{report(1, 300_000)}\n{QUESTION.format(1)}"

    found = observe({"messages": [AIMessage(text, name="dev", id="s1")]}, now="").questions

    assert [question.text for question in found] == [QUESTION.format(1)]


class TeamState(MessagesState, ScrumMasterState):
    """A team's state, with what is searched."""

    decisions: list[Any]
    adrs: list[Any]
    current_story: Any


ANSWER = "Refunds of shop 7 go to the queue refunds-eu, with three retries."


def a_long_state() -> Any:
    """About five million characters, with one answer among them."""
    decisions = [{"id": f"d{number}", "summary": report(number, 200_000)} for number in range(10)]
    adrs = [{"id": f"adr-{number}", "text": report(number, 200_000), "status": "accepted"} for number in range(5)]
    messages = [AIMessage(report(number, 100_000), name="dev", id=f"r{number}") for number in range(10)]
    return {
        "messages": [HumanMessage("Build it.", id="h"), *messages, AIMessage(QUESTION.format(7), name="dev", id="q")],
        "decisions": [*decisions, {"id": "answer", "summary": ANSWER}],
        "adrs": adrs,
        "current_story": {"title": report(1, 1_000_000)},
    }


async def test_the_event_loop_goes_on_while_a_long_state_is_served(tmp_path: Path) -> None:
    for number in range(6):
        text = f"# ADR {number}\n\nStatus: Accepted\n\n{report(number, 800_000)}"
        (tmp_path / f"adr-{number}.md").write_text(text, encoding="utf-8")
    config = InjectionConfig(
        enabled_sources=("state", "sprint", "architecture"),
        architecture_path=str(tmp_path),
        deadline=30.0,
        log_injections=False,
    )
    builder = StateGraph(TeamState)
    builder.add_node("scrum_master", ScrumMaster(config=config, redact="secrets", recorder=lambda result: None).node)
    builder.add_edge(START, "scrum_master")
    graph = builder.compile()
    warm: Any = {"messages": [AIMessage(QUESTION.format(1), name="dev", id="q")], "decisions": [ANSWER]}
    await graph.ainvoke(warm)
    pauses: list[float] = []

    async def tick() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.001)
            pauses.append(time.monotonic() - began)

    ticker = asyncio.create_task(tick())
    result = (await graph.ainvoke(a_long_state()))["injection_result"]
    ticker.cancel()

    assert result.injected
    assert result.failures == ()
    assert len(pauses) > 50, "the loop goes on"
    assert max(pauses) < 1.0
