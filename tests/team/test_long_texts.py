"""Long texts: what is kept of them does not grow with them, and the event loop goes on."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage

from langgraph_scrum_master import InjectionConfig, ScrumMaster
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
