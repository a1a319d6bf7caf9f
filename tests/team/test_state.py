from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, strategies as st

from builders import NOW
from langgraph_scrum_master.model import InjectionRecord, RecordStatus
from langgraph_scrum_master.team.state import (
    HISTORY_LIMIT,
    MERGED_LIMIT,
    cleared,
    merge_payloads,
    merge_records,
    payloads,
)


def a_payload(gap_id: str, agent: str = "dev") -> dict[str, Any]:
    return {"gap_id": gap_id, "agent": agent, "text": f"text of {gap_id}", "others": []}


def a_record(gap_id: str = "gap-1", status: RecordStatus = "pending", attempts: int = 0) -> InjectionRecord:
    return InjectionRecord(
        gap_id=gap_id, need=gap_id, agent="dev", reason="gate_failure", status=status, at=NOW, attempts=attempts
    )


def ids(payload: dict[str, Any] | None) -> list[str]:
    return [waiting["gap_id"] for waiting in payloads(payload)]


def test_a_second_payload_leaves_the_first_waiting_for_its_agent() -> None:
    merged = merge_payloads(a_payload("gap-1", "dev"), a_payload("gap-2", "tester"))

    assert merged is not None
    assert (merged["agent"], ids(merged)) == ("tester", ["gap-2", "gap-1"])


def test_writing_the_whole_state_back_changes_nothing() -> None:
    merged = merge_payloads(a_payload("gap-1"), a_payload("gap-2"))

    assert merge_payloads(merged, merged) == merged
    assert merge_records([a_record()], [a_record()]) == [a_record()]


def test_clearing_one_payload_keeps_what_another_scrum_master_wrote_in_the_same_step() -> None:
    waiting = a_payload("gap-1")

    assert ids(merge_payloads(merge_payloads(waiting, cleared("gap-1")), a_payload("gap-2"))) == ["gap-2"]
    assert ids(merge_payloads(merge_payloads(waiting, a_payload("gap-2")), cleared("gap-1"))) == ["gap-2"]


def test_the_last_payload_cleared_leaves_nothing() -> None:
    assert merge_payloads(a_payload("gap-1"), cleared("gap-1")) is None


def test_a_record_never_falls_back() -> None:
    done = a_record(status="injected", attempts=2)

    assert merge_records([done], [a_record()]) == [done]
    assert merge_records([a_record()], [done]) == [done]


def test_records_returned_as_dicts_by_a_checkpoint_are_read() -> None:
    assert merge_records([a_record().to_dict()], [{"broken": True}]) == [a_record()]  # type: ignore[list-item]


def test_the_history_keeps_only_the_newest() -> None:
    many = [a_record(f"gap-{i}") for i in range(HISTORY_LIMIT + 10)]

    assert merge_records([], many) == many[10:]


histories = st.lists(
    st.builds(
        a_record, st.sampled_from("abcd"), st.sampled_from(["pending", "abstained", "injected"]), st.integers(0, 3)
    )
)


@given(histories, histories)
def test_merging_twice_is_merging_once(old: list[InjectionRecord], new: list[InjectionRecord]) -> None:
    once = merge_records(old, new)

    assert merge_records(once, new) == once
    assert len({record.gap_id for record in once}) == len(once)


def test_replacing_a_record_keeps_its_place() -> None:
    first, second = a_record("a"), a_record("b")

    assert [r.gap_id for r in merge_records([first, second], [replace(first, attempts=1)])] == ["a", "b"]


def test_payloads_wait_in_limited_number() -> None:
    merged: dict[str, Any] | None = None
    for i in range(MERGED_LIMIT + 3):
        merged = merge_payloads(merged, a_payload(f"gap-{i}", f"agent-{i}"))

    assert ids(merged) == [f"gap-{i}" for i in reversed(range(3, MERGED_LIMIT + 3))]


def test_a_subgraphs_none_changes_nothing() -> None:
    assert ids(merge_payloads(a_payload("gap-1"), None)) == ["gap-1"]


def test_records_of_served_gaps_are_kept_longer_than_pending_ones() -> None:
    served = [a_record(f"s{i}", "injected", 1) for i in range(20)]
    waited = [a_record(f"w{i}") for i in range(HISTORY_LIMIT)]

    kept = merge_records(served, waited)

    assert len(kept) == HISTORY_LIMIT
    assert kept[:20] == served
