from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel

from builders import NOW, a_state, says
from langgraph_scrum_master import ScrumMaster
from langgraph_scrum_master.observe import observe
from langgraph_scrum_master.observe.turns import WINDOW, read_turns


def speakers(*messages: object) -> list[tuple[str, str]]:
    return [(turn.agent, turn.kind) for turn in read_turns(list(messages))]


def test_messages_of_any_framework_become_turns() -> None:
    assert speakers(
        HumanMessage("task"),
        SystemMessage("be good"),
        AIMessage("hi", name="dev"),
        AIMessage("hi", additional_kwargs={"agent": "analyst"}),
        AIMessage("hi"),
        ToolMessage("42", tool_call_id="1", name="calc"),
        {"role": "assistant", "content": "hi", "name": "pm"},
        {"type": "ai", "content": "hi", "name": "tea"},
        ("user", "hello"),
        {"lc": 1, "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {"content": "hi", "name": "sm"}},
        HumanMessage("as another agent", additional_kwargs={"agent": "architect"}),
    ) == [
        ("user", "human"),
        ("system", "system"),
        ("dev", "agent"),
        ("analyst", "agent"),
        ("assistant", "agent"),
        ("calc", "tool"),
        ("pm", "agent"),
        ("tea", "agent"),
        ("user", "human"),
        ("sm", "agent"),
        ("architect", "agent"),
    ]


def test_synthetic_messages_and_what_is_no_message_are_passed_over() -> None:
    assert speakers(None, 7, "text", {}, HumanMessage("x", additional_kwargs={"lc_source": "summarization"})) == []


def test_content_in_blocks_is_read_as_text() -> None:
    blocks: list[Any] = [{"type": "text", "text": "one"}, {"type": "image", "url": "x"}, "two"]

    assert read_turns([AIMessage(blocks)])[0].text == "one\ntwo"


def test_times_come_from_metadata_or_from_message_ids() -> None:
    stamped = says("dev", "x", additional_kwargs={"timestamp": "2026-03-02T12:00:00Z"})
    by_id = says("dev", "x", id="lc_run--01957f00-5c00-7abc-8def-0123456789ab")

    assert read_turns([stamped])[0].time == 1772452800.0
    assert read_turns([by_id])[0].time == int("01957f005c00", 16) / 1000
    assert read_turns([says("dev", "x")])[0].time is None


def test_only_a_window_of_the_history_is_looked_at() -> None:
    turns = read_turns([says("dev", str(i)) for i in range(WINDOW + 50)])

    assert len(turns) == WINDOW
    assert turns[0].text == "50"


def test_a_message_without_an_id_is_known_again_in_a_cut_history() -> None:
    history = [says("dev", "one"), says("dev", "two"), says("dev", "three")]

    assert read_turns(history[1:])[0].id == read_turns(history)[1].id
    assert read_turns([{"role": "assistant", "content": "x", "id": 7}])[0].id == "7"


def test_handoffs_are_read_from_the_frameworks_tool_calls() -> None:
    def calls(agent: str, tool: str, **arguments: str) -> AIMessage:
        return says(agent, "", tool_calls=[{"name": tool, "args": arguments, "id": "c"}])

    observed = observe(
        {
            "messages": [
                calls("supervisor", "transfer_to_dev"),
                calls("dev", "transfer_back_to_supervisor"),
                calls("supervisor", "task", subagent_type="researcher", description="look"),
            ]
        },
        now=NOW,
    )

    assert [(h.source, h.target, h.back) for h in observed.handoffs] == [
        ("supervisor", "dev", False),
        ("dev", "supervisor", True),
        ("supervisor", "researcher", False),
    ]


def test_without_tool_calls_the_change_of_speaker_shows_a_handoff() -> None:
    observed = observe(a_state(("pm", "Plan ready."), ("dev", "On it."), ("dev", "Done.")), now=NOW)

    assert [(h.source, h.target) for h in observed.handoffs] == [("pm", "dev")]


def test_a_question_is_open_until_somebody_else_answers_it() -> None:
    asked = ("dev", "Which database do we use for orders?")

    assert len(observe(a_state(asked), now=NOW).questions) == 1
    assert (
        len(
            observe(
                a_state(asked, ("tester", "My test plan for the login is ready now, all is green.")), now=NOW
            ).questions
        )
        == 1
    )
    assert observe(a_state(asked, ("architect", "Our database is PostgreSQL.")), now=NOW).questions == ()
    assert observe(a_state(asked, ("user", "PostgreSQL.")), now=NOW).questions == ()
    assert observe(a_state(asked, ("dev", "Found it: PostgreSQL, see the wiki. Done.")), now=NOW).questions == ()


def test_a_question_asked_back_is_no_answer() -> None:
    state = a_state(("dev", "Which database do we use for orders?"), ("architect", "Which orders do you mean?"))

    assert [question.asker for question in observe(state, now=NOW).questions] == ["dev", "architect"]


@dataclass
class DataclassState:
    messages: list[Any] = field(default_factory=list)
    current_agent: str = ""


class PydanticState(BaseModel):
    messages: list[Any] = []


def test_a_state_may_be_a_dataclass_or_a_pydantic_model() -> None:
    asked = [says("dev", "Which database do we use?")]

    for state in (DataclassState(messages=asked), PydanticState(messages=asked)):
        assert [gap.agent for gap in ScrumMaster().detect(state)] == ["dev"]


odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.builds(object),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=10,
)
FIELDS = ("role", "content", "name", "id", "tool_calls", "additional_kwargs", "response_metadata", "timestamp")
message = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(FIELDS, odd) | {"type": st.sampled_from(["ai", "human", "tool", 3])}
)
KEYS = (
    "current_agent",
    "active_agent",
    "handoff_context",
    "cycle_analysis",
    "health_status",
    "gate_blocked",
    "gate_failure",
    "gate_results",
    "missing_context",
    "current_story",
    "injection_history",
    "injected_context",
    "decisions",
)


@given(st.fixed_dictionaries({}, optional={"messages": st.lists(message | odd) | odd} | dict.fromkeys(KEYS, odd)))
def test_no_state_of_any_shape_makes_detection_raise(state: dict[str, Any]) -> None:
    ScrumMaster().detect(state)


@pytest.mark.parametrize("state", [None, 7, "state", [], object()])
def test_what_is_no_state_at_all_is_told_and_has_no_gap(state: object, logged: list[dict[str, Any]]) -> None:
    assert ScrumMaster().detect(state) == ()
    assert [entry["event"] for entry in logged] == ["state.malformed"]
