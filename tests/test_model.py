from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from builders import NOW, a_context, a_gap, a_result
from langgraph_scrum_master import ContextGap, InjectionResult, RetrievedContext
from langgraph_scrum_master._internal.serialisation import Plain, from_plain, json_shapes, to_plain
from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.model import (
    VALID_GAP_REASONS,
    ContextSource,
    Dropped,
    InjectionRecord,
    SMOutput,
    SourceFailure,
)

RECORD = InjectionRecord(gap_id="gap-1", need="n", agent="dev", reason="gate_failure", status="injected", at=NOW)
FULL = a_result(
    dropped=(Dropped(key="k", source="state", title="t", relevance_score=0.1, why="below_bar"),),
    failures=(SourceFailure(source="memory", error="late"),),
    pending=(a_gap(gap_id="gap-2"),),
)


@pytest.mark.parametrize(
    "value",
    [
        a_gap(missing=("schema",)),
        a_context(metadata={"nested": {"list": [1, 2]}}),
        FULL,
        RECORD,
        SMOutput(
            observed_at=NOW,
            current_agent="dev",
            circular_logic_detected=False,
            gate_blocked=True,
            gaps=(a_gap(),),
            injection_result=RECORD,
            processing_notes="",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_comes_back_equal_from_its_plain_form(value: Plain) -> None:
    assert type(value).from_dict(value.to_dict()) == value


def test_the_plain_form_has_the_fields_and_only_json_shapes() -> None:
    plain = a_gap().to_dict()

    assert plain == {
        "gap_id": "gap-1",
        "agent": "dev",
        "reason": "clarification_requested",
        "context_query": a_gap().context_query,
        "confidence": 0.9,
        "indicators": ["open_question@m1"],
        "detected_at": NOW,
        "missing": [],
        "parts": [],
        "about": "",
        "whom": "",
        "spans": [],
    }


def test_plain_data_of_a_newer_version_is_read() -> None:
    assert ContextGap.from_dict(a_gap().to_dict() | {"invented_later": 1}) == a_gap()


def test_plain_data_of_another_shape_is_refused_with_the_field_and_the_value() -> None:
    with pytest.raises(DecodeError, match=r"not a ContextGap: agent: Field required.*gap-9"):
        ContextGap.from_dict({"gap_id": "gap-9", "reason": "gate_failure", "context_query": "q", "confidence": 1})


@pytest.mark.parametrize(("given", "kept"), [(1.5, 1.0), (-0.2, 0.0), (float("nan"), 0.0)])
def test_a_confidence_out_of_range_is_clamped_with_a_warning(
    given: float, kept: float, logged: list[dict[str, Any]]
) -> None:
    gap = a_gap(confidence=given)

    assert gap.confidence == kept
    assert [(entry["event"], entry["field"]) for entry in logged] == [("value.clamped", "confidence")]


def test_other_values_out_of_range_are_clamped_with_a_warning(logged: list[dict[str, Any]]) -> None:
    assert a_context(score=7).relevance_score == 1.0
    assert a_result(total_context_size=-1).total_context_size == 0
    assert a_result(duration_ms=-1.0).duration_ms == 0.0
    assert [entry["field"] for entry in logged] == ["relevance_score", "total_context_size", "duration_ms"]


def test_an_unknown_reason_is_kept_with_a_warning_that_names_the_valid_ones(logged: list[dict[str, Any]]) -> None:
    assert str(a_gap(reason="boredom").reason) == "boredom"
    assert [entry["valid"] for entry in logged] == [sorted(VALID_GAP_REASONS)]


@pytest.mark.parametrize("name", [*get_args(ContextSource), "jira", "our-wiki"])
def test_a_source_may_have_any_name(name: str, logged: list[dict[str, Any]]) -> None:
    context = a_context(source=name)

    assert replace(RetrievedContext.from_dict(context.to_dict()), content="").source == name
    assert logged == []


@pytest.mark.parametrize("name", ["", "  "])
def test_a_context_without_the_name_of_its_source_is_kept_with_a_warning(
    name: str, logged: list[dict[str, Any]]
) -> None:
    assert a_context(source=name).source == name
    assert [(entry["event"], entry["field"]) for entry in logged] == [("value.unknown", "source")]


@pytest.mark.parametrize("blank", ["", " \n"])
@pytest.mark.parametrize("field", ["gap_id", "agent", "context_query"])
def test_an_empty_field_of_a_gap_is_kept_with_a_warning(field: str, blank: str, logged: list[dict[str, Any]]) -> None:
    gap = a_gap(**{field: blank})

    assert getattr(gap, field) == blank
    assert [(entry["event"], entry["type"], entry["field"]) for entry in logged] == [
        ("value.empty", "ContextGap", field)
    ]


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_context_without_text_is_kept_with_a_warning(blank: str, logged: list[dict[str, Any]]) -> None:
    assert a_context(blank).content == blank
    assert [(entry["event"], entry["field"]) for entry in logged] == [("value.empty", "content")]


def test_an_injection_without_target_or_contexts_is_kept_with_a_warning(logged: list[dict[str, Any]]) -> None:
    assert replace(a_result(injected=True), injection_target="", contexts_retrieved=()).injected
    replace(a_result(injected=False), injection_target="", contexts_retrieved=())

    assert [(entry["event"], entry["field"]) for entry in logged] == [
        ("value.empty", "injection_target"),
        ("value.empty", "contexts_retrieved"),
    ]


def test_a_result_whose_texts_were_left_out_warns_of_nothing(logged: list[dict[str, Any]]) -> None:
    slim = a_result().slim()

    assert InjectionResult.from_dict(slim.to_dict()) == slim
    assert logged == []


def test_valid_values_warn_of_nothing(logged: list[dict[str, Any]]) -> None:
    a_gap(), a_context(), a_result()

    assert logged == []


def test_the_same_need_in_another_message_is_the_same_need() -> None:
    again = replace(
        a_gap(), gap_id="gap-2", indicators=("open_question@m9",), context_query=a_gap().context_query.upper()
    )

    assert again.need == a_gap().need
    assert replace(a_gap(), agent="tester").need != a_gap().need


def test_a_context_without_a_key_gets_one_from_what_it_says() -> None:
    assert a_context("one").key == a_context("one").key != a_context("two").key


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_like | st.sets(st.integers()) | st.datetimes()))
def test_metadata_of_any_content_comes_back_equal(metadata: dict[str, Any]) -> None:
    context = a_context(metadata=metadata)

    assert from_plain(RetrievedContext, to_plain(context)) == context
    assert json_shapes(context.metadata) == context.metadata


def test_a_result_can_be_hashed_although_metadata_cannot() -> None:
    assert hash(replace(FULL)) == hash(FULL)
    assert isinstance(FULL, InjectionResult)
