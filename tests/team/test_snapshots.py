"""Snapshots on disk: written by a running scrum master, and read back from this and from other shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, HumanMessage, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

from builders import QUESTION, Given, a_context, a_result, a_state, says
from langgraph_scrum_master import ConfigError, InjectionConfig, ScrumMaster, ScrumMasterState
from langgraph_scrum_master.messages import read_turns
from langgraph_scrum_master.model import Snapshot
from langgraph_scrum_master.team import SnapshotRecorder
from langgraph_scrum_master.team.record.files import UPGRADES, Placed, snapshots_in, write_snapshots
from langgraph_scrum_master.team.record.snapshots import SNAPSHOT_SCHEMA, dumped, plain, state_slice
from langgraph_scrum_master.team.state import HOST_KEYS

STORED = Path(__file__).parents[1] / "snapshots"
DOCS = Path(__file__).parents[2] / "docs"


def only(path: Path) -> Snapshot:
    (placed,) = snapshots_in(path)
    assert placed.snapshot is not None, placed.problem
    return placed.snapshot


def recorded(folder: Path) -> list[Snapshot]:
    return [only(path) for path in sorted(folder.iterdir())]


class State(MessagesState, ScrumMasterState):
    handoff_context: Any
    secret: str


def test_a_node_writes_what_it_saw_and_what_came_of_it(tmp_path: Path) -> None:
    builder = StateGraph(State)
    builder.add_node("dev", lambda state: {"messages": [says("dev", QUESTION, id="q")], "secret": "hunter2"})
    master = ScrumMaster(sources=[Given(a_context())], snapshots=tmp_path / "kept", clock=lambda: 0.0)
    builder.add_node(master.node)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")
    graph: Any = builder.compile(checkpointer=InMemorySaver())

    end = graph.invoke({"messages": [HumanMessage("Build it.", id="h")]}, {"configurable": {"thread_id": "t-7"}})

    (kept,) = recorded(tmp_path / "kept")
    assert (kept.thread, kept.at, kept.ran, kept.sources) == (
        "t-7",
        "1970-01-01T00:00:00+00:00",
        True,
        ("state", "given"),
    )
    assert [message["id"] for message in kept.state["messages"]] == ["h", "q"]
    assert kept.config == master.pipeline.config.to_dict()
    assert kept.result is not None
    assert kept.result.slim() == end["injection_result"]
    assert "secret" not in kept.state


def test_the_environment_names_the_folder(tmp_path: Path) -> None:
    ScrumMaster.from_env({"SCRUM_MASTER_SNAPSHOTS": str(tmp_path)}).evaluate(a_state(("dev", QUESTION)))

    assert [snapshot.result.gap.agent for snapshot in recorded(tmp_path) if snapshot.result] == ["dev"]


def test_silent_steps_write_nothing(tmp_path: Path) -> None:
    ScrumMaster(snapshots=tmp_path / "kept").evaluate(a_state(("dev", "Done.")))

    assert not (tmp_path / "kept").exists()


def test_a_folder_keeps_only_the_newest(tmp_path: Path) -> None:
    record = SnapshotRecorder(tmp_path, most=3)
    (tmp_path / "mine.json").write_text("{}")

    for second in range(5):
        record(Snapshot(state={}, at=f"2026-03-02T12:00:0{second}+00:00", result=a_result()))

    left = sorted(tmp_path.glob("*.snapshot.json"))
    assert [only(path).at[17:19] for path in left] == ["02", "03", "04"]
    assert (tmp_path / "mine.json").exists()


def test_a_bound_below_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="most must be a whole number of snapshots, 1 or more, got 0"):
        SnapshotRecorder(tmp_path, most=0)


def test_a_disk_that_fails_costs_the_agent_nothing(tmp_path: Path, logged: list[dict[str, Any]]) -> None:
    (tmp_path / "file").write_text("")

    result = ScrumMaster(sources=[Given(a_context())], snapshots=tmp_path / "file" / "x").evaluate(
        a_state(("dev", QUESTION))
    )

    assert result is not None
    assert result.injected
    assert "recorder.failed" in [entry["event"] for entry in logged]


def test_what_a_handoff_or_the_settings_name_is_kept_too(tmp_path: Path) -> None:
    config = InjectionConfig(requirements={"dev": ("schema",)})
    recorder = SnapshotRecorder(tmp_path, keys=("runbook",))
    state = a_state(
        ("dev", QUESTION),
        handoff_context={"target_agent": "dev", "relevant_state_keys": ["api"]},
        schema="s",
        api="a",
        runbook="r",
        other="o",
    )

    ScrumMaster(sources=[Given(a_context())], config=config, snapshots=recorder).evaluate(state)

    (kept,) = recorded(tmp_path)
    assert {"schema", "api", "runbook"} <= kept.state.keys()
    assert "other" not in kept.state


@dataclass
class Handoff:
    source_agent: str
    parts: tuple[str, ...]


class Plan(BaseModel):
    sprint_id: str


class Loose:
    def __init__(self) -> None:
        self.agent = "architect"
        self._hidden = 1


def test_objects_of_a_hosts_become_plain_and_read_as_before() -> None:
    values = a_state(("user", "Build."), ("dev", QUESTION), handoff_context=Handoff("pm", ("a", "b")))
    values |= {"sprint_plan": Plan(sprint_id="S1"), "decisions": [Loose()]}
    values["messages"] += [
        ("assistant", "As a pair."),
        AIMessage("", tool_calls=[{"name": "t", "args": {}, "id": "c"}]),
    ]

    kept = state_slice(values)

    assert json.loads(json.dumps(kept)) == kept
    assert kept["handoff_context"] == {"source_agent": "pm", "parts": ["a", "b"]}
    assert (kept["sprint_plan"], kept["decisions"]) == ({"sprint_id": "S1"}, [{"agent": "architect"}])
    assert read_turns(kept["messages"]) == read_turns(values["messages"])


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner) | st.sets(st.text()),
    max_leaves=8,
)


@given(anything)
def test_whatever_a_state_holds_a_snapshot_of_it_reads_back_equal(value: Any) -> None:
    snapshot = Snapshot(state=state_slice({"decisions": value, "messages": [value]}), at="now")

    data = json.loads(dumped(snapshot).encode(errors="backslashreplace"))

    assert data.pop("schema") == SNAPSHOT_SCHEMA
    assert Snapshot.from_dict(data) == snapshot
    assert plain(snapshot.state) == snapshot.state


def test_the_keys_that_are_read_are_those_of_the_reference() -> None:
    page = (DOCS / "reference.md").read_text(encoding="utf-8")

    assert [key for key in HOST_KEYS if f"`{key}`" not in page] == []


def test_the_first_version_is_brought_up_to_this_one() -> None:
    old, bare = only(STORED / "version-1.json"), only(STORED / "version-1-bare.json")

    assert (old.at, old.ran, old.origin) == ("2026-03-02T12:00:00+00:00", True, "state")
    assert old.result is not None
    assert old.result.gap.agent == "dev"
    assert (bare.at, bare.ran, bare.result) == ("", False, None)
    assert bare.state == old.state
    assert set(UPGRADES) == set(range(1, SNAPSHOT_SCHEMA))


def test_a_time_that_is_none_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"schema": 1, "state": {}, "now": 1e300}')

    assert only(tmp_path / "x.json").at == ""


def test_snapshots_are_written_and_read_as_json_and_as_lines(tmp_path: Path) -> None:
    snapshots = [Snapshot(state={"messages": [{"role": "user", "content": f"Größe \u2028 {i}"}]}) for i in range(3)]

    write_snapshots(tmp_path / "one.json", snapshots[:1])
    write_snapshots(tmp_path / "all.jsonl", snapshots)

    assert only(tmp_path / "one.json") == snapshots[0]
    assert list(snapshots_in(tmp_path / "all.jsonl")) == [
        Placed(f"all.jsonl:{i}", each) for i, each in enumerate(snapshots, 1)
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "'x.json' is not JSON"),
        ("7", "'x.json' must hold a snapshot, a state (with `messages` or"),
        ("[1, 2]", "must hold a snapshot"),
        ("{}", "must hold a snapshot"),
        ('{"schema": 9, "state": {}}', "has schema 9, this version reads 1 to 2: install a newer one"),
        ('{"schema": "2", "state": {}}', "has schema '2', it must be a whole number from 1 to 2"),
        ('{"schema": 2, "state": 7}', "'x.json': not a Snapshot: state:"),
        ('{"schema": 1, "gap": {}}', "has no 'state': it is an audit log"),
    ],
)
def test_what_is_no_snapshot_is_told(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "x.json").write_text(content)

    (placed,) = snapshots_in(tmp_path / "x.json")

    assert placed.snapshot is None
    assert told in placed.problem


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    whole = dumped(Snapshot(state={}))
    (tmp_path / "x.jsonl").write_text(whole + whole[:20] + "\n" + whole)

    first, last, torn = sorted(snapshots_in(tmp_path / "x.jsonl"), key=lambda each: bool(each.problem))

    assert (first.where, last.where, torn.where) == ("x.jsonl:1", "x.jsonl:3", "x.jsonl:2")
    assert "is not JSON" in torn.problem


def _lines(path: Path, rows: list[Any]) -> list[Snapshot]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [placed.snapshot for placed in snapshots_in(path) if placed.snapshot is not None]


def test_a_state_a_line_is_a_step_each(tmp_path: Path) -> None:
    said = [{"role": "assistant", "name": "dev", "content": text} for text in ("One.", "Two.", "Three.")]
    states = [{"messages": said[:end], "tickets": [end]} for end in (1, 2, 3)]

    found = _lines(tmp_path / "x.jsonl", states)

    assert [(each.step, each.state, each.origin) for each in found] == [
        (step, state, "checkpoint") for step, state in enumerate(states, 1)
    ]


def test_states_that_do_not_go_on_from_each_other_are_no_run(tmp_path: Path) -> None:
    cases = [{"messages": [{"role": "user", "content": text}]} for text in ("One.", "Two.")]

    assert [each.origin for each in _lines(tmp_path / "x.jsonl", cases)] == ["state", "state"]


def test_a_single_line_may_be_a_message_or_a_conversation(tmp_path: Path) -> None:
    message = {"role": "assistant", "name": "dev", "content": "Which queue?"}

    assert len(_lines(tmp_path / "x.jsonl", [message])) == 1
    assert len(_lines(tmp_path / "x.jsonl", [{"messages": [message, message]}])) == 2


SAID = [("user", "Build it."), ("dev", "Which queue do refunds go to?"), ("architect", "To refunds-v2.")]
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "queue"}'}}

EXPORTS: Mapping[str, Any] = {
    "LangChain": messages_to_dict([HumanMessage(SAID[0][1]), *(AIMessage(text, name=who) for who, text in SAID[1:])]),
    "OpenAI chat": {
        "model": "some-model",
        "messages": [
            {"role": "user", "content": SAID[0][1]},
            *({"role": "assistant", "name": who, "content": text} for who, text in SAID[1:]),
        ],
    },
    "AutoGen": [{"source": who, "content": text, "type": "TextMessage"} for who, text in SAID],
    "AG2": {"chat_history": [{"name": who, "role": "user", "content": text} for who, text in SAID]},
    "CrewAI": {"tasks_output": [{"agent": who, "raw": text, "description": "…"} for who, text in SAID[1:]]},
    "pairs": [["user", SAID[0][1]]],
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS.keys())
def test_messages_of_other_frameworks_grow_step_by_step(tmp_path: Path, export: Any) -> None:
    (tmp_path / "x.json").write_text(json.dumps(export))

    steps = [placed.snapshot for placed in snapshots_in(tmp_path / "x.json")]

    lengths = [len(step.state["messages"]) for step in steps if step is not None]
    assert lengths == list(range(1, len(steps) + 1))
    assert steps[-1] is not None
    turns = [(turn.agent, turn.text) for turn in read_turns(steps[-1].state["messages"])]
    assert turns == [said for said in SAID if said in turns]
    assert len(turns) == len(steps)


@pytest.mark.parametrize(
    "calls",
    [
        [{"role": "assistant", "content": None, "tool_calls": [CALL]}],
        [{"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "queue"}'}],
        [
            {
                "type": "ToolCallRequestEvent",
                "source": "dev",
                "content": [{"id": "c1", "name": "search", "arguments": '{"q": "queue"}'}],
            }
        ],
    ],
    ids=["OpenAI chat", "OpenAI responses", "AutoGen"],
)
def test_tool_calls_are_read(tmp_path: Path, calls: list[Any]) -> None:
    (tmp_path / "x.json").write_text(json.dumps(calls))

    ((turn,),) = [read_turns(p.snapshot.state["messages"]) for p in snapshots_in(tmp_path / "x.json") if p.snapshot]

    (call,) = turn.tool_calls
    assert (call.name, call.arguments, call.id) == ("search", '{"q": "queue"}', "c1")


def test_a_threads_history_from_langgraphs_server_is_read_oldest_first(tmp_path: Path) -> None:
    states = [
        {
            "values": {"messages": [{"type": "ai", "content": str(step)}]},
            "created_at": f"2026-03-02T12:00:0{step}+00:00",
            "metadata": {"step": step},
            "checkpoint": {"thread_id": "t"},
        }
        for step in (2, 1, 0)
    ]
    (tmp_path / "history.json").write_text(json.dumps(states))

    found = [placed.snapshot for placed in snapshots_in(tmp_path / "history.json")]

    assert [(s.step, s.thread, s.origin) for s in found if s] == [(i, "t", "checkpoint") for i in range(3)]
