"""A watcher that reads only what is new sees what one that reads everything sees."""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from builders import NOON, NOW, a_state, says
from langgraph_scrum_master import ContextGap, ScrumMaster
from langgraph_scrum_master.messages import WINDOW
from langgraph_scrum_master.model import Observation
from langgraph_scrum_master.team import gap
from langgraph_scrum_master.team.observe import Watcher, observe

SAID = (
    "Which database do we use for orders?",
    "Our database is PostgreSQL.",
    "I will rerun the migration of the orders.",
    "Done, all tests pass.",
    "I cannot proceed without the schema.",
    "The schema is in the wiki.",
    "",
)


def a_message(index: int, speaker: str, text: str, seconds: int, calls: str) -> BaseMessage:
    marks = {"timestamp": 1_770_000_000 + index * 1000 + seconds} if seconds else {}
    if speaker == "user":
        return HumanMessage(text, id=f"m{index}", additional_kwargs=marks)
    if speaker == "system":
        return SystemMessage(text or "plan", id=f"m{index}")
    if speaker == "tool":
        return ToolMessage(text, tool_call_id=f"c{index - 1}", id=f"m{index}", name="lookup")
    tools = [{"name": calls, "args": {"need": "the schema"}, "id": f"c{index}"}] if calls else []
    return says(speaker, text, id=f"m{index}", tool_calls=tools, additional_kwargs=marks)


def replaced_time(gaps: tuple[ContextGap, ...]) -> list[ContextGap]:
    return [replace(gap, detected_at=NOW) for gap in gaps]


conversations = st.lists(
    st.tuples(
        st.sampled_from(("dev", "pm", "hub", "user", "system", "tool")),
        st.sampled_from(SAID),
        st.integers(0, 900),
        st.sampled_from(("", "", "transfer_to_dev", "request_context")),
    ),
    max_size=40,
).map(lambda turns: [a_message(i, *turn) for i, turn in enumerate(turns)])


@given(conversations, st.lists(st.integers(1, 12), min_size=1, max_size=10))
def test_reading_by_difference_gives_the_same_observation(messages: list[BaseMessage], strides: list[int]) -> None:
    watcher, end = Watcher(), 0
    while end < len(messages):
        end += strides[end % len(strides)]
        state = {"messages": messages[:end]}

        assert observe(state, now=NOW, watcher=watcher) == observe(state, now=NOW)


OWN_KEYS: dict[str, Any] = {
    "handoff_context": {"source_agent": "pm", "target_agent": "dev", "required_context": ["schema"]},
    "missing_context": ["schema"],
    "structured_response": {"open_questions": ["which schema?"]},
    "gate_results": [{"gate_name": "dor", "passed": False, "reason": "missing: schema"}],
    "health_status": {"status": "degraded", "metrics": {"agent_cycle_times": {"dev": 900.0, "pm": 10.0}}},
    "cycle_analysis": {"circular_detected": True, "patterns_found": []},
    "injection_history": [],
    "current_agent": "dev",
}


@given(conversations, st.sets(st.sampled_from(sorted(OWN_KEYS))))
def test_a_glance_misses_no_gap_and_no_figures(messages: list[BaseMessage], keys: set[str]) -> None:
    # A state that is no dict is never glanced at.
    glancing, looking = ScrumMaster(), ScrumMaster()
    own = {key: OWN_KEYS[key] for key in keys}
    for end in range(1, len(messages) + 1):
        state = {"messages": messages[:end], **own}
        whole = UserDict(state)

        assert replaced_time(glancing.detect(state)) == replaced_time(looking.detect(whole))
        if not looking.detect(whole):
            assert glancing.node.invoke(state) == looking.node.invoke(whole)


@given(conversations, st.sets(st.sampled_from(sorted(OWN_KEYS))))
def test_a_detector_of_ones_own_sees_the_whole_observation_once_a_step(
    messages: list[BaseMessage], keys: set[str]
) -> None:
    seen: list[Observation] = []

    def sees(observation: Observation) -> tuple[ContextGap, ...]:
        seen.append(observation)
        return ()

    asked = ScrumMaster(detectors=[sees], clock=lambda: NOON)
    own = {key: OWN_KEYS[key] for key in keys}
    for end in range(1, len(messages) + 1):
        state = {"messages": messages[:end], **own}
        seen.clear()
        asked.detect(state)

        assert seen == [ScrumMaster(clock=lambda: NOON).observe(state)]


def test_a_detector_of_ones_own_finds_gaps_on_a_quiet_team() -> None:
    def always(observation: Observation) -> Iterator[ContextGap]:
        yield gap(observation, agent="dev", reason="explicit_flag", query="q", confidence=0.8, indicators=("always",))

    state = {"messages": [says("dev", "Module 1 is done.", id="m1")]}

    assert [found.indicators for found in ScrumMaster(detectors=[always]).detect(state)] == [("always",)]
    assert ScrumMaster(detectors=[always]).node.invoke(state)["sm_output"].gaps


def test_what_a_detector_yields_that_is_no_gap_fails_no_step(logged: list[dict[str, Any]]) -> None:
    nonsense: Any = lambda _observation: ["nonsense"]  # noqa: E731

    assert ScrumMaster(detectors=[nonsense]).detect({"messages": [says("dev", "Module 1 is done.")]}) == ()
    assert [entry["event"] for entry in logged] == ["observation.failed"]


def calls_of_a_step(master: ScrumMaster, length: int) -> int:
    """How many Python functions a silent step calls after a history of this length."""
    history: list[Any] = [says("dev", f"Module {i} is done.", id=f"m{i}") for i in range(length)]
    master.detect({"messages": history})
    history.append(says("dev", f"Module {length} is done.", id=f"m{length}"))
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        master.detect({"messages": history})
    finally:
        sys.setprofile(None)
    return calls


def test_a_silent_step_with_a_detector_of_ones_own_does_not_grow_with_the_history() -> None:
    def own() -> ScrumMaster:
        return ScrumMaster(detectors=[lambda _observation: ()])

    assert calls_of_a_step(own(), 5_000) == calls_of_a_step(own(), 500)
    assert calls_of_a_step(own(), 500) < 2 * calls_of_a_step(ScrumMaster(), 500)


@given(conversations, st.integers(0, 40), st.integers(0, 40))
def test_a_branch_and_a_cut_history_are_read_anew(messages: list[BaseMessage], back: int, cut: int) -> None:
    watcher = Watcher()
    observe({"messages": messages}, now=NOW, watcher=watcher)
    other = AIMessage("Which queue do refunds go to?", name="pm", id="branch")

    for history in (messages[:back], [*messages[:back], other], messages[cut:], [*messages[cut:], other]):
        assert observe({"messages": history}, now=NOW, watcher=watcher) == observe({"messages": history}, now=NOW)


def test_the_same_state_again_is_the_same_observation() -> None:
    watcher = Watcher()
    state = a_state(("dev", SAID[0]), ("pm", "My plan is ready."))

    assert observe(state, now=NOW, watcher=watcher) == observe(state, now=NOW, watcher=watcher)


def test_a_last_message_that_was_replaced_is_read_anew() -> None:
    watcher = Watcher()
    observe({"messages": [says("dev", SAID[0], id="m")]}, now=NOW, watcher=watcher)

    observed = observe({"messages": [says("dev", "Done, all tests pass.", id="m")]}, now=NOW, watcher=watcher)

    assert observed.questions == ()


class Counted(AIMessage):
    """A message that counts how often it is read."""

    reads: int = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "content":
            self.__dict__["reads"] = self.__dict__.get("reads", 0) + 1
        return super().__getattribute__(name)


def test_a_step_reads_only_what_is_new_however_long_the_history() -> None:
    history: list[Any] = [Counted(content=f"Module {i} is done.", name="dev", id=f"m{i}") for i in range(1000)]
    master = ScrumMaster()
    master.detect({"messages": history})
    read = [message.reads for message in history]

    for i in range(20):
        history.append(says("dev", f"Further module {i} is done.", id=f"n{i}"))
        master.detect({"messages": history})

    assert sum(message.reads for message in history[:1000]) - sum(read) <= 2
    assert sum(count > 0 for count in read) <= WINDOW


def test_observations_do_not_change_when_the_watch_goes_on() -> None:
    watcher = Watcher()
    state = a_state(("dev", SAID[0]))
    first = observe(state, now=NOW, watcher=watcher)
    kept: Observation = replace(first)

    observe({"messages": [*state["messages"], says("pm", SAID[1])]}, now=NOW, watcher=watcher)

    assert first == kept
    assert len(first.turns) == 1


def request(tool: str) -> AIMessage:
    return says("dev", "", id="d", tool_calls=[{"name": tool, "args": {"need": "the schema"}, "id": "c"}])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([request("request_context")], [request("ls")]),
        ([request("ls")], [request("request_context")]),
        (
            [says("dev", SAID[0], id="q"), says("rev", "Fine.", id="r")],
            [says("dev", "Done.", id="q"), says("rev", "Fine.", id="r")],
        ),
        (
            [says("dev", SAID[0], id="q"), says("rev", "Fine.", id="r")],
            [SystemMessage("Summary.", id="s"), says("rev", "Fine.", id="r"), says("rev", "Next.", id="r2")],
        ),
    ],
    ids=["call edited", "call edited back", "earlier message replaced", "summarised"],
)
def test_whatever_was_changed_in_a_conversation_is_seen(before: list[Any], after: list[Any]) -> None:
    watcher = Watcher()
    observe({"messages": before}, now=NOW, watcher=watcher)

    assert observe({"messages": after}, now=NOW, watcher=watcher) == observe({"messages": after}, now=NOW)


def test_a_message_changed_in_place_is_read_anew() -> None:
    master = ScrumMaster()
    message = {"role": "assistant", "name": "dev", "content": "Done, all tests pass."}
    assert master.detect({"messages": [message]}) == ()

    message["content"] = SAID[0]

    assert len(master.detect({"messages": [message]})) == 1


def test_conversations_that_share_a_prefix_do_not_leak_into_each_other() -> None:
    master = ScrumMaster()
    prefix = [says("pm", f"Note {i} is filed.", id=f"n{i}") for i in range(60)]
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def one(number: int) -> bool:
        alone = master.detect({"messages": list(prefix)})
        asked = master.detect({"messages": [*prefix, says(f"dev{number}", SAID[0], id=f"q{number}")]})
        return alone == () and [gap.agent for gap in asked] == [f"dev{number}"]

    try:
        with ThreadPoolExecutor(16) as pool:
            assert all(pool.map(one, range(400)))
    finally:
        sys.setswitchinterval(switching)


def test_what_is_out_of_the_window_is_forgotten() -> None:
    master, history = ScrumMaster(), [says(f"dev{i}", SAID[0], id=f"q{i}") for i in range(WINDOW)]
    for i in range(WINDOW + 20):
        history.append(says("rev", f"Unrelated remark number {i} of the reviewer.", id=f"r{i}"))
        master.detect({"messages": history})

    assert master.detect({"messages": history}) == ScrumMaster().detect({"messages": history}) == ()


def test_messages_that_cannot_be_compared_are_read_anew() -> None:
    def load() -> list[BaseMessage]:
        call = {"name": "plot", "args": {}, "id": "c"}
        return [
            HumanMessage("Plot it", id="h"),
            AIMessage("Plotting", name="dev", id="a", tool_calls=[call]),
            ToolMessage("plotted", tool_call_id="c", id="t", artifact=np.arange(3)),
        ]

    master = ScrumMaster()
    master.node.invoke({"messages": load()})
    messages = load()

    for i in range(3):
        messages = [*messages, says("dev", f"Step {i} is done.", id=f"n{i}")]
        assert "sm_output" not in master.node.invoke({"messages": messages})
