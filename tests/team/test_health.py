"""How the team is doing, told from the messages or read from the state."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from builders import NOON, Given, a_context, says
from langgraph_scrum_master import ScrumMaster, ScrumMasterState, checkpoint_serde
from langgraph_scrum_master.model import HealthStatus
from langgraph_scrum_master.team import cycle_analysis, health_status


def spoken(*turns: tuple[str, float], **keys: Any) -> dict[str, Any]:
    """Turns of (agent, seconds before noon), each with words of its own."""
    return {
        "messages": [
            says(agent, f"Part {i} of {agent} is ready.", id=f"m{i}", additional_kwargs={"timestamp": NOON - ago})
            for i, (agent, ago) in enumerate(turns)
        ],
        **keys,
    }


def health(state: dict[str, Any]) -> HealthStatus:
    return health_status(ScrumMaster(clock=lambda: NOON).observe(state))


def alerts(state: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(alert.severity, alert.alert_type, alert.affected_agent) for alert in health(state).alerts]


def test_a_team_at_work_is_healthy() -> None:
    status = health(spoken(("pm", 90), ("dev", 60), ("pm", 30), ("dev", 5)))

    assert (status.status, status.is_healthy, status.alerts) == ("healthy", True, ())
    assert status.metrics.agent_cycle_times == {"dev": 27.5, "pm": 30.0}
    assert status.metrics.agent_churn_rates == {"pm": pytest.approx(2 / 85 * 60), "dev": pytest.approx(2 / 85 * 60)}


@pytest.mark.parametrize(("ago", "severity"), [(180, None), (220, "warning"), (301, "critical")])
def test_only_an_agent_with_waiting_work_is_idle(ago: float, severity: str | None) -> None:
    state = spoken(("dev", 700), ("pm", 650), ("dev", ago + 20), ("pm", ago), current_agent="dev")

    assert alerts(state) == ([(severity, "idle", "dev")] if severity else [])
    assert health(state | {"current_agent": "pm"}).alerts == ()


def test_an_agent_is_idle_from_when_work_was_handed_to_it() -> None:
    messages = [
        says("dev", "My part is ready.", additional_kwargs={"timestamp": NOON - 800}),
        says(
            "hub",
            "Now the tests.",
            tool_calls=[{"name": "transfer_to_dev", "args": {}, "id": "c"}],
            additional_kwargs={"timestamp": NOON - 240},
        ),
    ]

    assert alerts({"messages": messages, "current_agent": "dev"}) == [("warning", "idle", "dev")]


def test_slow_turns_are_a_warning_and_two_warnings_make_degraded() -> None:
    slow = spoken(("pm", 2000), ("dev", 1300), ("pm", 680), ("dev", 10))

    assert alerts(slow) == [("warning", "cycle_time", "dev"), ("warning", "cycle_time", "pm")]
    assert health(slow).status == "degraded"


def test_too_many_turns_a_minute_are_churn() -> None:
    churning = spoken(*(("dev", 60 - i * 5) for i in range(12)))

    assert alerts(churning) == [("critical", "churn", "dev")]
    assert health(churning).status == "critical"


def test_percentiles_are_those_of_all_turns() -> None:
    state = spoken(*(("dev", ago) for ago in (6000, 5990, 5970, 5940, 5900)))

    assert health(state).metrics.cycle_time_percentiles == {"p50": 25, "p90": 37, "p95": 38.5}


def test_without_times_nothing_is_said() -> None:
    status = health({"messages": [says("dev", "My part is ready.")]})

    assert (status.status, status.summary) == ("healthy", "no times known")


REPORTED = {
    "status": "degraded",
    "summary": "dev is slow",
    "is_healthy": False,
    "metrics": {"agent_cycle_times": {"dev": 700.0}},
    "alerts": [{"severity": "warning", "alert_type": "cycle_time", "message": "slow", "affected_agent": "dev"}],
}


@pytest.mark.parametrize("given", [REPORTED, HealthStatus.from_dict(REPORTED)])
def test_the_states_own_health_is_read_as_dict_or_object(given: object) -> None:
    status = health(spoken(("dev", 10), health_status=given))

    assert (status.status, status.alerts[0].affected_agent) == ("degraded", "dev")
    assert status.metrics.agent_cycle_times == {"dev": 700.0}


@pytest.mark.parametrize("given", ["fine", {"status": 3}, {}, object(), {"status": "x", "alerts": 7}])
def test_without_a_valid_health_status_it_is_computed_from_the_messages(given: object) -> None:
    assert health(spoken(("dev", 10), health_status=given)).status == "healthy"


class State(MessagesState, ScrumMasterState):
    """The state of the graph."""


@pytest.mark.checkpoint
def test_a_step_with_a_gap_leaves_health_and_cycles_in_the_checkpoint() -> None:
    again = "I will rerun the migration of the orders table now."
    builder = StateGraph(State)
    builder.add_node("scrum_master", ScrumMaster(sources=[Given(a_context())], clock=lambda: NOON).node)
    builder.add_edge(START, "scrum_master")
    builder.add_edge("scrum_master", END)
    graph = builder.compile(checkpointer=InMemorySaver(serde=checkpoint_serde()))
    messages = [says("dev", again, id=f"m{i}", additional_kwargs={"timestamp": NOON - 40 + 10 * i}) for i in range(4)]

    start: Any = {"messages": messages}
    written = graph.invoke(start, {"configurable": {"thread_id": "t"}})["sm_output"]
    read = graph.get_state({"configurable": {"thread_id": "t"}}).values["sm_output"]

    assert read == written
    assert read.health_status.metrics.unproductive_churn_rate == 4
    (pattern,) = read.cycle_analysis.patterns_found
    assert (pattern.agents_involved, pattern.exchange_count, pattern.duration_seconds) == (("dev",), 4, 30)


@pytest.mark.parametrize(
    ("times", "severity", "strategy"),
    [
        (4, "low", "inject_context"),
        (5, "medium", "inject_context"),
        (8, "high", "break_cycle"),
        (12, "critical", "escalate_human"),
    ],
)
def test_a_cycle_is_the_more_severe_the_longer_it_goes_on(times: int, severity: str, strategy: str) -> None:
    again = "I will rerun the migration of the orders table now."
    observation = ScrumMaster(clock=lambda: NOON).observe({"messages": [says("dev", again)] * times})

    analysis = cycle_analysis(observation)

    assert (analysis.patterns_found[0].severity, analysis.intervention_strategy) == (severity, strategy)
    assert analysis.escalation_triggered == (severity == "critical")


def test_a_healthy_team_is_in_no_cycle() -> None:
    analysis = cycle_analysis(ScrumMaster(clock=lambda: NOON).observe(spoken(("pm", 60), ("dev", 30))))

    assert (analysis.circular_detected, analysis.patterns_found, analysis.intervention_strategy) == (False, (), "none")
    assert analysis.total_exchange_count == 1


def test_a_saved_state_is_judged_by_the_time_it_was_saved() -> None:
    builder = StateGraph(State)
    builder.add_node("dev", lambda _state: spoken(("pm", 90), ("dev", 60)))
    builder.add_edge(START, "dev")
    graph = builder.compile(checkpointer=InMemorySaver(serde=checkpoint_serde()))
    start: Any = {"messages": []}
    graph.invoke(start, {"configurable": {"thread_id": "t"}})
    saved = graph.get_state({"configurable": {"thread_id": "t"}})._replace(created_at="2026-03-02T12:00:00+00:00")

    status = health_status(ScrumMaster(clock=lambda: NOON + 1e6).observe(saved))

    assert status.metrics.agent_idle_times == {"pm": 90, "dev": 60}
