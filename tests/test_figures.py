"""Running figures in the state: an agent's usual outlives restarts, cut histories and branches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from builders import NOON, NOW, says
from langgraph_scrum_master import ScrumMaster, ScrumMasterState, checkpoint_serde, injection_update
from langgraph_scrum_master.team.observe import Watcher, observe
from langgraph_scrum_master.team.observe.pace import FIGURES_SAVED_EVERY
from langgraph_scrum_master.team.state import newest_figures


def at_work(*seconds: float) -> list[BaseMessage]:
    """Turns of one agent that took so long each."""
    at = NOON
    messages: list[BaseMessage] = []
    for i, took in enumerate((0.0, *seconds)):
        at += took
        messages.append(says("dev", f"Part {i} is ready.", id=f"m{i}", additional_kwargs={"timestamp": at}))
    return messages


def slow_turns(master: ScrumMaster, state: dict[str, Any]) -> list[str]:
    """Who took far longer than usual for the newest turn."""
    return [pace.agent for pace in master.observe(state).paces if pace.seconds > pace.limit]


def watched(messages: list[BaseMessage], trim: int = 1000) -> dict[str, Any]:
    """The state after a scrum master has seen every step of this, with only the last messages kept."""
    state: dict[str, Any] = {}
    for end in range(1, len(messages) + 1):
        state["messages"] = messages[:end][-trim:]
        state |= injection_update(None, state)
    return state


USUAL = at_work(*[20.0] * 40)
SLOW = at_work(*[20.0] * 40, 200.0)


def test_an_agents_usual_is_known_after_a_restart_with_a_trimmed_history() -> None:
    state = watched(USUAL, trim=4)
    state["messages"] = SLOW[-2:]

    assert slow_turns(ScrumMaster(), state) == ["dev"]
    assert slow_turns(ScrumMaster(), {"messages": SLOW[-2:]}) == []


def test_an_agents_usual_is_known_after_a_summary_took_the_place_of_the_history() -> None:
    summary = says("dev", "Summary of what was said.", id="s", additional_kwargs={"lc_source": "summarization"})
    state = watched(USUAL)
    state["messages"] = [summary, *SLOW[-2:]]

    assert slow_turns(ScrumMaster(), state) == ["dev"]


def test_the_sample_in_question_is_never_part_of_the_usual() -> None:
    state = watched(SLOW)

    assert slow_turns(ScrumMaster(), state) == ["dev"]
    assert slow_turns(ScrumMaster(), state) == ["dev"]


@given(st.lists(st.floats(0.01, 500), max_size=60), st.integers(3, 60))
def test_reading_on_from_the_figures_gives_what_watching_all_along_gives(seconds: list[float], trim: int) -> None:
    watcher, state = Watcher(), {}
    messages = at_work(*seconds)
    for end in range(1, len(messages) + 1):
        observed = observe({"messages": messages[:end]}, now=NOW, watcher=watcher)
        state["messages"] = messages[:end][-trim:]
        state |= injection_update(None, state)

        resumed = observe(state, now=NOW)

        assert resumed.paces == observed.paces
        assert resumed.cycle_times == observed.cycle_times


def test_the_figures_are_written_now_and_then_and_not_at_every_step() -> None:
    state: dict[str, Any] = {}
    writes = 0
    for end in range(1, 200):
        state["messages"] = at_work(*[20.0] * end)
        update = injection_update(None, state)
        writes += "team_figures" in update
        state |= update

    assert 200 / FIGURES_SAVED_EVERY <= writes <= 200 / FIGURES_SAVED_EVERY + 8


def test_messages_without_times_leave_no_figures() -> None:
    assert injection_update(None, {"messages": [says("dev", f"Part {i} is ready.") for i in range(40)]}) == {}


class State(MessagesState, ScrumMasterState):
    """The state of the graph."""


@pytest.mark.checkpoint
def test_a_branch_goes_on_with_the_figures_of_its_checkpoint() -> None:
    builder = StateGraph(State)
    builder.add_node("scrum_master", ScrumMaster().node)
    builder.add_edge(START, "scrum_master")
    builder.add_edge("scrum_master", END)
    graph = builder.compile(checkpointer=InMemorySaver(serde=checkpoint_serde()))
    thread: Any = {"configurable": {"thread_id": "t"}}
    for message in USUAL:
        step: Any = {"messages": [message]}
        graph.invoke(step, thread)
    early = next(s for s in graph.get_state_history(thread) if len(s.values["messages"]) == 20 and not s.next)

    assert early.values["team_figures"]["until"] < graph.get_state(thread).values["team_figures"]["until"]
    branch = graph.update_state(early.config, {"messages": [SLOW[-1]]})
    assert graph.get_state(branch).values["team_figures"] == early.values["team_figures"]


def test_the_figures_that_reach_further_win_in_any_order() -> None:
    old, new = {"until": NOON, "cycle_times": {}}, {"until": NOON + 20, "cycle_times": {"dev": [1.0]}}

    assert (
        newest_figures(old, new) == newest_figures(new, old) == newest_figures(None, new) == newest_figures(new, None)
    )


@pytest.mark.parametrize(
    "figures",
    [
        "odd",
        3,
        {"until": "x"},
        {"until": 10**400},
        {"until": None, "cycle_times": 7},
        {"cycle_times": {"dev": ["x", -1, 1e99, None]}},
    ],
)
def test_odd_figures_do_no_harm(figures: object) -> None:
    assert ScrumMaster().detect({"messages": USUAL, "team_figures": figures}) == ()


def test_messages_without_times_have_those_of_their_checkpoints() -> None:
    def dev(state: State) -> dict[str, Any]:
        return {"messages": [says("dev", f"Part {len(state['messages'])} is ready.")]}

    builder = StateGraph(State)
    builder.add_node("dev", dev)
    builder.add_edge(START, "dev")
    builder.add_conditional_edges("dev", lambda state: "dev" if len(state["messages"]) < 9 else END, ["dev", END])
    graph = builder.compile(checkpointer=InMemorySaver(serde=checkpoint_serde()))
    thread: Any = {"configurable": {"thread_id": "t"}}
    start: Any = {"messages": []}
    graph.invoke(start, thread)
    saved = [s for s in reversed(list(graph.get_state_history(thread))) if s.values.get("messages")]
    minutes = [f"2026-03-02T12:{minute:02}:00+00:00" for minute in (1, 2, 3, 4, 5, 6, 7, 8, 38)]
    master = ScrumMaster()

    found = [slow_turns(master, s._replace(created_at=at)) for s, at in zip(saved, minutes, strict=True)]

    assert found == [[]] * 8 + [["dev"]]


def with_times(*times: float | None) -> dict[str, Any]:
    return {
        "messages": [
            says("dev", f"Part {i} is ready.", id=f"m{i}", additional_kwargs={"timestamp": at} if at else {})
            for i, at in enumerate(times)
        ]
    }


def test_agents_at_work_at_the_same_time_do_not_slow_each_other_down() -> None:
    steady = [NOON + 20 * i for i in range(12)]
    at = steady[-1]

    assert slow_turns(ScrumMaster(), with_times(*steady, at + 30, at + 9, at + 35)) == []


@pytest.mark.parametrize("wrong", [400 * 86_400.0, 90_000.0])
def test_a_clock_that_was_wrong_for_a_while_does_no_harm(wrong: float) -> None:
    steady = [NOON + 20 * i for i in range(12)]
    later = [steady[-1] + 20 * i for i in range(1, 12)]
    during = [later[-1] + wrong + 20 * i for i in range(1, 12)]
    after = [later[-1] + 20 * i for i in range(1, 12)]
    history = with_times(*steady, *later, *during, *after)["messages"]
    state = watched(history)

    assert slow_turns(ScrumMaster(), state) == []
    state["messages"] = [*history, with_times(after[-1] + 4000)["messages"][0]]
    assert slow_turns(ScrumMaster(), state) == ["dev"]


def test_the_time_that_tools_take_is_the_agents_that_called_them() -> None:
    def turn(i: int, at: float) -> list[BaseMessage]:
        call = {"name": "read_file", "args": {"path": f"{i}.py"}, "id": f"c{i}"}
        return [
            says("dev", "", id=f"m{i}", tool_calls=[call], additional_kwargs={"timestamp": at}),
            ToolMessage("…", tool_call_id=f"c{i}", name="read_file"),
        ]

    times = [NOON + 5 * i for i in range(20)]
    usual = [message for i, at in enumerate(times) for message in turn(i, at)]

    assert slow_turns(ScrumMaster(), {"messages": usual}) == []
    assert slow_turns(ScrumMaster(), {"messages": [*usual, *turn(20, times[-1] + 300)]}) == ["dev"]
