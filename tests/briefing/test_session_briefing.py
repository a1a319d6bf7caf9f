"""Briefings from Python, the shell, a hook and a graph, whatever is missing or broken."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from typer.testing import CliRunner
from typing_extensions import TypedDict

from builders import MIXED_LESSONS as MIXED, NOON, a_bank, active_on, an_entry
from langgraph_scrum_master import ConfigError, ScrumMaster, SessionBriefing
from langgraph_scrum_master.briefing import Briefing
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.errors import GraphError
from pages import file_of

COMMAND = str(Path(sys.executable).with_name("scrum-master"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    a_bank(root / "docs" / "knowledge-bank", *MIXED)
    return root


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    return a_bank(tmp_path / "global", an_entry("Shared habit", category="heuristics", last_observed="2026-01-12"))


def names(briefing: Briefing) -> list[str]:
    return [entry.name for entry in briefing.entries]


def files_below(*folders: Path) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*") if path.is_file()}


def test_local_and_shared_lessons_are_told_apart_and_said_once(project: Path, shared: Path) -> None:
    twin = replace(MIXED[0], observation_count=50)
    a_bank(shared, twin, an_entry("Shared habit", category="heuristics"))

    briefing = SessionBriefing(project, global_store=shared, memory_injection_limit=100).brief()

    assert len(briefing.entries) == len(MIXED) + 1
    assert {entry.name for entry in briefing.entries if entry.source == "global"} == {twin.name, "Shared habit"}
    assert f"({len(MIXED) - 1} local, 2 global)" in briefing.text


def test_nothing_is_written_but_a_note_in_the_shared_store(project: Path, shared: Path) -> None:
    before = files_below(project, shared)

    SessionBriefing(project, global_store=shared).brief("hooks")
    after = files_below(project, shared)

    assert after - before == {shared / ".last-injection.json"}
    assert before <= after


def test_the_note_tells_what_was_given(project: Path, shared: Path) -> None:
    briefing = SessionBriefing(
        project, global_store=shared, memory_injection_limit=2, memory_relevance_weight=0.5, clock=lambda: NOON
    ).brief("shared habit")

    note = json.loads((shared / ".last-injection.json").read_text(encoding="utf-8"))
    assert note == {
        "timestamp": "2026-03-02T12:00:00+00:00",
        "project": str(project.resolve()),
        "count": 2,
        "relevance": {"active": True, "weight": 0.5, "context_query": "shared habit"},
        "entries": [
            {
                "name": entry.name,
                "category": entry.category,
                "hash": entry.content_hash,
                "source": entry.source,
                "score": round(entry.score, 6),
            }
            for entry in briefing.entries
        ],
    }
    assert note["entries"][0]["name"] == "Shared habit"


def test_the_same_project_gives_the_same_bytes(project: Path, shared: Path) -> None:
    briefing = SessionBriefing(project, global_store=shared, clock=lambda: NOON)
    first = (briefing.brief("git hooks"), (shared / ".last-injection.json").read_bytes())

    assert (briefing.brief("git hooks"), (shared / ".last-injection.json").read_bytes()) == first


def test_a_store_that_is_not_there_is_made_for_the_note(project: Path, tmp_path: Path) -> None:
    SessionBriefing(project, global_store=tmp_path / "new" / "store").brief()

    assert (tmp_path / "new" / "store" / ".last-injection.json").is_file()


def test_a_note_that_cannot_be_written_costs_nothing_but_a_warning(project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    briefing = SessionBriefing(project, global_store=tmp_path / "file" / "store").brief("hooks")

    assert len(briefing.entries) == 20
    (warning,) = briefing.warnings
    assert warning.startswith("the injection could not be recorded in ")


@pytest.mark.parametrize("options", [{"memory_injection_enabled": False}, {"memory_injection_limit": 0}])
def test_a_briefing_that_is_switched_off_says_and_writes_nothing(
    project: Path, shared: Path, options: dict[str, Any]
) -> None:
    briefing = SessionBriefing(project, global_store=shared, **options).brief()

    assert (briefing.text, briefing.entries) == ("", ())
    assert not (shared / ".last-injection.json").exists()


def test_a_project_without_lessons_gets_nothing_and_a_missing_one_those_of_all(tmp_path: Path, shared: Path) -> None:
    (tmp_path / "bare").mkdir()
    bare = SessionBriefing(tmp_path / "bare").brief()
    missing = SessionBriefing(tmp_path / "nowhere", global_store=shared).brief()
    impossible = SessionBriefing("x" * 5_000, global_store=shared).brief()

    assert bare == Briefing()
    assert names(missing) == names(impossible) == ["Shared habit"]
    assert missing.warnings[0].startswith(f"there is no project in {str(tmp_path / 'nowhere')!r}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory_injection_enabled": "no"}, "memory_injection_enabled must be True or False, got 'no'"),
        ({"memory_injection_limit": -1}, "memory_injection_limit must be a whole number, 0 or more, got -1"),
        ({"memory_injection_limit": "9"}, "memory_injection_limit must be a whole number, 0 or more, got '9'"),
        ({"memory_relevance_weight": 1.1}, "memory_relevance_weight must be a number from 0 to 1, got 1.1"),
        ({"memory_relevance_weight": float("nan")}, "memory_relevance_weight must be a number from 0 to 1, got nan"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_python(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SessionBriefing(**options)


@pytest.fixture
def no_fts5(monkeypatch: pytest.MonkeyPatch) -> None:
    """A SQLite that was built without full-text search."""

    class Poor(sqlite3.Connection):
        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            if "fts5" in sql:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(sql, *rest)

    module = ModuleType("sqlite3")
    vars(module).update(Error=sqlite3.Error, connect=lambda *a, **k: sqlite3.connect(*a, factory=Poor, **k))
    monkeypatch.setitem(sys.modules, "sqlite3", module)


def falls_back(project: Path, message: str) -> None:
    briefing = SessionBriefing(project).brief("caching")

    assert names(briefing) == [
        entry.name for entry in SessionBriefing(project, memory_relevance_weight=0).brief().entries
    ]
    assert briefing.text.endswith("| relevance: inactive*")
    assert any(message in warning for warning in briefing.warnings)


@pytest.mark.usefixtures("no_fts5")
def test_without_full_text_search_prominence_decides_and_that_is_reported(project: Path) -> None:
    falls_back(project, "SQLite has no FTS5: no such module: fts5")


def test_without_sqlite_prominence_decides_and_that_is_reported(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlite3", None)

    falls_back(project, "SQLite is missing")


def brief(*arguments: str, **environment: str) -> Any:
    return CliRunner().invoke(app, ["brief", *arguments], env=environment)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test looks into the home of whoever runs it."""
    monkeypatch.setenv("SCRUM_MASTER_GLOBAL_STORE", str(tmp_path / "no-store"))


def test_the_command_prints_the_briefing_and_tells_what_is_wrong_on_standard_error(project: Path, shared: Path) -> None:
    active_on(project, "caching-rules")
    arguments = [
        "--project-root",
        str(project),
        "--limit=7",
        "--global-store",
        str(shared),
        "--relevance-weight",
        "0.8",
    ]

    quick = subprocess.run([COMMAND, "brief", *arguments], capture_output=True, text=True, check=True)
    typed = brief(*arguments)

    assert quick.stdout == typed.stdout
    assert "*Memory: 7 entries (" in quick.stdout
    assert '| relevance: active, weight=0.8 | context: "caching rules"*' in quick.stdout
    assert "scrum-master: git signals are ignored: fatal: not a git repository" in quick.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--relevance-weight", "heavy"], "Invalid relevance weight 'heavy', using default 0.6"),
        (["--relevance-weight", "1.5"], "Invalid relevance weight '1.5', using default 0.6"),
        (["--relevance-weight", "nan"], "Invalid relevance weight 'nan', using default 0.6"),
        (["--limit", "many"], "Invalid limit 'many', using default 20"),
        (["--limit", "-3"], "Invalid limit '-3', using default 20"),
    ],
)
def test_a_flag_that_cannot_work_is_reported_and_the_default_holds(
    project: Path, arguments: list[str], message: str
) -> None:
    done = brief("--project-root", str(project), *arguments)

    assert done.exit_code == 0
    assert f"scrum-master: {message}\n" in done.stderr
    assert "*Memory: 20 entries (20 local, 0 global)" in done.stdout


def test_a_project_that_is_not_there_is_reported(tmp_path: Path) -> None:
    done = brief("--project-root", str(tmp_path / "nowhere"))

    assert (done.exit_code, done.stdout) == (0, "")
    assert "there is no project in" in done.stderr


def test_a_project_without_lessons_is_reported_where_they_would_be(tmp_path: Path) -> None:
    done = brief("--project-root", str(tmp_path))

    assert (done.exit_code, done.stdout) == (0, "")
    assert f"no lessons: '{tmp_path / 'docs' / 'knowledge-bank'}' has none" in done.stderr


def test_the_command_prints_json(project: Path) -> None:
    done = brief("--project-root", str(project), "--limit", "2", "--json")

    assert Briefing.from_dict(json.loads(done.stdout)) == SessionBriefing(project, memory_injection_limit=2).brief()


def test_flags_win_over_the_environment_and_that_over_the_projects_own_settings(project: Path) -> None:
    (project / ".claude").mkdir()
    own = "memory_injection_limit: 4   # few\nmemory_relevance_weight: '0.3'\nmemory_injection_enabled:\n"
    (project / ".claude" / "scrum-master.local.md").write_text(f"---\n{own}---\nlimit: 1\n", encoding="utf-8")
    root = ["--project-root", str(active_on(project, "hooks"))]

    file = brief(*root)
    variable = brief(*root, SCRUM_MASTER_MEMORY_INJECTION_LIMIT="5")
    flag = brief(*root, "--limit", "6", SCRUM_MASTER_MEMORY_INJECTION_LIMIT="5")
    off = brief(*root, SCRUM_MASTER_MEMORY_INJECTION_ENABLED="false")
    odd = brief(*root, SCRUM_MASTER_MEMORY_INJECTION_ENABLED="perhaps", SCRUM_MASTER_MEMORY_RELEVANCE_WEIGHT="1")

    assert "Memory: 4 entries (4 local, 0 global) | relevance: active, weight=0.3 |" in file.stdout
    assert "Memory: 5 entries" in variable.stdout
    assert "Memory: 6 entries" in flag.stdout
    assert off.stdout == ""
    assert "weight=1.0" in odd.stdout
    assert "Invalid memory_injection_enabled 'perhaps', using default true" in odd.stderr


def test_the_command_loads_nothing_heavy(project: Path) -> None:
    code = (
        "import sys; from langgraph_scrum_master.cli import main\n"
        f"sys.argv = ['scrum-master', 'brief', '--project-root', {str(project)!r}]\nmain()\n"
        "heavy = ('langgraph', 'langchain_core', 'chromadb', 'numpy', 'pydantic', 'structlog', 'asyncio', 'rich')\n"
        "print([name for name in heavy if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.splitlines()[-1] == "[]", done.stderr
    assert "Memory: 20 entries" in done.stdout


def session_start(payload: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the settings in the documentation give a coding agent to run."""
    ((group,),) = json.loads(file_of("briefing.md", ".claude/settings.json"))["hooks"].values()
    (handler,) = group["hooks"]
    return subprocess.run(
        [COMMAND, *shlex.split(handler["command"].removeprefix("scrum-master "))],
        input=payload,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_the_hook_answers_a_starting_session(project: Path, shared: Path) -> None:
    payload = json.dumps({"session_id": "s1", "cwd": str(project), "source": "startup"})

    done = session_start(payload, SCRUM_MASTER_GLOBAL_STORE=str(shared))

    assert done.returncode == 0
    context = SessionBriefing(project, global_store=shared).brief().text
    answer = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": context}}
    assert json.loads(done.stdout) == answer


@pytest.mark.parametrize("payload", ["", "{broken", "[]", "{}", '{"cwd": 7}', '{"cwd": "/nowhere/at/all"}'])
def test_the_hook_is_silent_when_it_has_nothing_to_say(payload: str) -> None:
    done = CliRunner().invoke(app, ["hook", "session-start"], input=payload)

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("scrum-master: ")


def test_the_hook_answers_within_three_seconds_though_git_hangs(project: Path, tmp_path: Path) -> None:
    hanging = tmp_path / "bin" / "git"
    hanging.parent.mkdir()
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)

    started = perf_counter()
    done = session_start(json.dumps({"cwd": str(project)}), PATH=f"{hanging.parent}:{os.environ['PATH']}")

    assert perf_counter() - started < 3
    assert "relevance: inactive" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    assert "git signals are ignored: git took longer than 1.5 s" in done.stderr


def a_graph(briefing: SessionBriefing, checkpointer: Any = None) -> tuple[Any, list[list[Any]]]:
    """A graph whose first step is the briefing, and what its agent got to read."""
    read: list[list[Any]] = []

    def dev(state: MessagesState) -> dict[str, Any]:
        read.append(state["messages"])
        return {"messages": [AIMessage("Done.", name="dev")]}

    builder = StateGraph(MessagesState)
    builder.add_node(briefing.node)
    builder.add_node(dev)
    builder.add_edge(START, "session_briefing")
    builder.add_edge("session_briefing", "dev")
    builder.add_edge("dev", END)
    briefing.check(builder)
    return builder.compile(checkpointer=checkpointer), read


async def test_an_agent_reads_the_briefing_in_graphs_that_are_invoked_and_awaited(project: Path) -> None:
    briefing = SessionBriefing(project)
    graph, read = a_graph(briefing)
    task = {"messages": [HumanMessage("Speed up the cache.", id="task")]}

    graph.invoke(task)
    await graph.ainvoke(task)

    for messages in read:
        assert [message.id for message in messages] == ["task", "session_briefing"]
        assert isinstance(messages[1], HumanMessage)
        assert messages[1].content == briefing.brief().text
        assert messages[1].additional_kwargs == {"lc_source": "session_briefing"}
    assert len(read) == 2


def test_a_thread_is_briefed_once_and_the_scrum_master_takes_it_for_no_turn(project: Path) -> None:
    graph, read = a_graph(SessionBriefing(project), InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}

    graph.invoke({"messages": [HumanMessage("First.")]}, thread)
    graph.invoke({"messages": [HumanMessage("Second.")]}, thread)

    assert [message.id for message in read[1]].count("session_briefing") == 1
    turns = ScrumMaster().observe({"messages": read[1]}).turns
    assert [turn.text for turn in turns] == ["First.", "Done.", "Second."]


@pytest.mark.parametrize("root", ["nowhere", "\0"])
def test_a_graph_goes_on_without_a_briefing(root: str, logged: list[dict[str, object]]) -> None:
    graph, read = a_graph(SessionBriefing(root))

    graph.invoke({"messages": [HumanMessage("Go on.")]})

    assert [message.content for message in read[0]] == ["Go on."]
    assert [(entry["event"], entry["log_level"]) for entry in logged] == [("briefing.impaired", "warning")]


async def test_a_failure_inside_is_logged_and_the_graph_goes_on(project: Path, logged: list[dict[str, object]]) -> None:
    def broken() -> float:
        raise KeyError("no clock")

    briefing = SessionBriefing(project, global_store=project / "store", clock=broken)
    graph, read = a_graph(briefing)

    graph.invoke({"messages": [HumanMessage("Go on.")]})
    awaited = await briefing.async_node({"messages": []})

    assert ([message.content for message in read[0]], awaited) == (["Go on."], {})
    assert [entry["event"] for entry in logged] == ["briefing.failed"] * 2


async def test_the_event_loop_goes_on_while_git_hangs(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nsleep 0.3\nexit 128\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    briefing = SessionBriefing(project)
    graph, read = a_graph(briefing)

    for work in (graph.ainvoke({"messages": []}), briefing.async_node({"messages": []})):
        running = asyncio.ensure_future(work)
        ticks = 0
        while not running.done():
            await asyncio.sleep(0.005)
            ticks += 1
        assert ticks > 20
        assert running.result()["messages"]
    assert len(read) == 1


class Bare(TypedDict):
    messages: list[Any]


class Other(TypedDict):
    task: Annotated[str, "nothing for messages"]


@pytest.mark.parametrize(("schema", "message"), [(Bare, "lose its messages"), (Other, "drop the briefing")])
def test_a_graph_that_would_lose_the_briefing_or_its_messages_is_refused(schema: Any, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        SessionBriefing().check(StateGraph(schema))
