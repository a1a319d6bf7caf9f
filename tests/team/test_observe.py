from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel

from builders import NOON, NOW, a_state, says
from langgraph_scrum_master import ScrumMaster
from langgraph_scrum_master.messages import WINDOW, read_turns
from langgraph_scrum_master.model import Observation
from langgraph_scrum_master.team.detect import detect
from langgraph_scrum_master.team.observe import observe


def observed(state: dict[str, Any]) -> Observation:
    return observe(state, now=NOW)


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


def test_synthetic_messages_and_non_messages_are_ignored() -> None:
    assert speakers(None, 7, "text", {}, HumanMessage("x", additional_kwargs={"lc_source": "summarization"})) == []


def test_content_in_blocks_is_read_as_text() -> None:
    blocks: list[Any] = [{"type": "text", "text": "one"}, {"type": "image", "url": "x"}, "two"]

    assert read_turns([AIMessage(blocks)])[0].text == "one\ntwo"


def test_the_prose_of_a_turn_is_its_speakers_own_words() -> None:
    text = 'See https://x.io/a\n> Which port?\n```py\nask(why)\n```\n| a | b |\nI need `DSN`, "what is it?".'

    assert read_turns([says("dev", text)])[0].prose.split() == ["See", "I", "need", ",", "."]


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


def test_a_counter_question_is_no_answer() -> None:
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
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
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
def test_no_state_of_any_shape_makes_observing_or_detecting_raise(state: dict[str, Any]) -> None:
    assert all(gap.agent for gap in detect(observe(state, now=NOW)))


@pytest.mark.parametrize("state", [None, 7, "state", [], object()])
def test_an_invalid_state_is_logged_and_has_no_gap(state: object, logged: list[dict[str, Any]]) -> None:
    assert ScrumMaster().detect(state) == ()
    assert [entry["event"] for entry in logged] == ["state.malformed"]


def test_a_named_human_message_after_the_task_is_an_agents() -> None:
    assert speakers(
        HumanMessage("Build it.", name="customer"),
        HumanMessage("I cannot proceed without the schema.", name="researcher"),
        HumanMessage("Go on.", name="user"),
        HumanMessage("Go on."),
        ChatMessage(content="Ready.", role="dev"),
        {"type": "ai", "data": {"content": "hi", "name": "pm"}},
    ) == [
        ("customer", "human"),
        ("researcher", "agent"),
        ("user", "human"),
        ("user", "human"),
        ("dev", "agent"),
        ("pm", "agent"),
    ]


def test_the_newest_turn_of_an_unnamed_agent_belongs_to_the_current_agent() -> None:
    (gap,) = ScrumMaster().detect({"messages": [AIMessage("Which database do we use?")], "current_agent": "dev"})

    assert gap.agent == "dev"


def test_openai_tool_calls_are_read() -> None:
    call = {"type": "function", "function": {"name": "request_context", "arguments": '{"need": "the key store"}'}}

    (gap,) = ScrumMaster().detect({"messages": [{"role": "assistant", "name": "dev", "tool_calls": [call]}]})

    assert gap.context_query == "the key store"


class Array:
    def __bool__(self) -> bool:
        raise ValueError("the truth value of an array is ambiguous")


@pytest.mark.parametrize(
    "state",
    [
        {
            "messages": [
                {"role": "assistant", "content": "", "tool_calls": [{"name": "f", "args": {(1, 2): 3, "a": 4}}]}
            ]
        },
        {"messages": [says("dev", "x", additional_kwargs={"timestamp": 10**400})]},
        {"gate_blocked": Array(), "handoff_context": Array(), "cycle_analysis": {"circular_detected": Array()}},
        {"handoff_context": {"target_agent": "dev", "required_context": ["a"]}, "a": Array()},
        {"injected_context": {"gap_id": "a", "others": None}, "missing_context": "x"},
    ],
)
def test_odd_values_make_nothing_fail(state: dict[str, Any], logged: list[dict[str, Any]]) -> None:
    ScrumMaster().node.invoke(state)

    assert [entry for entry in logged if entry["event"].endswith("failed")] == []


@pytest.mark.parametrize(
    "text",
    [
        "until x " * 8000,
        "cannot make " * 8000,
        "a" + " " * 80000 + "b",
        "if you provide " * 6000,
        "|" * 50000,
        '"' * 50000,
    ],
)
def test_no_text_takes_long_to_read(text: str) -> None:
    started = time.process_time()

    ScrumMaster().detect({"messages": [says("dev", text)]})

    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "Which database do we use for orders?",
            "We will go with PostgreSQL 16 because it already runs in production.",
        ),
        ("How long do we keep idempotency keys?", "For 24 hours, as agreed with the payment team last week."),
        ("Which database do we use for orders?", "PostgreSQL."),
    ],
)
def test_an_answer_in_other_words_closes_the_question(question: str, answer: str) -> None:
    assert observe(a_state(("dev", question), ("architect", answer)), now=NOW).questions == ()


class Hostile(dict[str, Any]):
    def get(self, key: str, default: Any = None) -> Any:
        raise RuntimeError("no")


def test_a_state_that_cannot_be_observed_is_logged_and_has_no_gap(logged: list[dict[str, Any]]) -> None:
    assert ScrumMaster().detect(Hostile(a=1)) == ()
    assert ScrumMaster().evaluate(Hostile(a=1)) is None
    assert {entry["event"] for entry in logged} == {"observation.failed"}


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "odd_key",
    [
        {"health_status": {"metrics": {"agent_cycle_times": {"dev": 10**400, "b": 1}}}},
        {"gate_blocked": type("Odd", (), {"__bool__": lambda self: 1 / 0})()},
        {
            "messages": [
                {
                    "role": "assistant",
                    "name": "x",
                    "content": "",
                    "tool_calls": [{"name": "f", "args": {"a": deep(5000)}}],
                }
            ]
        },
    ],
)
def test_one_odd_value_does_not_hide_the_rest(odd_key: dict[str, Any]) -> None:
    asked = {"role": "assistant", "name": "dev", "content": "Which database do we use?", "id": "q"}
    state = {**odd_key, "messages": [*odd_key.get("messages", []), asked]}

    assert [gap.reason for gap in ScrumMaster().detect(state)] == ["clarification_requested"]


@pytest.mark.parametrize(
    "reply", ["Good question, I don't know either.", "Let me check which region with the infra team.", "Ok."]
)
def test_a_reply_without_information_leaves_the_question_open(reply: str) -> None:
    state = a_state(("dev", "Which region do we deploy to?"), ("pm", reply))

    assert [question.asker for question in observe(state, now=NOW).questions] == ["dev"]


def test_the_next_turn_of_the_addressed_agent_is_an_answer() -> None:
    state = a_state(
        ("lead", "Searcher, please provide three sources on prices."),
        ("searcher", "Found: BNEF, IEA and Argus, all of 2024."),
    )

    assert observe(state, now=NOW).questions == ()


def test_a_question_tells_whom_it_is_put_to_and_since_when() -> None:
    state = a_state(("architect", "The plan is ready."))
    asked = says(
        "dev",
        "Architect, which queue do refunds go to? @pm: what is the limit per day?",
        additional_kwargs={"timestamp": NOON},
    )
    state["messages"].append(asked)

    questions = observed(state).questions

    assert [(q.addressee, q.text) for q in questions] == [
        ("architect", "which queue do refunds go to?"),
        ("pm", "what is the limit per day?"),
    ]
    assert {q.since for q in questions} == {NOON}


def test_a_question_in_a_handoff_is_addressed_to_its_target() -> None:
    call = {"name": "transfer_to_architect", "args": {}, "id": "c"}
    state = {"messages": [says("dev", "Which queue do refunds go to?", tool_calls=[call])]}

    assert [question.addressee for question in observed(state).questions] == ["architect"]


def test_a_handoff_records_what_is_handed_over() -> None:
    calls = [
        {"name": "task", "args": {"description": "Write the tests.", "subagent_type": "tester"}, "id": "c1"},
        {"name": "transfer_back_to_supervisor", "args": {}, "id": "c2"},
    ]
    state = {"messages": [says("dev", "My part is ready.", tool_calls=calls, additional_kwargs={"timestamp": NOON})]}

    assert [(h.target, h.what, h.back, h.time) for h in observed(state).handoffs] == [
        ("tester", "Write the tests.", False, NOON),
        ("supervisor", "My part is ready.", True, NOON),
    ]


TWO = "Which queue do refunds go to? What is the retention of audit logs?"


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("Audit logs have a retention of ten years.", ["Which queue do refunds go to?"]),
        ("All refunds go to the queue billing-v2.", ["What is the retention of audit logs?"]),
        ("The refunds queue is billing-v2, the retention ten years.", []),
        ("The new logo is blue and the office plants have been watered again.", TWO.replace("? ", "?|").split("|")),
    ],
)
def test_an_answer_closes_exactly_its_question(answer: str, left: list[str]) -> None:
    state = a_state(("dev", TWO), ("pm", answer))

    assert [question.text for question in observed(state).questions] == left


@given(st.permutations(range(6)), st.integers(0, 6), st.integers(0, 1))
def test_the_order_of_unrelated_messages_does_not_matter(order: list[int], at: int, answered: int) -> None:
    unrelated = [
        (f"team{i}", f"The {thing} has been painted and the floor of the hall swept again this morning.")
        for i, thing in enumerate(("door", "window", "fence", "garage", "kitchen", "stair"))
    ]
    turns = [("dev", TWO), *(unrelated[i] for i in order)]
    if answered:
        turns.insert(1 + at, ("pm", "Audit logs have a retention of ten years."))

    open_now = [(question.asker, question.text) for question in observed(a_state(*turns)).questions]

    assert open_now == [("dev", text) for text in TWO.replace("? ", "?|").split("|")][: 2 - answered]


def test_consecutive_sentences_on_one_topic_are_one_need() -> None:
    text = "Which database do we use for orders? I cannot write the migration without it."

    (question,) = observed(a_state(("dev", text))).questions

    assert question.text == text


def test_a_question_with_a_pronoun_gets_the_name_it_refers_to() -> None:
    text = "The billing gateway throttles our calls. What is its limit?"

    (question,) = observed(a_state(("dev", text))).questions

    assert question.text == text


@pytest.mark.parametrize(
    ("reason", "missing"),
    [
        ("Missing: coverage_config, test_requirements", ("coverage config", "test requirements")),
        (
            "Coverage is 92 %. The retention of audit logs is not specified.",
            ("The retention of audit logs is not specified.",),
        ),
        ("Coverage is 60 %, 80 % are needed.", ()),
    ],
)
def test_the_reason_of_a_gate_names_what_is_missing(reason: str, missing: tuple[str, ...]) -> None:
    (gate,) = observed({"gate_blocked": True, "gate_failure": reason}).gates

    assert gate.missing == missing


@pytest.mark.parametrize(
    "answer",
    [
        "1. PostgreSQL\n2. thirty minutes\n3. the one in Frankfurt, as always",
        "- PostgreSQL\n- thirty minutes\n- the one in Frankfurt, as always",
    ],
)
def test_a_list_with_an_item_for_each_need_answers_them_all(answer: str) -> None:
    asked = "Which database do we use? How long does a session live? In which region do we deploy?"

    assert observed(a_state(("dev", asked), ("pm", answer))).questions == ()


def test_an_answer_followed_by_a_question_is_an_answer() -> None:
    back = "We keep idempotency keys in Redis for a day. Which retry policy do you follow?"

    (question,) = observed(a_state(("dev", "Where do we keep idempotency keys?"), ("pm", back))).questions

    assert question.asker == "pm"


def test_an_addressed_agent_may_answer_later() -> None:
    asked, chat = (
        ("dev", "@PM: when is the release?"),
        ("designer", "The mockups have been moved to the shared folder."),
    )
    state = a_state(asked, chat, ("pm", "We ship on the last Friday of the month after the freeze."))

    assert observed(state).questions == ()


def test_a_word_that_contains_an_agents_name_does_not_address_it() -> None:
    state = a_state(
        ("pm", "Which device does the customer use?"), ("dev", "The build of the parser has been repaired.")
    )

    assert [question.asker for question in observed(state).questions] == ["pm"]


def test_no_reply_takes_long_to_hear() -> None:
    askers = [(f"agent{i}", f"Which retention does archive {i} have?") for i in range(60)]
    started = time.process_time()

    observed(a_state(*askers, ("pm", "lorem ipsum dolor sit amet " * 40_000)))

    assert time.process_time() - started < 5


def supervised(text: str) -> dict[str, Any]:
    """What langgraph-supervisor leaves behind when a worker has spoken: it hands the work back in its name."""
    mark = {"__is_handoff_back": True}
    call = {"name": "transfer_back_to_supervisor", "args": {}, "id": "b"}
    return {
        "messages": [
            HumanMessage("Build the orders service."),
            says("dev", text, id="m1"),
            says("dev", "Transferring back to supervisor", tool_calls=[call], response_metadata=mark),
            ToolMessage("Successfully transferred back to supervisor", tool_call_id="b", response_metadata=mark),
        ]
    }


@pytest.mark.parametrize(
    "text", ["Which database do we use for the orders service?", '{"missing_information": ["the order schema"]}']
)
def test_handing_back_does_not_settle_a_workers_question(text: str) -> None:
    (found,) = detect(observed(supervised(text)))

    assert (found.agent, found.indicators[0].split("@")[1]) == ("dev", "m1")


def test_a_worker_that_repeats_itself_to_its_supervisor_is_a_cycle() -> None:
    again = supervised("I have reviewed the orders service and found nothing.")["messages"][1:] * 4

    assert [found.reason for found in detect(observed({"messages": again}))] == ["circular_logic"]


def test_the_report_of_a_subagent_is_its_turn() -> None:
    call = {"name": "task", "args": {"description": "Build it.", "subagent_type": "builder"}, "id": "t"}
    report = ToolMessage("I cannot go on. Which database do we use for orders?", tool_call_id="t", id="m1")

    (found,) = detect(observed({"messages": [says("lead", "", tool_calls=[call]), report]}))

    assert (found.agent, found.reason) == ("builder", "clarification_requested")


def test_a_turn_and_its_tool_calls_belong_to_the_current_agent() -> None:
    call = {"name": "read_file", "args": {}, "id": "c"}
    messages = [AIMessage("Reading.", tool_calls=[call]), ToolMessage("…", tool_call_id="c"), AIMessage("Read.")]

    turns = observed({"messages": messages, "active_agent": "dev"}).turns

    assert [turn.agent for turn in turns if turn.kind == "agent"] == ["dev", "dev"]


ASKS: dict[str, Any] = {"tool_calls": [{"name": "request_context", "args": {"q": "x"}, "id": "c"}]}


@pytest.mark.parametrize(
    "message",
    [ChatMessage(role="dev", content="On it.", **ASKS), HumanMessage("On it.", name="dev", **ASKS)],
)
def test_extra_fields_of_a_message_are_read(message: Any) -> None:
    (gap,) = ScrumMaster().detect({"messages": [HumanMessage("go"), message]})

    assert (gap.agent, gap.reason) == ("dev", "explicit_flag")


class Proxy:
    """Says something to whatever it is asked."""

    __slots__ = ()

    def __getattr__(self, name: str) -> int:
        return 1


@pytest.mark.parametrize(
    "odd",
    [Proxy(), {"role": "assistant", "content": "x", "tool_calls": np.array([1, 2])}],
)
def test_an_odd_message_costs_no_other(odd: Any) -> None:
    asking = says("dev", "Which schema version do we use for orders?")

    gaps = ScrumMaster().detect({"messages": [HumanMessage("go"), odd, asking], "gate_results": np.array([1, 2])})

    assert [gap.agent for gap in gaps] == ["dev"]
