"""Many branches in one superstep: each agent can read its own context, whatever the order of the branches."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send

from builders import Given, a_context
from langgraph_scrum_master import InjectionConfig, ScrumMaster, ScrumMasterState, context_for
from langgraph_scrum_master.model import InjectionRecord
from langgraph_scrum_master.team.state import cleared, merge_payloads, merge_records, payloads
from langgraph_scrum_master.testing import a_state


class TeamState(MessagesState, ScrumMasterState):
    """A team's state."""


def fan_out(branches: int) -> Any:
    config = InjectionConfig(deadline=30.0, enabled_sources=(), log_injections=False)
    scrum_master = ScrumMaster(config=config, sources=[Given(a_context("Refunds go to the queue refunds-eu."))])

    def branch(number: int) -> Send:
        state = a_state(("user", f"Build shop {number}."), (f"dev{number}", "To which queue do refunds go?"))
        return Send("scrum_master", state)

    builder = StateGraph(TeamState)
    builder.add_node("scrum_master", scrum_master.node)
    builder.add_conditional_edges(START, lambda state: [branch(number) for number in range(branches)], ["scrum_master"])
    return builder.compile()


@pytest.mark.parametrize("branches", [20, 60])
async def test_each_agent_of_a_fan_out_can_read_its_own_context(branches: int) -> None:
    for values in (fan_out(branches).invoke({"messages": []}), await fan_out(branches).ainvoke({"messages": []})):
        assert all("refunds-eu" in context_for(values, f"dev{number}") for number in range(branches))


WAITING: list[dict[str, Any]] = [
    {"gap_id": f"waiting-{i}", "agent": f"reader{i}", "text": f"Text {i}.", "others": []} for i in range(4)
]
NEW: list[dict[str, Any]] = [
    {"gap_id": f"new-{i}", "agent": f"dev{i}", "text": f"New text {i}.", "others": []} for i in range(40)
]
updates = st.lists(
    st.one_of(
        st.sampled_from(NEW),
        st.sampled_from([cleared(payload["gap_id"]) for payload in WAITING]),
        st.builds(
            lambda new, gone: {**new, "others": [cleared(payload["gap_id"]) for payload in gone]},
            st.sampled_from(NEW),
            st.lists(st.sampled_from(WAITING), max_size=4),
        ),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(updates, st.randoms(use_true_random=False))
def test_payloads_of_branches_are_merged_alike_in_any_order_and_number(branches: list[Any], random: Any) -> None:
    base = reduce(merge_payloads, WAITING, None)
    shuffled = [*branches, *random.sample(branches, len(branches) // 2)]
    random.shuffle(shuffled)

    merged, other = (reduce(merge_payloads, each, base) for each in (branches, shuffled))
    gone = {each["gap_id"] for branch in branches for each in (branch, *branch.get("others", ())) if "cleared" in each}
    written = {branch["gap_id"] for branch in branches if "text" in branch}

    def waiting(payload: Any) -> dict[str, str]:
        return {each["gap_id"]: each["text"] for each in payloads(payload)}

    assert waiting(merged) == waiting(other)
    assert waiting(merged).keys() == {each["gap_id"] for each in WAITING} - gone | written
    assert merge_payloads(merged, merged) == merged


histories = st.lists(
    st.builds(
        InjectionRecord,
        gap_id=st.integers(0, 30).map("gap-{}".format),
        need=st.just("need"),
        agent=st.just("dev"),
        reason=st.just("gate_failure"),
        status=st.sampled_from(["pending", "abstained", "injected", "closed"]),
        at=st.sampled_from(["2026-03-02T12:00:00+00:00", "2026-03-02T12:00:01+00:00"]),
        attempts=st.integers(0, 3),
        failed=st.integers(0, 3),
        outcome=st.sampled_from(["", "open", "used"]),
        tokens=st.integers(0, 2),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(histories, st.randoms(use_true_random=False))
def test_records_of_branches_are_merged_alike_in_any_order_and_number(written: list[Any], random: Any) -> None:
    shuffled = [*written, *random.sample(written, len(written) // 2)]
    random.shuffle(shuffled)

    nothing: list[InjectionRecord] = []
    merged, other = (reduce(merge_records, ([each] for each in order), nothing) for order in (written, shuffled))

    assert {each.gap_id: each for each in merged} == {each.gap_id: each for each in other}
    assert {each.gap_id for each in merged} == {each.gap_id for each in written}
    assert merge_records(merged, merged) == merged


def test_a_later_record_with_the_same_progress_replaces_the_earlier_one() -> None:
    first = InjectionRecord(
        gap_id="g", need="n", agent="dev", reason="gate_failure", status="abstained", at="2026-03-02T12:00:00+00:00"
    )
    second = replace(first, failed=1)

    assert merge_records([first], [second]) == merge_records([second], [first]) == [second]
