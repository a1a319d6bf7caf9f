"""Replays of saved states from files, folders and databases, which are only read."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.types import Overwrite
from typer.testing import CliRunner, Result
from typing_extensions import TypedDict

from builders import DECISION, QUESTION, Given, a_context, a_state, says
from langgraph_scrum_master import (
    ChromaMemory,
    ConfigError,
    Decision,
    InjectionConfig,
    ScrumMaster,
    ScrumMasterMiddleware,
    checkpoint_serde,
)
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.errors import DecodeError, NotFoundError
from langgraph_scrum_master.model import Snapshot
from langgraph_scrum_master.replay import Replay, against_recorded, areplay, difference, replay
from langgraph_scrum_master.replay.databases import open_database
from langgraph_scrum_master.replay.deltas import join_writes
from langgraph_scrum_master.replay.loading import MOST_THREADS
from langgraph_scrum_master.replay.threads import threads
from langgraph_scrum_master.team.observe import observe
from langgraph_scrum_master.team.record.files import snapshots_in, write_snapshots
from langgraph_scrum_master.team.record.snapshots import taken
from langgraph_scrum_master.testing import FixedClock, ScriptedChatModel
from resumed import build

pytestmark = pytest.mark.checkpoint

STORED = Path(__file__).parents[1] / "snapshots"
REFUNDS = "Refunds go to the queue refunds-v2."
ASKS = "Which queue do refunds go to?"
STUCK = a_state(("user", "Build the refunds."), ("dev", ASKS), decisions=[{"summary": REFUNDS, "id": "D-1"}])


def hashes(folder: Path) -> dict[str, str]:
    """What is in the files, but for SQLite's index of its log, in which readers sign in."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith("-shm"))
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def printed(*arguments: str) -> Any:
    done = run(*arguments, "--format", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def a_snapshot(**fields: Any) -> Snapshot:
    return replace(taken(STUCK, at="2026-03-02T12:00:00+00:00", ran=False), **fields)


def test_a_snapshot_shows_the_gap_all_that_was_considered_and_the_text() -> None:
    (step,) = replay([a_snapshot()]).steps

    assert (step.outcome, step.speaker, step.said) == ("injected", "dev", ASKS)
    (gap,) = step.gaps
    assert gap.agent == "dev"
    assert re.fullmatch(r"asks \(model 0\.\d\d\)@m1", gap.indicators[0])
    assert step.queries == (ASKS,)
    assert [(each.context.content, each.fate) for each in step.considered] == [(REFUNDS, "kept")]
    assert step.result is not None
    assert REFUNDS in step.result.text
    assert step.budget is not None
    assert (step.budget.items, step.budget.max_items) == (1, 5)
    assert (step.budget.tokens, step.budget.size) == (step.result.total_tokens, len(step.result.text.encode()))


def test_a_dropped_context_keeps_its_text_and_the_reason() -> None:
    given = Given(
        a_context(), a_context(DECISION + " ", 0.85), a_context("Weak.", 0.1), a_context("Another fact.", 0.8)
    )

    (step,) = replay(
        [taken(a_state(("dev", QUESTION)), at="")],
        scrum_master=ScrumMaster(sources=[given], config=InjectionConfig(max_context_items=1)),
    ).steps

    assert {each.context.content: each.fate for each in step.considered} == {
        DECISION: "kept",
        DECISION + " ": "duplicate",
        "Weak.": "below_bar",
        "Another fact.": "over_items",
    }


def test_a_recorded_result_is_reproduced(tmp_path: Path) -> None:
    master = ScrumMaster(snapshots=tmp_path, clock=FixedClock())
    live = master.evaluate(STUCK)

    again = replay(tmp_path)

    assert again.steps[0].result == live
    assert not against_recorded(again)
    assert against_recorded(again).compared == 1


def test_the_recorded_time_is_used() -> None:
    (step,) = replay([a_snapshot()]).steps

    assert step.result is not None
    assert step.result.gap.detected_at == "2026-03-02T12:00:00+00:00"
    assert step.result.duration_ms == 0


def test_the_same_snapshots_give_the_same_bytes(tmp_path: Path) -> None:
    write_snapshots(tmp_path / "x.jsonl", [a_snapshot(step=i) for i in range(2)])

    once, twice = (run("replay", str(tmp_path), "--format", "json").stdout for _ in range(2))

    assert once == twice
    assert Replay.from_dict(json.loads(once)) == replay(tmp_path)


async def test_it_can_be_awaited_and_does_not_hold_up_the_loop() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.create_task(tick())
    found = await areplay([a_snapshot() for _ in range(20)])
    ticking.cancel()

    assert found.outcomes == {"injected": 20}
    assert ticks > 5


def test_each_step_of_a_conversation_sees_only_earlier_messages(tmp_path: Path) -> None:
    said = [("user", "Build it."), ("dev", ASKS), ("architect", REFUNDS), ("dev", "Done, they go to refunds-v2.")]
    messages = [{"role": "assistant" if who != "user" else who, "name": who, "content": text} for who, text in said]
    (tmp_path / "chat.json").write_text(json.dumps(messages))

    found = replay(tmp_path / "chat.json")

    assert [(step.step, step.said) for step in found.steps] == [(i, text) for i, (_, text) in enumerate(said, 1)]
    assert [step.outcome for step in found.steps] == ["silent", "abstained", "silent", "silent"]


def test_a_need_is_served_once_where_there_was_no_scrum_master(tmp_path: Path) -> None:
    waits = [("user", "Build it."), ("dev", ASKS), ("tester", "All 12 tests pass."), ("pm", "The story is PAY-7.")]
    master = ScrumMaster(sources=[Given(a_context(REFUNDS))])

    found = replay(_chat(tmp_path, waits), scrum_master=master)

    assert [step.outcome for step in found.steps].count("injected") == 1


def _chat(folder: Path, said: list[tuple[str, str]]) -> Path:
    rows = [{"role": "user" if who == "user" else "assistant", "name": who, "content": text} for who, text in said]
    (folder / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "chat.jsonl"


def test_a_run_as_a_state_a_line_is_replayed_as_it_went(tmp_path: Path) -> None:
    turns = [("pm", "Build it."), ("dev", ASKS), ("tester", "All 12 tests pass.")]
    said = [{"role": "assistant", "name": who, "content": text} for who, text in turns]
    states = [{"messages": said[:end], "decisions": [{"summary": REFUNDS}]} for end in (1, 2, 3)]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(state) + "\n" for state in states))

    found = replay(tmp_path / "run.jsonl")
    shown = run("replay", str(tmp_path / "run.jsonl")).stdout

    assert [step.outcome for step in found.steps] == ["silent", "injected", "silent"]
    assert "more" not in shown


def test_progress_is_reported(tmp_path: Path, database: Path) -> None:
    said = [{"role": "user", "content": "Hello."}] * 3
    (tmp_path / "chat.json").write_text(json.dumps(said))
    of_messages, of_thread, of_files = list[Any](), list[Any](), list[Any]()

    replay(tmp_path / "chat.json", progress=lambda *counts: of_messages.append(counts))
    replay(database, thread="one", progress=lambda *counts: of_thread.append(counts))
    write_snapshots(tmp_path / "x.json", [a_snapshot()])
    replay(tmp_path, progress=lambda *counts: of_files.append(counts))

    assert of_messages == [(0, 3), (1, 3), (2, 3)]
    assert of_thread == [(done, 6) for done in range(6)]
    assert of_files == [(0, 2), (1, 2)]


def test_steps_of_several_threads_are_shown_thread_by_thread(tmp_path: Path) -> None:
    write_snapshots(tmp_path / "x.jsonl", [a_snapshot(thread=name, step=i) for i, name in enumerate("abab", 1)])
    (tmp_path / "strict.toml").write_text("min_relevance_score = 1.0\n")

    shown = run("replay", str(tmp_path / "x.jsonl"), "--against", str(tmp_path / "strict.toml")).stdout
    overview, differ = shown.split("4 steps:")

    assert re.findall(r"^  (\d) ", overview, re.M) == ["1", "3", "2", "4"]
    assert list(dict.fromkeys(re.findall(r"^  ([ab] \d) ", differ, re.M))) == ["a 1", "b 2", "a 3", "b 4"]


def test_a_broken_file_is_reported_and_the_rest_of_the_folder_is_replayed(tmp_path: Path) -> None:
    write_snapshots(tmp_path / "a.json", [a_snapshot()])
    (tmp_path / "b.json").write_text("{broken")
    write_snapshots(tmp_path / "deep" / "c.json", [a_snapshot()])
    (tmp_path / "notes.txt").write_text("not ours")

    found = replay(tmp_path)
    done = run("replay", str(tmp_path))

    assert [step.where for step in found.steps] == ["a.json", "deep/c.json"]
    assert [(problem.where, "is not JSON" in problem.error) for problem in found.problems] == [("b.json", True)]
    assert done.exit_code == 0
    assert "scrum-master: 'b.json' is not JSON" in done.stderr


def test_recorded_settings_that_are_no_longer_valid_are_reported() -> None:
    found = replay([a_snapshot(config={"max_context_items": 0}), a_snapshot(config={"unknown_now": 1})])

    assert "max_context_items must be a whole number" in found.problems[0].error
    assert [step.outcome for step in found.steps] == ["injected"]


@pytest.mark.parametrize("name", ["version-1.json", "version-1-bare.json"])
def test_snapshots_of_the_first_version_are_replayed(name: str) -> None:
    (step,) = replay(STORED / name).steps

    assert step.outcome == "injected"
    assert step.result is not None
    assert REFUNDS in step.result.text


def test_a_changed_setting_is_seen(tmp_path: Path) -> None:
    write_snapshots(tmp_path / "x.json", [a_snapshot()])
    (tmp_path / "strict.toml").write_text("min_relevance_score = 1.0\n")

    found = printed("replay", str(tmp_path / "x.json"), "--against", str(tmp_path / "strict.toml"))
    done = run("replay", str(tmp_path / "x.json"), "--against", str(tmp_path / "strict.toml"), "--check")

    (step,) = found["difference"]["steps"]
    changes = {change["what"]: (change["before"], change["after"]) for change in step["changes"]}
    assert changes["outcome"] == ("injected", "abstained")
    assert changes["contexts"][1] == {}
    assert done.exit_code == 1
    assert "1 of 1 steps differ" in done.stdout


def test_only_the_named_settings_change() -> None:
    snapshot = a_snapshot(config=InjectionConfig(max_context_items=3, min_relevance_score=0.9).to_dict())

    (step,) = replay([snapshot], config={"min_relevance_score": 0.2}).steps
    (whole,) = replay([snapshot], config=InjectionConfig()).steps

    assert (step.config["max_context_items"], step.config["min_relevance_score"]) == (3, 0.2)
    assert (whole.config["max_context_items"], whole.config["min_relevance_score"]) == (5, 0.7)


def test_an_unknown_setting_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"unknown settings \['min_relevance'\]: settings are"):
        replay([a_snapshot()], config={"min_relevance": 0.5})


def test_a_replay_is_compared_with_an_earlier_one(tmp_path: Path) -> None:
    write_snapshots(tmp_path / "x.jsonl", [a_snapshot(step=1), a_snapshot(step=2)])
    earlier = tmp_path / "earlier.json"
    earlier.write_text(run("replay", str(tmp_path / "x.jsonl"), "--format", "json").stdout)
    (tmp_path / "x.jsonl").unlink()
    write_snapshots(tmp_path / "x.jsonl", [a_snapshot(step=1)])

    found = printed("replay", str(tmp_path / "x.jsonl"), "--against", str(earlier))["difference"]

    assert (found["compared"], found["steps"], found["only_before"]) == (1, [], ["x.jsonl:2 step 2"])


def test_without_a_difference_the_check_passes(tmp_path: Path) -> None:
    master = ScrumMaster(snapshots=tmp_path, clock=FixedClock())
    master.evaluate(STUCK)

    done = run("replay", str(tmp_path), "--check")

    assert done.exit_code == 0, done.output
    assert "No difference in 1 step." in done.stdout


def test_a_check_without_recorded_results_fails(tmp_path: Path) -> None:
    done = run("replay", str(_chat(tmp_path, [("dev", ASKS)])), "--check")

    assert isinstance(done.exception, DecodeError)
    assert "has no recorded results for --check to compare with: pass --against" in str(done.exception)
    assert done.stdout == ""


def test_several_snapshots_in_a_json_file_are_a_list_that_is_read_again(tmp_path: Path) -> None:
    source = str(_chat(tmp_path, [("user", "Build it."), ("dev", ASKS)]))
    for name in ("run.json", "run.jsonl"):
        assert run("snapshot", source, "--out", str(tmp_path / name)).exit_code == 0

    assert len(json.loads((tmp_path / "run.json").read_text())) == 2
    listed, lines = ([p.snapshot for p in snapshots_in(tmp_path / name)] for name in ("run.json", "run.jsonl"))
    assert listed == lines


def test_long_file_names_leave_room_for_the_message(tmp_path: Path) -> None:
    ScrumMaster(snapshots=tmp_path, clock=FixedClock()).evaluate(STUCK)

    assert "Which queue" in run("replay", str(tmp_path), "--check").stdout


def test_a_source_that_is_missing_now_is_reported(tmp_path: Path) -> None:
    ScrumMaster(snapshots=tmp_path, sources=[Given(a_context(), name="runbook")]).evaluate(a_state(("dev", QUESTION)))

    assert replay(tmp_path).steps[0].unasked == ("runbook",)
    assert "Sources of the recorded run that are missing now: runbook." in run("replay", str(tmp_path)).stdout


def test_a_page_shows_the_steps_and_loads_nothing(tmp_path: Path) -> None:
    hostile = a_state(("user", "<script>alert(1)</script>"), ("dev", ASKS), decisions=[{"summary": f"<b>{REFUNDS}"}])
    shorter = a_state(("user", "<script>alert(1)</script>"))
    write_snapshots(tmp_path / "x.jsonl", [taken(shorter, at=""), taken(hostile, at="")])

    page = run("replay", str(tmp_path / "x.jsonl"), "--format", "html", "--against", "recorded").stdout

    assert "\\u003cscript>alert(1)" in page
    assert "\\u003cb>Refunds" in page
    assert "<script>alert" not in page
    assert '"difference": [["' in page
    assert not re.search(r"(?:src|href)=.https?:", page)


@pytest.fixture(scope="module")
def memory_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with one decision in it."""
    folder = tmp_path_factory.mktemp("memory")
    memory = ChromaMemory(folder)
    asyncio.run(memory.store_decision(Decision(id="D-9", agent_type="architect", context=REFUNDS)))
    memory.close()
    return folder


def test_a_memory_is_read_and_stays_as_it_is(tmp_path: Path, memory_folder: Path) -> None:
    write_snapshots(tmp_path / "x.json", [taken(a_state(("dev", ASKS)), at="", ran=False)])
    before = hashes(memory_folder)

    found = printed("replay", str(tmp_path / "x.json"), "--memory", str(memory_folder))

    (considered,) = found["steps"][0]["considered"]
    assert (considered["context"]["key"], considered["fate"]) == ("D-9", "kept")
    assert hashes(memory_folder) == before
    assert replay(tmp_path / "x.json", memory=memory_folder).outcomes == {"injected": 1}


def test_memories_have_a_strength_in_each_space(memory_folder: Path) -> None:
    memory = ChromaMemory()
    asyncio.run(memory.store_embedding("queue", REFUNDS, {}))

    (step,) = replay([taken(a_state(("dev", ASKS)), at="")], memory=memory).steps

    assert step.considered[0].context.strengths["E1"] > 0


# A type that the process which replays does not have, and in the strict mode may not load.
WRITER = """
import sqlite3, sys
sys.path[:0] = [sys.argv[2]]
from dataclasses import dataclass
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
import resumed
from langgraph_scrum_master import checkpoint_serde

@dataclass
class Note:
    summary: str

class State(resumed.State):
    decisions: list[Note]

connection = sqlite3.connect(sys.argv[1], check_same_thread=False)
graph = resumed.build().compile(checkpointer=SqliteSaver(connection, serde=checkpoint_serde()))
graph.invoke({"messages": [HumanMessage("Build it.")]}, {"configurable": {"thread_id": "one"}})

builder = StateGraph(State)
builder.add_node("dev", lambda state: {"messages": [resumed.says("dev", "Which queue do refunds go to?")]})
builder.add_edge(START, "dev")
graph = builder.compile(checkpointer=SqliteSaver(connection))
notes = [Note("Refunds go to the queue refunds-v2.")]
graph.invoke({"messages": [HumanMessage("Build.")], "decisions": notes}, {"configurable": {"thread_id": "two"}})
"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "c.db", check_same_thread=False)) as made:
        yield made


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What another process left: a thread with a scrum master, and one without."""
    path = tmp_path_factory.mktemp("checkpoints") / "c.db"
    command = [sys.executable, "-c", WRITER, str(path), str(Path(__file__).parents[1])]
    subprocess.run(command, capture_output=True, text=True, check=True)
    return path


GRAPHS = ScrumMaster(sources=[Given(a_context())])


def test_a_database_of_another_process_replays_as_it_went(database: Path) -> None:
    found = replay(database, thread="one", scrum_master=GRAPHS)

    assert [step.speaker for step in found.steps] == ["user", "dev", "dev", "dev", "dev"]
    assert [step.outcome for step in found.steps] == ["silent", "injected", "silent", "silent", "silent"]
    assert [step.ran for step in found.steps] == [False, True, False, True, False]
    assert found.steps[1].recorded is not None
    assert found.steps[1].recorded.text == found.steps[1].result.text  # type: ignore[union-attr]
    assert not against_recorded(found)


def test_a_missing_source_shows_in_the_difference(database: Path) -> None:
    found = against_recorded(replay(database, thread="one"))

    assert [(step.step, step.changes[0].before, step.changes[0].after) for step in found.steps] == [
        (1, "injected", "abstained")
    ]


def test_types_that_are_not_here_are_read_as_plain_data(database: Path, caplog: pytest.LogCaptureFixture) -> None:
    last = replay(database, thread="two").steps[-1]

    assert last.outcome == "injected"
    assert [each.context.content for each in last.considered] == [REFUNDS]
    assert caplog.records == []


def test_reading_a_database_leaves_no_trace(database: Path) -> None:
    before = hashes(database.parent)

    assert run("replay", str(database)).exit_code == 0
    assert run("replay", str(database), "--thread", "one").exit_code == 0
    assert run("snapshot", str(database), "--thread", "one").exit_code == 0

    assert hashes(database.parent) == before


def test_a_database_is_read_while_its_graph_runs_on(tmp_path: Path, connection: sqlite3.Connection) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("dev", lambda state: {"messages": [says("dev", ASKS)]})
    builder.add_edge(START, "dev")
    graph: Any = builder.compile(checkpointer=SqliteSaver(connection, serde=checkpoint_serde()))
    thread = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [HumanMessage("Build.")]}, thread)
    before = hashes(tmp_path)

    first = replay(tmp_path / "c.db", thread="t")
    read = hashes(tmp_path)
    graph.invoke({"messages": [HumanMessage("Go on.")]}, thread)
    second = replay(tmp_path / "c.db", thread="t")
    connection.close()

    assert read == before
    assert len(second.steps) == 2 * len(first.steps)


def test_threads_are_listed_by_snapshot(database: Path) -> None:
    assert [(thread.thread, thread.steps) for thread in threads(str(database))] == [("two", 3), ("one", 6)]
    done, listed = run("snapshot", str(database)), run("snapshot", str(database), "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Choose one with --thread." in done.stderr
    assert listed.exit_code == 2
    assert [row["thread"] for row in json.loads(listed.stdout)] == ["two", "one"]


def test_all_threads_of_a_database_are_replayed_latest_first(database: Path) -> None:
    found = replay(database)

    assert [step.thread for step in found.steps] == ["two"] * 2 + ["one"] * 5
    assert found.steps == (*replay(database, thread="two").steps, *replay(database, thread="one").steps)
    assert found.source == "c.db: SQLite checkpoint database, 2 threads, 7 steps"


def test_only_the_latest_threads_of_a_large_database_are_replayed(
    tmp_path: Path, connection: sqlite3.Connection
) -> None:
    graph = a_team("dev", checkpointer=SqliteSaver(connection))
    for i in range(MOST_THREADS + 2):
        graph.invoke({"messages": [HumanMessage("Hello.")]}, {"configurable": {"thread_id": f"t{i}"}})
    connection.close()

    found = replay(tmp_path / "c.db")

    assert len({step.thread for step in found.steps}) == MOST_THREADS
    assert found.steps[0].thread == f"t{MOST_THREADS + 1}"
    assert found.notes == ("2 earlier threads were not read: --thread selects one.",)


@pytest.mark.parametrize("command", ["detect", "replay", "inspect", "report"])
@pytest.mark.parametrize("source", ["c.db", "run.jsonl", "snapshots", "chat.jsonl"])
def test_all_commands_take_the_same_sources_and_say_what_they_were_given(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch, command: str, source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = {
        "c.db": "c.db: SQLite checkpoint database, 2 threads, 7 steps",
        "run.jsonl": "run.jsonl: 1 state" if command == "detect" else "run.jsonl: 2 states",
        "snapshots": "snapshots: 2 snapshots in 2 files",
        "chat.jsonl": "chat.jsonl: 1 state" if command == "detect" else "chat.jsonl: 2 messages",
    }[source]
    for file in database.parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    _chat(tmp_path, [("user", "Build it."), ("dev", ASKS)])
    said = [{"role": "assistant", "name": "dev", "content": text} for text in ("Let me see.", ASKS)]
    states = [json.dumps({"messages": said[:end], "current_agent": "dev"}) for end in (1, 2)]
    (tmp_path / "run.jsonl").write_text("\n".join(states))
    for i in range(2):
        write_snapshots(tmp_path / "snapshots" / f"{i}.json", [a_snapshot(step=i)])

    done = run(command, source)

    assert done.exit_code == 0, done.output
    shown = (tmp_path / "inspector.html").read_text() if command == "inspect" else done.stdout
    assert expected in shown


def test_detect_looks_at_the_latest_state_of_each_thread(database: Path) -> None:
    found = json.loads(run("detect", str(database), "--json").stdout)
    shown = run("detect", str(database), "--thread", "two").stdout

    assert [(gap["where"], gap["agent"]) for gap in found] == [("two", "dev")]
    assert ASKS in shown


def test_what_was_recorded_comes_first_and_a_replay_is_marked_as_hypothetical(database: Path) -> None:
    shown = run("replay", str(database), "--thread", "one").stdout

    overview, _, detail = shown.partition("step 1 ·")
    assert re.search(r"recorded +hypothetical", overview)
    assert re.search(r"  1 +dev .*injected.*abstained", overview)
    assert "What the dev read" in detail
    assert detail.index("What the dev read") < detail.index("Hypothetical, a replay with these settings differs:")
    assert "outcome: injected → abstained" in detail
    counted = "5 steps: recorded 1 injected, 3 no record, 1 silent; hypothetical replay 1 abstained, 4 silent."
    assert " ".join(detail.split()).endswith(counted)


def test_a_narrow_terminal_shows_both_sides_of_a_step(database: Path) -> None:
    done = CliRunner().invoke(app, ["replay", str(database), "--thread", "one"], env={"COLUMNS": "40"})

    (row,) = re.findall(r"^  1 .*?(?=^  2 )", done.stdout, re.M | re.S)
    assert "recorded: injected" in row
    assert "hypothetical: abstained" in row
    assert max(map(len, done.stdout.splitlines())) <= 40


def test_a_step_without_a_recorded_result_says_so(tmp_path: Path) -> None:
    shown = run("replay", str(_chat(tmp_path, [("dev", ASKS)]))).stdout

    assert re.search(r"  1 +dev .*no record +abstained", shown)
    assert "No record of this step. Hypothetical, a replay with these settings:" in shown


def test_what_the_middleware_of_an_agent_injected_is_recorded(tmp_path: Path, connection: sqlite3.Connection) -> None:
    def script(prompt: list[BaseMessage]) -> str:
        return "Done: the keys go into Redis." if any(DECISION in each.text for each in prompt) else QUESTION

    middleware: Any = [ScrumMasterMiddleware(sources=[Given(a_context())])]
    saver = SqliteSaver(connection, serde=checkpoint_serde())
    model = ScriptedChatModel(script=script)
    agent: Any = create_agent(model, tools=[], middleware=middleware, name="dev", checkpointer=saver)
    agent.invoke({"messages": [HumanMessage("Build it.")]}, {"configurable": {"thread_id": "t"}})
    connection.close()

    steps = replay(tmp_path / "c.db").steps

    assert [step.said for step in steps if step.recorded_outcome == "injected"] == [QUESTION]
    assert [step.said for step in steps if step.recorded_outcome == "silent"][:1] == ["Build it."]
    assert {step.injection_outcome for step in steps if step.recorded} == {"used"}


def test_an_injection_in_another_branch_is_not_recorded_of_a_step() -> None:
    graph: Any = build().compile(checkpointer=InMemorySaver(serde=checkpoint_serde()))
    thread: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [HumanMessage("Build it.")]}, thread)
    start = next(state for state in graph.get_state_history(thread) if state.next == ("dev",))
    graph.update_state(start.config, {"messages": [HumanMessage("By hand.")]})

    found = replay(graph.get_state_history(thread), scrum_master=GRAPHS)

    assert [step.recorded_outcome for step in found.steps].count("injected") == 1
    assert found.steps[-1].recorded_outcome == "no record"


def test_what_a_node_of_another_name_injected_is_recorded(tmp_path: Path, connection: sqlite3.Connection) -> None:
    builder = build()
    node = builder.nodes.pop("scrum_master")
    builder.nodes["helper"] = node
    builder.edges = {(a, "helper" if b == "scrum_master" else b) for a, b in builder.edges}
    builder.branches["helper"] = builder.branches.pop("scrum_master")
    graph: Any = builder.compile(checkpointer=SqliteSaver(connection, serde=checkpoint_serde()))
    graph.invoke({"messages": [HumanMessage("Build it.")]}, {"configurable": {"thread_id": "t"}})
    connection.close()

    steps = replay(tmp_path / "c.db").steps

    assert [step.recorded_outcome for step in steps].count("injected") == 1
    assert {step.injection_outcome for step in steps if step.recorded} == {"used"}


@pytest.mark.parametrize("command", [["replay", "--json"], ["inspect"]], ids=["replay", "inspect"])
def test_the_projects_settings_and_memory_are_used_only_if_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory_folder: Path, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = str(_chat(tmp_path, [("dev", ASKS)]))
    plain = run(*command, source)
    page = Path("inspector.html")
    before = page.read_text() if page.exists() else plain.stdout

    monkeypatch.setenv("SCRUM_MASTER_MIN_RELEVANCE_SCORE", "1.0")
    monkeypatch.setenv("SCRUM_MASTER_MEMORY_PATH", str(memory_folder))
    hinted = run(*command, source)

    assert plain.stderr == ""
    expected = f"no memory was searched, although there is one: add --memory {memory_folder}"
    assert hinted.stderr == f"scrum-master: {expected}\n"
    assert (page.read_text() if page.exists() else hinted.stdout) == before
    assert expected not in run(*command, source, "--memory", str(memory_folder)).stderr


def test_settings_that_are_named_before_the_command_are_tried(tmp_path: Path) -> None:
    (tmp_path / "strict.toml").write_text("min_relevance_score = 1.0\n")
    source = str(_chat(tmp_path, [("dev", ASKS)]))

    found = json.loads(run("--config", str(tmp_path / "strict.toml"), "replay", source, "--json").stdout)

    assert {step["config"]["min_relevance_score"] for step in found["steps"]} == {1.0}


def test_a_threads_steps_are_saved_and_replay_alike(database: Path, tmp_path: Path) -> None:
    assert run("snapshot", str(database), "--thread", "one", "--out", str(tmp_path / "x.jsonl")).exit_code == 0
    last = run("snapshot", str(database), "--thread", "one", "--last").stdout

    saved = replay(tmp_path / "x.jsonl", scrum_master=GRAPHS)
    live = replay(database, thread="one", scrum_master=GRAPHS)
    assert [replace(step, where="") for step in saved.steps] == [replace(step, where="") for step in live.steps]
    assert last.count("\n") == 1
    assert last == (tmp_path / "x.jsonl").read_text().splitlines(keepends=True)[-1]


def test_a_branch_that_was_forked_off_is_replayed_too(tmp_path: Path, connection: sqlite3.Connection) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("dev", lambda state: {"messages": [says("dev", ASKS)]})
    builder.add_edge(START, "dev")
    graph: Any = builder.compile(checkpointer=SqliteSaver(connection))
    graph.invoke({"messages": [HumanMessage("Build.")]}, {"configurable": {"thread_id": "t"}})
    history = list(graph.get_state_history({"configurable": {"thread_id": "t"}}))
    graph.invoke(None, history[1].config)
    connection.close()

    found = replay(tmp_path / "c.db", thread="t")

    assert [step.step for step in found.steps] == [0, 1, 1, 2]
    assert not difference(found, found)


def test_a_graphs_own_history_replays_as_it_went() -> None:
    graph: Any = build().compile(checkpointer=InMemorySaver(serde=checkpoint_serde()))
    graph.invoke({"messages": [HumanMessage("Build it.")]}, {"configurable": {"thread_id": "t"}})

    found = replay(graph.get_state_history({"configurable": {"thread_id": "t"}}), scrum_master=GRAPHS)

    assert [(step.thread, step.step) for step in found.steps] == [("t", i) for i in range(5)]
    assert found.outcomes == {"injected": 1, "silent": 4}
    assert not against_recorded(found)
    assert against_recorded(found).compared == 2


def spoken(found: Replay) -> list[tuple[int, Any]]:
    return [(step.step, step.turns) for step in found.steps]


class Deltas(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)]
    decisions: Annotated[list[Any], DeltaChannel(lambda known, writes: sum(writes, known))]


def a_thread_in_deltas(saver: BaseCheckpointSaver[Any]) -> tuple[Any, Any]:
    """A graph, and its thread in which messages are added at once, replaced, removed and begun anew."""
    builder = StateGraph(Deltas)
    builder.add_node("dev", lambda state: {"messages": [says("dev", ASKS, id="q")], "decisions": [{"summary": "Yes."}]})
    builder.add_node("pm", lambda state: {"messages": [says("pm", "Wait."), says("dev", "Which queue?", id="q")]})
    builder.add_node("ops", lambda state: {"messages": says("ops", "I see."), "decisions": [{"summary": "No."}]})
    builder.add_node("qa", lambda state: {"messages": [RemoveMessage(id="q")]})
    builder.add_node("end", lambda state: {"messages": Overwrite([says("end", "All over.")])})
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "pm")
    builder.add_edge("dev", "ops")
    builder.add_edge(["pm", "ops"], "qa")
    builder.add_edge("qa", "end")
    graph: Any = builder.compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [HumanMessage("Build.")]}, thread)
    graph.invoke({"messages": [HumanMessage("Go on.")]}, thread)
    graph.update_state(thread, {"messages": [HumanMessage("By hand.")]})
    # A branch: its first checkpoint does not follow the one before.
    graph.invoke(None, list(graph.get_state_history(thread))[6].config)
    return graph, thread


@pytest.mark.filterwarnings("ignore:.*DeltaChannel")
def test_messages_in_deltas_are_joined_as_the_graph_joins_them(tmp_path: Path, connection: sqlite3.Connection) -> None:
    graph, thread = a_thread_in_deltas(SqliteSaver(connection))

    found, live = replay(tmp_path / "c.db", thread="t"), replay(graph.get_state_history(thread))
    connection.close()

    assert len(found.steps) > 12
    assert spoken(found) == spoken(live)
    assert found.problems == ()
    assert found.notes == (
        "thread 't' stores ['decisions'] as deltas, which only its graph can join. Most of them are missing here: "
        "use replay(graph.get_state_history(config)).",
    )


def test_all_messages_can_be_removed_and_messages_without_id_are_added() -> None:
    gone = {"type": "remove", "id": "__remove_all__"}

    assert join_writes([says("a", "1")], [gone, says("b", "2"), [("user", "3")]]) == [says("b", "2"), ("user", "3")]
    assert join_writes(None, [["x"], {"__overwrite__": None}]) == []


def a_team(agent: str, **options: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("think", lambda state: {"messages": [says(agent, "Let me see.")]})
    builder.add_node("ask", lambda state: {"messages": [says(agent, ASKS)]})
    builder.add_edge(START, "think")
    builder.add_edge("think", "ask")
    return builder.compile(**options)


class Topics(TypedDict):
    topics: list[str]


@pytest.fixture
def with_subgraphs(tmp_path: Path, connection: sqlite3.Connection) -> Path:
    """A graph without messages of its own that calls one subgraph in a node twice, and has one that goes on."""
    team = a_team("dev")

    def crew(state: Topics) -> None:
        for topic in state["topics"]:
            team.invoke({"messages": [HumanMessage(topic)]})

    builder = StateGraph(Topics)
    builder.add_node("crew", crew)
    builder.add_node("ops", a_team("ops", checkpointer=True))
    builder.add_edge(START, "crew")
    builder.add_edge("crew", "ops")
    graph: Any = builder.compile(checkpointer=SqliteSaver(connection))
    for topics in (["One.", "Two."], ["Three."]):
        graph.invoke({"topics": topics}, {"configurable": {"thread_id": "t"}})
    connection.close()
    return tmp_path / "c.db"


def test_subgraphs_that_are_not_read_are_reported(with_subgraphs: Path, logged: list[Any]) -> None:
    found, shown = replay(with_subgraphs, thread="t"), run("replay", str(with_subgraphs), "--thread", "t", "--check")

    expected = "thread 't' has checkpoints of subgraphs, which --subgraph reads: crew (12), ops (8)."
    assert found.notes == (expected,)
    assert f"scrum-master: {expected}" in shown.stderr
    assert json.loads(run("snapshot", str(with_subgraphs), "--json").stdout)[0]["subgraphs"] == ["crew", "ops"]
    assert logged == []


def test_the_steps_of_a_subgraph_are_replayed_each_call_for_itself(with_subgraphs: Path) -> None:
    called = replay(with_subgraphs, thread="t", subgraph="crew")
    going_on = printed("replay", str(with_subgraphs), "--thread", "t", "--subgraph", "ops")["steps"]

    assert [(step.thread, step.step, len(step.turns)) for step in called.steps] == [
        (f"t crew #{call}", number, 1) for call in (1, 2, 3) for number in (0, 1, 2)
    ]
    assert [step.said for step in called.steps if not step.step] == ["One.", "Two.", "Three."]
    assert [step.outcome for step in called.steps] == ["silent", "silent", "abstained"] * 3
    assert [len(step["turns"]) for step in going_on if step["thread"] == "t ops"] == [0, 1, 1, 0, 1, 1]


@pytest.mark.parametrize(
    ("source", "subgraph", "error", "expected"),
    [
        (
            "c.db",
            "crews",
            NotFoundError,
            r"no subgraph 'crews' in thread 't' of 'c\.db': its subgraphs are \['crew', 'ops'\]",
        ),
        ("x.json", "crew", DecodeError, "only a checkpoint database has subgraphs, got 'crew'"),
    ],
)
def test_an_unknown_subgraph_is_reported(
    with_subgraphs: Path, source: str, subgraph: str, error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected):
        replay(with_subgraphs.with_name(source), thread="t", subgraph=subgraph)


def test_a_subgraph_is_read_in_all_threads_that_have_it(with_subgraphs: Path) -> None:
    found = replay(with_subgraphs, subgraph="crew")

    assert found.steps == replay(with_subgraphs, thread="t", subgraph="crew").steps
    with pytest.raises(NotFoundError, match=r"no thread of 'c\.db' has a subgraph 'crews'; its subgraphs are \['crew'"):
        replay(with_subgraphs, subgraph="crews")


def test_a_database_of_an_earlier_version_is_read(tmp_path: Path, connection: sqlite3.Connection) -> None:
    a_team("dev", checkpointer=SqliteSaver(connection)).invoke(
        {"messages": [HumanMessage("Build.")]}, {"configurable": {"thread_id": "t"}}
    )
    connection.execute("ALTER TABLE writes DROP COLUMN task_path")
    connection.commit()
    connection.close()

    assert [step.said for step in replay(tmp_path / "c.db", thread="t").steps] == ["Build.", "Let me see.", ASKS]


def test_only_the_named_thread_of_files_is_replayed(tmp_path: Path) -> None:
    write_snapshots(tmp_path / "x.jsonl", [a_snapshot(thread=name, step=i) for i, name in enumerate("abab")])

    found = printed("replay", str(tmp_path), "--thread", "b")

    assert [(step["thread"], step["step"]) for step in found["steps"]] == [("b", 1), ("b", 3)]
    with pytest.raises(NotFoundError, match=r"there is no thread 'c' in .*: its threads are \['a', 'b'\]"):
        replay(tmp_path, thread="c")
    with pytest.raises(NotFoundError, match=r"there is no thread 'c' in .*: its steps have no thread"):
        replay([a_snapshot()], thread="c")


def test_states_are_accepted_and_other_objects_are_reported() -> None:
    found = replay([STUCK, 7])

    assert [step.outcome for step in found.steps] == ["injected"]
    assert [problem.error for problem in found.problems] == ["expected a snapshot or a state, got 7"]


@pytest.mark.parametrize(
    ("module", "source", "package"),
    [
        ("langgraph.checkpoint.sqlite", "c.db", "langgraph-checkpoint-sqlite"),
        ("langgraph.checkpoint.postgres", "postgresql://x", "langgraph-checkpoint-postgres"),
    ],
)
def test_a_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, database: Path, module: str, source: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(DecodeError, match=f"pip install {package}"):
        replay(database if source == "c.db" else source, thread="t")


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        (lambda path: path.mkdir(), "there are no snapshots in "),
        (lambda path: path.write_bytes(b"SQLite format 3\x00" + b"x" * 200), "is not a checkpoint database"),
        (lambda path: sqlite3.connect(path).execute("CREATE TABLE t (x)").connection.close(), "no such table"),
    ],
)
def test_an_unreadable_source_is_reported(tmp_path: Path, prepare: Any, expected: str) -> None:
    prepare(tmp_path / "source")

    with pytest.raises(DecodeError, match=expected):
        replay(tmp_path / "source", thread="t")


def test_a_missing_source_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no "):
        replay(tmp_path / "source", thread="t")


def test_an_unknown_thread_is_reported(database: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no thread 'three' in 'c\.db': omit --thread to list all"):
        replay(database, thread="three")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*DeltaChannel")
def test_a_thread_in_postgresql_is_replayed_and_nothing_can_be_written(postgres_uri: str) -> None:
    from langgraph.checkpoint.postgres import PostgresSaver

    builder = StateGraph(MessagesState)
    builder.add_node("dev", lambda state: {"messages": [says("dev", ASKS)]})
    builder.add_edge(START, "dev")
    with PostgresSaver.from_conn_string(postgres_uri) as saver:
        saver.setup()
        team, in_deltas = a_thread_in_deltas(saver)
        live = replay(team.get_state_history(in_deltas))
        graph: Any = builder.compile(checkpointer=saver)
        graph.invoke({"messages": [HumanMessage("Build.")]}, {"configurable": {"thread_id": "pg"}})

    found = replay(postgres_uri, thread="pg")

    assert [thread.thread for thread in threads(postgres_uri)] == ["pg", "t"]
    assert spoken(replay(postgres_uri, thread="t")) == spoken(live)
    assert [(step.where, step.said) for step in found.steps] == [("postgres", "Build."), ("postgres", ASKS)]
    assert found.steps[-1].outcome == "abstained"
    for command in ("detect", "replay", "report"):
        assert re.match(
            r"postgres: PostgreSQL checkpoint database, 2 threads, \d+ steps", run(command, postgres_uri).stdout
        )
    with pytest.raises(DecodeError, match="read-only"), open_database(postgres_uri) as database:
        database.query("CREATE TABLE ours (x int)", ())


def test_a_connection_string_is_never_shown(tmp_path: Path) -> None:
    with pytest.raises(DecodeError) as error:
        replay(f"postgresql://me:hunter2@/db?host={tmp_path}", thread="t")

    assert "hunter2" not in str(error.value)


def test_a_snapshot_of_a_snapshot_is_the_same(tmp_path: Path) -> None:
    write_snapshots(tmp_path / "x.jsonl", [a_snapshot()])

    (placed,) = snapshots_in(tmp_path / "x.jsonl")

    assert placed.snapshot == a_snapshot()
    assert observe(a_snapshot().state, now="").questions == observe(STUCK, now="").questions
