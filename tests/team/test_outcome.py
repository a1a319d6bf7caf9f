"""After an injection the agent's next turns show what became of it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from typer.testing import CliRunner

from builders import Given, a_context, a_state
from langgraph_scrum_master import ScrumMaster, ScrumMasterState
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.model import InjectionRecord
from langgraph_scrum_master.replay import replay
from langgraph_scrum_master.replay.report import report
from langgraph_scrum_master.team import JsonlRecorder
from langgraph_scrum_master.team.state import merge_records

DECISION = "We keep idempotency keys of payment requests in Redis, each for 24 hours."
ASKS = ("dev", "Which store do we use?")


def master(**options: Any) -> ScrumMaster:
    return ScrumMaster(sources=[Given(a_context(DECISION))], clock=lambda: 1_760_000_000.0, **options)


def after(*said: str, **options: Any) -> InjectionRecord:
    """The record of an injection, after the agent has said these."""
    scrum_master, state = master(**options), a_state(ASKS)
    state |= scrum_master.node.invoke(state)
    for i, text in enumerate(said):
        state["messages"] = [*state["messages"], AIMessage(text, name="dev", id=f"later-{i}")]
        state |= scrum_master.node.invoke(state)
    first: InjectionRecord = state["injection_history"][0]
    return first


def test_at_first_it_is_open() -> None:
    record = after()

    assert record.outcome == "open"
    assert record.tokens > 0


@pytest.mark.parametrize(
    "said",
    [
        "It is Redis then.",
        "Keys expire after 24 hours, noted.",
        "I set the idempotency middleware to answer repeated payment requests.",
    ],
)
def test_an_agent_that_takes_up_what_only_the_text_said_has_used_it(said: str) -> None:
    assert after(said).outcome == "used"


def test_what_was_known_before_proves_nothing() -> None:
    state = a_state(("ops", "Redis keeps keys for 24 hours."), ASKS)
    scrum_master = master()
    state |= scrum_master.node.invoke(state)
    state["messages"] = [*state["messages"], AIMessage("Redis, 24 hours, as ops said.", name="dev", id="x")]

    state |= scrum_master.node.invoke(state)

    assert state["injection_history"][0].outcome == "open"


def test_an_agent_that_goes_on_without_it_has_ignored_it() -> None:
    assert after("I take the lint findings meanwhile.").outcome == "open"
    assert after("I take the lint findings meanwhile.", "They are done.").outcome == "ignored"


def test_the_same_need_in_a_later_turn_is_asking_again() -> None:
    assert after("Which store do we use?").outcome == "asked_again"


def test_a_tool_call_with_what_the_text_said_uses_it() -> None:
    scrum_master, state = master(), a_state(ASKS)
    state |= scrum_master.node.invoke(state)
    call = {"name": "configure", "args": {"store": "redis", "ttl": "24 hours"}, "id": "c1"}
    state["messages"] = [*state["messages"], AIMessage("", name="dev", id="c", tool_calls=[call])]

    state |= scrum_master.node.invoke(state)

    assert state["injection_history"][0].outcome == "used"


async def test_it_is_logged_counted_and_written_to_the_audit_log(tmp_path: Path, logged: list[dict[str, Any]]) -> None:
    log = tmp_path / "audit.jsonl"
    scrum_master, state = master(recorder=JsonlRecorder(log)), a_state(ASKS)
    state |= await scrum_master.node.ainvoke(state)
    state["messages"] = [*state["messages"], AIMessage("It is Redis then.", name="dev", id="x")]

    state |= await scrum_master.node.ainvoke(state)
    state |= await scrum_master.node.ainvoke(state)

    result, outcome = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert result["injected"]
    assert outcome["outcome_of"]["outcome"] == "used"
    assert "redis" not in json.dumps(outcome).lower(), "an audit line of an outcome holds no text"
    assert [entry["event"] for entry in logged] == ["context.injected", "injection.used"]


def test_a_recorder_that_fails_costs_nothing(logged: list[dict[str, Any]]) -> None:
    class Broken:
        def __call__(self, result: Any) -> None: ...

        def record_outcome(self, record: InjectionRecord) -> None:
            raise OSError("full")

    assert after("It is Redis then.", recorder=Broken()).outcome == "used"
    assert "recorder.failed" in [entry["event"] for entry in logged]


def test_whatever_order_branches_end_in_the_outcome_that_tells_most_stays() -> None:
    said = [
        InjectionRecord(
            gap_id=f"g{i % 3}", need="n", agent="a", reason="explicit_flag", status="injected", at="", outcome=o
        )
        for i, o in enumerate(("open", "used", "ignored", "asked_again", "open", "used"))
    ]
    ends = set()
    for seed in range(20):
        shuffled = random.Random(seed).sample(said, len(said))
        history: list[InjectionRecord] = []
        for record in shuffled:
            history = merge_records(history, [record])
        ends.add(tuple(sorted((record.gap_id, record.outcome) for record in history)))

    assert ends == {(("g0", "asked_again"), ("g1", "used"), ("g2", "used"))}


class State(MessagesState, ScrumMasterState):
    pass


def run_of(path: Path, *, recorder: JsonlRecorder | None = None, snapshots: Path | None = None) -> None:
    """A graph with a real database: one agent uses what it is given, another asks again."""
    script = {
        "dev": ["Which store do we use?", "It is Redis then."],
        "ops": ["Which region do we deploy to?", "Which region do we deploy to?"],
    }

    def agent(name: str) -> Any:
        def speak(state: State) -> dict[str, Any]:
            own = sum(message.name == name for message in state["messages"])
            return {"messages": [AIMessage(script[name][min(own, 1)], name=name)]}

        return speak

    scrum_master = ScrumMaster(
        sources=[Given(a_context(DECISION))], recorder=recorder, snapshots=str(snapshots) if snapshots else None
    )
    builder = StateGraph(State)
    for name in script:
        builder.add_node(name, agent(name))
        builder.add_edge(name, "scrum_master")
    builder.add_node(scrum_master.node)
    builder.add_edge(START, "dev")
    turn = ["ops", "dev", "ops", END]
    builder.add_conditional_edges("scrum_master", lambda state: turn[len(state["messages"]) - 1], turn)
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder.compile(checkpointer=saver).invoke({"messages": []}, {"configurable": {"thread_id": "42"}})


def test_a_report_sums_up_a_database_an_audit_log_and_snapshots(tmp_path: Path) -> None:
    database, log, snapshots = tmp_path / "run.sqlite", tmp_path / "audit.jsonl", tmp_path / "snapshots"
    run_of(database, recorder=JsonlRecorder(log), snapshots=snapshots)

    for source in (database, log):
        found = report(str(source))
        rows = {row.agent: row for row in found.rows}
        assert rows["dev"].used == 1, source
        assert rows["ops"].asked_again == 1, source
        assert found.total.served >= 2
        assert found.total.tokens > 0
        assert found.total.gaps == sum(row.gaps for row in found.rows)
    assert report(str(snapshots)).total.served >= 2


def test_the_command_prints_a_table_or_json(tmp_path: Path) -> None:
    database = tmp_path / "run.sqlite"
    run_of(database)

    shown = CliRunner().invoke(app, ["report", str(database)])
    as_json = CliRunner().invoke(app, ["report", str(database), "--json"])

    assert shown.exit_code == 0, shown.output
    assert "asked again" in shown.output
    assert json.loads(as_json.stdout)["total"]["used"] == 1


def test_what_cannot_be_reported_on_is_said(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["report", str(tmp_path / "nowhere.jsonl")])

    assert found.exit_code != 0
    (tmp_path / "empty.jsonl").write_text("")
    assert "No gap" in CliRunner().invoke(app, ["report", str(tmp_path / "empty.jsonl")]).output


def test_a_replay_tells_what_became_of_what_was_injected_then(tmp_path: Path) -> None:
    database = tmp_path / "run.sqlite"
    run_of(database)

    steps = replay(str(database), thread="42").steps

    assert {
        (step.recorded.gap.agent, step.injection_outcome) for step in steps if step.recorded and step.injection_outcome
    } >= {("dev", "used")}


def test_the_history_holds_no_text_of_what_was_injected() -> None:
    assert "redis" not in json.dumps(after().to_dict()).lower()


@pytest.mark.parametrize("content", ["hello", '{"a": 1}', "\x00\x01"])
def test_a_file_that_tells_nothing_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text(content)

    assert CliRunner().invoke(app, ["report", str(path)]).exit_code != 0


def test_an_audit_log_tells_no_threads_apart(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    run_of(tmp_path / "run.sqlite", recorder=JsonlRecorder(log))

    assert CliRunner().invoke(app, ["report", str(log), "--thread", "42"]).exit_code != 0
    assert report(str(log)).threads == 0
