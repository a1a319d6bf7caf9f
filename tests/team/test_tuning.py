from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from builders import NOON, QUESTION, says
from langgraph_scrum_master import ConfigError, ScrumMaster
from langgraph_scrum_master.model import ContextGap
from langgraph_scrum_master.team import DetectionTuning, TalkWeights, health_status
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION


def gaps(messages: list[Any], **tuning: Any) -> tuple[ContextGap, ...]:
    return ScrumMaster(tuning=DetectionTuning(**tuning)).detect({"messages": messages})


def reasons(messages: list[Any], **tuning: Any) -> list[str]:
    return [gap.reason for gap in gaps(messages, **tuning)]


REPEATED = [says("dev", "The build fails because the registry login is refused.", id=f"m{i}") for i in range(3)]


def test_a_recipe_with_the_defaults_is_the_default() -> None:
    assert DetectionTuning() == DEFAULT_DETECTION
    assert ScrumMaster().pipeline.tuning is DEFAULT_DETECTION


def test_fewer_repetitions_make_a_circle_where_the_tuning_says_so() -> None:
    assert "circular_logic" not in reasons(REPEATED)
    assert "circular_logic" in reasons(REPEATED, repetitions=2)


def test_the_threshold_of_asking_decides_what_is_a_question() -> None:
    plain = [says("dev", "The form is ready. Which session service do we call?", id="m1")]

    assert reasons(plain) == ["clarification_requested"]
    assert reasons(plain, asks_from=1.0, doubtful_from=1.0) == []


def test_confidences_are_those_of_the_tuning() -> None:
    (gap,) = gaps([says("dev", QUESTION)], question_confidence=0.55)

    assert gap.confidence == 0.55


def test_the_weights_of_talk_decide_what_goes_in_circles() -> None:
    talk = [says(("dev", "pm")[i % 2], f"I put the flag back, {word} as it was.") for i, word in enumerate("abcdef")]

    assert reasons(talk, talk=replace(TalkWeights(), bias=-50.0), repetitions=9) == []
    assert reasons(talk, talk=replace(TalkWeights(), bias=50.0), repetitions=9) == ["circular_logic"]


def test_the_pace_of_an_agent_is_judged_by_the_tuning() -> None:
    def at(second: float) -> Any:
        return says("dev", f"Module {second} is done.", additional_kwargs={"timestamp": NOON + second})

    state = {"messages": [*(at(10.0 * i) for i in range(5)), at(400.0)]}

    assert ScrumMaster().observe(state).paces == ()
    assert [pace.seconds for pace in ScrumMaster(tuning=DetectionTuning(pace_samples=3)).observe(state).paces] == [360]


def test_health_is_judged_by_the_tuning() -> None:
    timed = [says("dev", f"Module {i} done.", additional_kwargs={"timestamp": NOON + i}) for i in range(5)]
    seen = ScrumMaster(clock=lambda: NOON + 60).observe({"messages": timed})

    assert health_status(seen).is_healthy
    assert health_status(seen, DetectionTuning(churn_warning=1.0)).status == "warning"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("repetitions", 0, "a whole number, 1 or more"),
        ("repetitions", 2.5, "a whole number, 1 or more"),
        ("same_call", 1.5, "a number from 0 to 1"),
        ("same_call", None, "a number"),
        ("asks_from", "often", "a number from 0 to 1"),
        ("pace_of_usual", -1.0, "a number, 0 or more"),
        ("idle_warning_seconds", float("nan"), "a number, 0 or more"),
        ("pace_confidence", 2.0, "a number from 0 to 1"),
        ("talk", {"bias": 1.0}, "TalkWeights"),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_name_and_the_rule(name: str, value: Any, rule: str) -> None:
    with pytest.raises(ConfigError, match=rf"DetectionTuning\.{name} must be {rule}, got"):
        DetectionTuning(**{name: value})


def test_weights_must_be_numbers() -> None:
    with pytest.raises(ConfigError, match=r"TalkWeights\.bias must be a finite number, got 'high'"):
        TalkWeights(bias="high")  # type: ignore[arg-type]


def test_something_else_than_a_tuning_is_refused() -> None:
    with pytest.raises(ConfigError, match="tuning must be a DetectionTuning"):
        ScrumMaster(tuning={"repetitions": 2})  # type: ignore[arg-type]


def test_every_number_says_where_it_comes_from() -> None:
    import ast
    from inspect import getsource

    (made,) = ast.parse(getsource(DetectionTuning)).body
    assert isinstance(made, ast.ClassDef)
    told = {
        each.target.id: after.value.value
        for each, after in zip(made.body, made.body[1:], strict=False)
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
    }

    assert [
        each.name
        for each in fields(DetectionTuning)
        if not any(origin in " ".join(str(told[each.name]).split()) for origin in ("By hand", "benchmarks/", "like `"))
    ] == []
