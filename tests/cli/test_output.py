"""What commands print: pure JSON where it was asked for, and readable text on narrow terminals."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from builders import a_bank, an_entry
from langgraph_scrum_master import ChromaMemory, Memory
from langgraph_scrum_master.cli.app import Commands, app

COMMAND = str(Path(sys.executable).with_name("scrum-master"))
ASKED = "Which queue do refunds above five hundred euros use, and who approves them?"
DECISION = "Refunds above 500 euros go to the queue billing-v2 and are approved by Finance."
GOAL = ("--domain", "debugging", "--strategy", "ask-user", "--goal", "Find out why refunds are slow")


def commands(tree: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """All commands with their paths, without groups."""
    for name, command in (Commands() if tree is None else tree).items():
        below = getattr(command, "commands", None)
        yield from commands(below, (*path, name)) if below else [(" ".join((*path, name)), command)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which every command has something to show."""
    place = tmp_path_factory.mktemp("place")
    messages = [{"role": "assistant", "name": "developer", "content": ASKED, "id": f"m{i}"} for i in range(5)]
    state = {"messages": messages, "decisions": [{"agent": "architect", "summary": DECISION, "rationale": "Audit."}]}
    (place / "chat.json").write_text(json.dumps(state), encoding="utf-8")
    (place / "document.md").write_text(f"# Refunds\n\n{DECISION}\n", encoding="utf-8")
    (place / "module.py").write_text("def refund():\n    '''Refunds go to the queue.'''\n", encoding="utf-8")
    (place / "texts.jsonl").write_text(json.dumps({"key": "slow", "content": "Refunds are slow."}), encoding="utf-8")
    a_bank(place / "docs" / "knowledge-bank", an_entry("Refunds go to the queue."))
    asyncio.run(ChromaMemory(place / "memory").store_many([Memory(key="queue-of-refunds", content=DECISION)]))
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Start"]):
        who = ["-c", "user.name=M", "-c", "user.email=m@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(place), *who, *arguments], check=True, capture_output=True)
    started = process(place, "experience", "start", *GOAL, "--json")
    (place / "id").write_text(json.loads(started.stdout)["id"], encoding="utf-8")
    return place


def process(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a process, with a setting that is misspelled."""
    environ = {**os.environ, "SCRUM_MASTER_MEMORY_PATH": "memory", "SCRUM_MASTER_NAMESPACES": "x"}
    return subprocess.run(
        [COMMAND, *arguments], cwd=place, env=environ, capture_output=True, text=True, encoding="utf-8", check=False
    )


CALLS = {
    "run": "run",
    "detect": "detect chat.json",
    "snapshot": "snapshot chat.json --out snapshots.jsonl",
    "replay": "replay chat.json --memory memory",
    "report": "report chat.json",
    "inspect": "inspect chat.json --output page.html",
    "memory check": "memory check",
    "memory stats": "memory stats",
    "memory backup": "memory backup backup.sqlite3",
    "memory list": "memory list",
    "memory show": "memory show queue-of-refunds",
    "memory edit": "memory edit queue-of-refunds --tag refunds",
    "hook install": "hook install",
    "hook uninstall": "hook uninstall",
    "memory load": "memory load texts.jsonl",
    "memory search": "memory search refunds",
    "index code": "index code",
    "index commits": "index commits",
    "index docs": "index docs docs",
    "index values": "index values",
    "remember": "remember refunds",
    "experience start": " ".join(["experience", "start", *GOAL[:5], "refunds"]),
    "experience update": "experience update {id} --hypothesis slow",
    "experience list": "experience list",
    "experience resolve": "experience resolve {id} --outcome confirmed",
    "assemble": "assemble refunds",
    "premortem": "premortem debugging",
    "knowledge add": "knowledge add document.md",
    "knowledge search": "knowledge search refunds",
    "knowledge remove": "knowledge remove document.md",
    "brief": "brief",
    "config show": "config show",
    "version": "version",
}
NEED_MORE = {"train", "memory import", "memory forget", "records list", "records show"}
"""Commands with other inputs. They print through the same functions."""


def test_every_command_with_json_is_called_below() -> None:
    with_json = {
        name for name, each in commands() if any("--json" in getattr(option, "opts", []) for option in each.params)
    }

    assert with_json == CALLS.keys() | NEED_MORE


@pytest.mark.parametrize("name", CALLS)
def test_json_is_pure_also_when_a_memory_is_repaired_and_a_setting_is_wrong(name: str, place: Path) -> None:
    with closing(sqlite3.connect(place / "memory" / "memory.sqlite3")) as database, database:
        database.execute("UPDATE statistics SET content = x'00'")
    call = CALLS[name].format(id=(place / "id").read_text(encoding="utf-8")).split()

    done = process(place, *call, "--json")

    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    assert "SCRUM_MASTER_NAMESPACES is not a setting" in done.stderr or name == "brief"


def test_a_library_prints_nothing_where_its_host_configured_no_logging(place: Path) -> None:
    code = (
        "import asyncio, json; from langgraph_scrum_master import ChromaMemory, ContextGap, ScrumMaster;"
        "state = json.load(open('chat.json')); master = ScrumMaster(memory=ChromaMemory('memory'));"
        "ContextGap(gap_id='', agent='', reason='?', context_query='', confidence=7);"
        "print(master.evaluate(state).injected)"
    )
    with closing(sqlite3.connect(place / "memory" / "memory.sqlite3")) as database, database:
        database.execute("UPDATE statistics SET content = x'00'")

    done = subprocess.run([sys.executable, "-c", code], cwd=place, capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("True\n", "")


WIDTH = 40
PLAIN = {"detect", "replay", "run", "memory search", "memory stats", "experience list", "config show", "report"}
"""Commands that lay out their output. The others print Markdown or one line, which terminals wrap."""


def too_long(text: str) -> list[str]:
    """The lines that are longer than the terminal, unless it is for one long word."""
    lines = text.splitlines()
    wide = (line for line in lines if len(line.rstrip()) > WIDTH and not line.startswith("Usage: "))
    return [line for line in wide if max(map(len, line.split())) < WIDTH - 10]


def squeezed(text: str) -> bool:
    """Whether words run down the screen, a few letters a line."""
    return re.search(r"(?:^ *\w{1,3} *\n){4}", text, re.M) is not None


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_output_is_readable_on_a_narrow_terminal(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("SCRUM_MASTER_MEMORY_PATH", "memory")

    done = CliRunner().invoke(app, CALLS[name].split())

    assert done.exit_code == 0, done.output
    assert too_long(done.output) == []
    assert not squeezed(done.output)


@pytest.mark.parametrize("name", ["", *(name for name, _ in commands())])
def test_help_is_readable_on_a_narrow_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))

    text = CliRunner().invoke(app, [*name.split(), "--help"]).stdout

    assert "Options:" in text
    assert too_long(text) == []
    assert not squeezed(text)
    assert re.search(r"[a-z]…", text) is None


def test_names_stay_whole_in_a_narrow_table(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.chdir(place)

    assert "queue-of-refunds" in CliRunner().invoke(app, ["memory", "search", "refunds", "-m", "memory"]).output
    assert "memory_relevance_weight" in CliRunner().invoke(app, ["config", "show"]).output
