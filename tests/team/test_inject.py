from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from builders import DECISION, Given, a_context, a_gap, a_result, a_state
from langgraph_scrum_master import InjectionConfig, InjectionResult, ScrumMaster, context_for, injection_update
from langgraph_scrum_master.team.delivery import state_update
from langgraph_scrum_master.team.observe import observe
from langgraph_scrum_master.team.state import WAITING_LIMIT, merge_payloads, merge_records

ASKS = ("dev", "Which store do we use?")


def after(state: dict[str, Any], update: dict[str, Any]) -> dict[str, Any]:
    """The state as the graph's reducers make it."""
    reduced = dict(update)
    if "injected_context" in update:
        reduced["injected_context"] = merge_payloads(state.get("injected_context"), update["injected_context"])
    if "injection_history" in update:
        reduced["injection_history"] = merge_records(state.get("injection_history", []), update["injection_history"])
    return state | reduced


def step(state: dict[str, Any], **options: Any) -> tuple[dict[str, Any], InjectionResult | None]:
    """One step of a scrum master that has the decision."""
    master = ScrumMaster(sources=[Given(a_context())], clock=lambda: 0.0, **options)
    update = master.node.invoke(state)
    return after(state, update), update.get("injection_result")


def test_the_payload_names_its_agent_and_holds_text_sources_and_sizes() -> None:
    payload = injection_update(a_result(), a_state(ASKS))["injected_context"]

    assert (payload["agent"], payload["gap_id"], payload["reason"]) == ("dev", "gap-1", "clarification_requested")
    assert DECISION in payload["text"]
    assert payload["sources"] == {"memory": 1}
    assert payload["contexts"][0]["relevance_score"] == 0.9
    assert payload["total_context_size"] == 100


def test_the_update_contains_the_text_once() -> None:
    update = ScrumMaster(sources=[Given(a_context())]).node.invoke(a_state(ASKS))

    assert repr(update).count(DECISION) == 1
    assert DECISION in update["injected_context"]["text"]


def test_the_output_of_a_step_has_what_was_observed_and_decided() -> None:
    state = a_state(("pm", "Over to dev."), ASKS, gate_blocked=True, gate_failure="coverage too low")

    account = ScrumMaster(sources=[Given(a_context())]).node.invoke(state)["sm_output"]

    assert (account.current_agent, account.gate_blocked, account.circular_logic_detected) == ("dev", True, False)
    assert account.recent_exchanges == ("pm→dev",)
    assert account.injection_result.status == "injected"
    assert "dev lacks context (clarification_requested, 0.90): gave it 1 context," in account.processing_notes


@pytest.mark.parametrize(
    ("handoff", "target"),
    [
        ({"source_agent": "pm", "target_agent": "dev", "required_context": ["key_store"]}, "handoff_context"),
        ({"source_agent": "pm", "target_agent": "tester"}, "injected_context"),
        (None, "injected_context"),
    ],
)
def test_context_goes_into_a_pending_handoff_to_the_agent_it_is_for(handoff: Any, target: str) -> None:
    state = a_state(
        ("pm", "Over to you."), handoff_context=handoff, current_agent="dev", missing_context="the key store"
    )

    state, result = step(state)

    assert result is not None
    assert result.injection_target == target
    assert DECISION in context_for(state, "dev")
    assert (state.get("injected_context") is None) == (target == "handoff_context")


def test_a_handoff_is_extended_under_one_key_and_cleared_of_it_again() -> None:
    handoff = {"target_agent": "dev", "required_context": ["key_store"], "priority": 1}
    state, _ = step(a_state(("pm", "Over to you."), handoff_context=handoff))

    assert {k: v for k, v in state["handoff_context"].items() if k != "injected_context"} == handoff

    state["messages"] = [*state["messages"], *a_state(("x", ""), ("dev", "Thanks, it is Redis then."))["messages"][1:]]
    state, _ = step(state)
    assert state["handoff_context"] == handoff


def test_a_handoff_that_is_not_a_dict_is_unchanged() -> None:
    class Handoff:
        target_agent = "dev"
        required_context = ("key_store",)

    handoff = Handoff()

    state, result = step(a_state(("pm", "Over to you."), handoff_context=handoff))

    assert result is not None
    assert result.injection_target == "injected_context"
    assert state["handoff_context"] is handoff


def test_the_payload_is_cleared_once_its_agent_has_spoken_and_not_before() -> None:
    state, _ = step(a_state(ASKS))

    state["messages"] = [*state["messages"], *a_state(("x", ""), ("tester", "Tests are ready."))["messages"][1:]]
    state, _ = step(state)
    assert DECISION in context_for(state, "dev")

    state["messages"] = [
        *state["messages"],
        *a_state(("x", ""), ("x", ""), ("dev", "It is Redis then."))["messages"][2:],
    ]
    state, _ = step(state)
    assert state["injected_context"] is None
    assert context_for(state, "dev") == ""


def test_a_trimmed_history_does_not_keep_the_payload_forever() -> None:
    state, _ = step(a_state(ASKS))

    state["messages"] = [{"role": "assistant", "name": "dev", "content": "It is Redis then.", "id": "later"}]
    state, _ = step(state)

    assert state["injected_context"] is None


def test_the_same_question_is_served_once() -> None:
    state, first = step(a_state(ASKS))
    state, second = step(state)

    assert first is not None
    assert second is None


def test_context_injected_before_is_not_injected_again_for_a_new_question() -> None:
    state, _ = step(a_state(ASKS))
    asks_again = ("dev", "Thanks. How long do we keep them in that store?")
    state["messages"] = [*state["messages"], *a_state(("x", ""), asks_again)["messages"][1:]]

    state, result = step(state)

    assert result is not None
    assert not result.injected
    assert [drop.why for drop in result.dropped] == ["already_seen"]


def test_context_outside_the_agents_view_may_be_injected_again() -> None:
    state, _ = step(a_state(ASKS))
    talk = [("tester", f"Step {i} of the test plan is done.") for i in range(60)]
    state["messages"] = a_state(ASKS, ("dev", "It is Redis then."), *talk, ("dev", "Which store was it again?"))[
        "messages"
    ]

    state, result = step(state)

    assert result is not None
    assert result.injected


def test_a_need_without_results_is_given_up_after_the_configured_attempts() -> None:
    state = a_state(ASKS)
    tries = 0
    for _ in range(6):
        update = ScrumMaster(config=InjectionConfig(max_attempts=2)).node.invoke(state)
        tries += "injection_result" in update
        state = after(state, update)

    assert tries == 3
    assert [(r.status, r.attempts, r.escalated) for r in state["injection_history"]] == [("abstained", 2, True)]
    assert "context did not help" in state["sm_output"].processing_notes
    assert state["sm_output"].escalation_triggered


def test_several_gaps_are_served_one_a_step_and_the_others_wait_in_the_history() -> None:
    state, first = step(a_state(ASKS, current_agent="tester", missing_context="the test data"))

    assert first is not None
    assert [gap.agent for gap in first.pending] == ["dev"]
    assert [(r.agent, r.status) for r in state["injection_history"]] == [("tester", "injected"), ("dev", "pending")]

    state, second = step(state)
    assert second is not None
    assert second.gap.agent == "dev"
    assert DECISION in context_for(state, "tester")
    assert DECISION in context_for(state, "dev")
    assert [record.status for record in state["injection_history"]] == ["injected", "injected"]


def test_a_healthy_step_writes_nothing() -> None:
    state = a_state(("user", "Build it."), ("dev", "Done, all tests pass."))

    assert ScrumMaster().node.invoke(state) == {}
    assert state_update(state, observe(state, now=""), None) == {}
    assert injection_update(None, state) == {}


def test_an_abstaining_result_writes_no_payload() -> None:
    update = injection_update(replace(a_result(), injected=False, contexts_retrieved=(), text=""), {})

    assert "injected_context" not in update
    assert [record.status for record in update["injection_history"]] == ["abstained"]
    assert a_gap().gap_id == update["injection_history"][0].gap_id


def test_a_synthetic_last_message_does_not_make_the_payload_look_read() -> None:
    summary = HumanMessage("Summary so far.", id="s", additional_kwargs={"lc_source": "summarization"})
    state = a_state(ASKS)
    state["messages"].append(summary)

    state, _ = step(state)
    state, again = step(state)

    assert again is None
    assert DECISION in context_for(state, "dev")


def test_messages_without_ids_keep_the_payload_when_the_history_is_cut() -> None:
    talk = [{"role": "assistant", "name": "pm", "content": f"Note {i}."} for i in range(9)]
    state = {"messages": [*talk, {"role": "assistant", "name": "dev", "content": ASKS[1]}]}
    state, _ = step(state)

    state["messages"] = state["messages"][-3:]
    state, _ = step(state)

    assert DECISION in context_for(state, "dev")


def test_an_agent_gets_one_text_at_a_time() -> None:
    state = a_state(ASKS, current_agent="dev", missing_context="the key store")

    state, first = step(state)
    once = context_for(state, "dev")
    state, second = step(state)

    assert first is not None
    assert second is None
    assert context_for(state, "dev") == once


def test_clearing_one_payload_and_writing_another_in_one_step_loses_neither() -> None:
    state, _ = step(a_state(ASKS))
    state["messages"] = [
        *state["messages"],
        *a_state(("x", ""), ("dev", "It is Redis then."), ("pm", "Which store holds the backlog?"))["messages"][1:],
    ]

    state, result = step(state)

    assert result is not None
    assert result.gap.agent == "pm"
    assert context_for(state, "dev") == ""
    assert DECISION in context_for(state, "pm")


def test_a_pending_gap_that_was_resolved_is_closed() -> None:
    state, _ = step(a_state(ASKS, current_agent="tester", missing_context="the test data"))
    assert [r.status for r in state["injection_history"]] == ["injected", "pending"]

    answered = a_state(("x", ""), ("architect", "Our store is Redis."))["messages"][1:]
    state = {**state, "missing_context": None, "messages": [*state["messages"], *answered]}
    state, _ = step(state)

    assert [r.status for r in state["injection_history"]] == ["injected", "closed"]


def test_an_outage_does_not_use_up_the_attempts() -> None:
    class Down:
        name = "down"

        async def find(self, query: Any, state: Any) -> Any:
            raise ConnectionError("down")

    state = a_state(ASKS)
    for _ in range(4):
        state = after(state, ScrumMaster(sources=[Down()]).node.invoke(state))
    assert [(r.status, r.attempts, r.failed) for r in state["injection_history"]] == [("abstained", 0, 4)]

    state, result = step(state)
    assert result is not None
    assert result.injected


def test_a_harness_may_write_the_update_into_a_plain_dict() -> None:
    master = ScrumMaster(sources=[Given(a_context())], config=InjectionConfig(view_window=0))
    state = a_state(ASKS, ("tester", "Which store do the tests use?"))
    served = []
    for _ in range(4):
        result = master.evaluate(state)
        served += [result.gap.agent] if result else []
        state |= injection_update(result, state)

    assert served == ["dev", "tester"]
    assert DECISION in context_for(state, "dev")
    assert DECISION in context_for(state, "tester")


def test_agents_of_dataclass_and_pydantic_states_can_read_it() -> None:
    @dataclass
    class Host:
        messages: list[Any]
        injected_context: Any = None

    host = Host(messages=a_state(ASKS)["messages"])
    host.injected_context = ScrumMaster(sources=[Given(a_context())]).node.invoke(host)["injected_context"]

    assert DECISION in context_for(host, "dev")


def test_an_agent_that_calls_a_tool_keeps_its_context_until_its_turn_ends() -> None:
    state, _ = step(a_state(ASKS))
    call = AIMessage("", name="dev", id="c", tool_calls=[{"name": "read_file", "args": {"path": "a"}, "id": "t"}])
    state["messages"] = [*state["messages"], call, ToolMessage("text", tool_call_id="t", id="r")]

    state, _ = step(state)
    assert DECISION in context_for(state, "dev")

    state["messages"] = [*state["messages"], AIMessage("It is Redis then.", name="dev", id="e")]
    state, _ = step(state)
    assert context_for(state, "dev") == ""


def test_a_removed_question_does_not_make_its_context_look_read() -> None:
    state, _ = step(a_state(("dev", "I start with the table."), ASKS))

    state["messages"] = [state["messages"][0], *a_state(("x", ""), ("x", ""), ("rev", "Go on."))["messages"][2:]]
    state, _ = step(state)

    assert DECISION in context_for(state, "dev")


def test_more_agents_than_may_wait_are_all_served_in_time() -> None:
    askers = [f"worker{i}" for i in range(WAITING_LIMIT + 4)]
    state = a_state(*((asker, "Which store do we use?") for asker in askers))
    given: set[str] = set()
    for round_ in range(40):
        state, _ = step(state)
        ready = [asker for asker in askers if context_for(state, asker) and asker not in given][:1]
        given.update(ready)
        said = [
            AIMessage(f"I will review the login page of {asker} after lunch.", name=asker, id=f"{asker}-{round_}")
            for asker in ready
        ]
        state["messages"] = [*state["messages"], *said]

    assert given == set(askers)


def test_nothing_in_the_state_grows_with_the_number_of_gaps() -> None:
    state = a_state()
    sizes = []
    for i in range(300):
        asks = AIMessage("Which store do we use?", name=f"worker{i}", id=f"w{i}")
        state["messages"] = [*state["messages"], asks]
        state, _ = step(state)
        sizes.append(len(repr({key: value for key, value in state.items() if key != "messages"})))

    assert max(sizes[200:]) <= 1.5 * max(sizes[100:150])
    assert len({record.gap_id for record in state["injection_history"]}) == len(state["injection_history"]) <= 100


def test_clearing_our_key_does_not_keep_context_out_of_a_pending_handoff() -> None:
    state, _ = step(a_state(ASKS))
    spoken = a_state(("x", ""), ("dev", "It is Redis then."), ("pm", "Over to you, tester."))["messages"][1:]
    handoff = {"source_agent": "pm", "target_agent": "tester", "required_context": ["key_store"]}
    state = {**state, "messages": [*state["messages"], *spoken], "handoff_context": handoff}

    state, result = step(state)

    assert result is not None
    assert result.injection_target == "handoff_context"
    assert context_for(state, "dev") == ""
    assert DECISION in context_for(state, "tester")


def test_an_unknown_target_does_not_lose_the_context() -> None:
    update = injection_update(a_result(injection_target="handoff_context"), a_state(ASKS))

    assert DECISION in context_for(update, "dev")
