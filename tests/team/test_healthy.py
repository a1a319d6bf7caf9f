"""On a healthy team the scrum master is silent, whatever framework the team is built with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

from builders import a_state, calls, says
from langgraph_scrum_master import ScrumMaster, ScrumMasterState
from langgraph_scrum_master.testing import ScriptedChatModel

PIPELINE = (
    ("user", "Add a login page."),
    ("analyst", "The requirement is a form with an email address, a password, and a link to reset it."),
    ("pm", "I split it into two stories: the form, and the reset by mail. The form comes first."),
    ("architect", "The form posts to the session service, which answers with a signed token of 15 minutes."),
    ("dev", "I implemented the form and the call of the session service, with unit tests."),
    ("tea", "All 14 tests pass, the coverage is 91 %. The gate is open."),
)


def test_a_five_step_pipeline_gives_no_gap_at_any_step() -> None:
    for length in range(1, len(PIPELINE) + 1):
        assert ScrumMaster().detect(a_state(*PIPELINE[:length])) == ()


def test_three_rounds_of_the_same_pipeline_on_new_stories_give_no_gap() -> None:
    rounds = [
        (who, text.replace("login", page).replace("14", str(14 + i)).replace("form", f"{page} form"))
        for i, page in enumerate(("login", "profile", "billing"))
        for who, text in PIPELINE
    ]

    for length in range(1, len(rounds) + 1):
        assert ScrumMaster().detect(a_state(*rounds[:length])) == ()


def test_a_healthy_pipeline_as_a_graph_is_left_alone() -> None:
    class State(MessagesState, ScrumMasterState):
        pass

    builder = StateGraph(State)
    before = START
    master = ScrumMaster()
    for who, text in PIPELINE[1:]:
        builder.add_node(who, lambda state, who=who, text=text: {"messages": [says(who, text)]})
        builder.add_node(f"sm_after_{who}", master.node)
        builder.add_edge(before, who)
        builder.add_edge(who, f"sm_after_{who}")
        before = f"sm_after_{who}"

    updates = list(builder.compile().stream({"messages": [HumanMessage("Add a login page.")]}, stream_mode="updates"))

    assert [update for update in updates for node in update if node.startswith("sm_") and update[node]] == []


def worker(name: str, *answers: str) -> Any:
    said = iter(answers)
    return create_agent(ScriptedChatModel(script=lambda _: next(said)), tools=[], name=name)


def every_step(history: list[BaseMessage]) -> list[tuple[int, str]]:
    """The alarms at each length of the history."""
    return [
        (length, gap.reason)
        for length in range(1, len(history) + 1)
        for gap in ScrumMaster().detect({"messages": history[:length]})
    ]


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
def test_a_supervisor_that_sends_work_to_and_fro_gives_no_gap() -> None:
    plan = iter(
        [
            calls("transfer_to_researcher"),
            calls("transfer_to_coder"),
            calls("transfer_to_researcher"),
            calls("transfer_to_coder"),
            AIMessage("The parser reads both formats now, with tests for each."),
        ]
    )
    team = create_supervisor(
        [
            worker(
                "researcher",
                "The log has two formats: JSON lines and plain text.",
                "The plain format has a date first.",
            ),
            worker("coder", "The JSON reader is written and tested.", "The plain reader is written and tested."),
        ],
        model=ScriptedChatModel(script=lambda _: next(plan)),
        output_mode="full_history",
    ).compile()

    end = team.invoke({"messages": [HumanMessage("Write a parser for our log.")]})

    assert len(end["messages"]) > 12
    assert every_step(end["messages"]) == []


def test_a_swarm_that_hands_over_and_back_gives_no_gap() -> None:
    alice: Iterator[str | AIMessage] = iter(
        [calls("transfer_to_bob"), "The invoice is written: 300 euros for three days."]
    )
    bob: Iterator[str | AIMessage] = iter(["The customer ordered three days at 100 euros.", calls("transfer_to_alice")])
    swarm = create_swarm(
        [
            create_agent(
                ScriptedChatModel(script=lambda _: next(alice)),
                tools=[create_handoff_tool(agent_name="bob")],
                name="alice",
            ),
            create_agent(
                ScriptedChatModel(script=lambda _: next(bob)),
                tools=[create_handoff_tool(agent_name="alice")],
                name="bob",
            ),
        ],
        default_active_agent="alice",
    ).compile()

    end = swarm.invoke({"messages": [HumanMessage("Write the invoice.")]})
    assert every_step(end["messages"]) == []


@pytest.mark.parametrize("length", [10, 100, 1000])
def test_long_productive_work_gives_no_gap(length: int) -> None:
    state = a_state(
        *[("dev" if i % 2 else "tester", f"Module {i} is done, {i * 3} tests pass.") for i in range(length)]
    )

    assert ScrumMaster().detect(state) == ()
