"""What commands print of texts that others wrote: no such text may steer the terminal."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
import typer
from langgraph.store.sqlite import SqliteStore
from typer.testing import CliRunner

from builders import a_bank, an_entry
from langgraph_scrum_master import ChromaMemory, Memory, StoreMemory
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.logs import show_warnings
from langgraph_scrum_master.cli.replay import logging_to_stderr
from langgraph_scrum_master.cli.terminal import echo, echo_json

COMMAND = str(Path(sys.executable).with_name("scrum-master"))
SOURCES = Path(__file__).parents[2] / "src" / "langgraph_scrum_master" / "cli"

CLIPBOARD = "\x1b]52;c;cm0gLXJm\x07"
LINK = "\x1b]8;;http://evil.test\x1b\\refunds\x1b]8;;\x1b\\"
C1 = "\x9b31m\x9d0;title\x9c\x85"
EVIL = f"{CLIPBOARD}{LINK}{C1}\x1b[2J\x1bc\r\u202egnillib\u202c\u2066x\u2069\x7f\b"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
COLOUR = re.compile("\x1b\\[[0-9;]*m")


def steering(text: str) -> list[str]:
    """The control characters of a text, except those of colours."""
    return STEERING.findall(COLOUR.sub("", text))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything that commands show has such texts."""
    place = tmp_path_factory.mktemp("place")
    asked = f"{EVIL}Which queue do {EVIL} refunds use?"
    said = {"role": "assistant", "name": f"dev{EVIL}[link=http://evil.test]x", "content": asked, "id": "m1"}
    (place / "chat.json").write_text(json.dumps([said] * 5))
    (place / f"bad{EVIL.replace('/', '')}.json").write_text("{")
    (place / "document.md").write_text(f"# Refunds {EVIL}\n\nRefunds go to the queue {EVIL} billing-v2.\n")
    (place / "module.py").write_text("def refund():\n    '''Refunds go to the queue.'''\n")
    (place / "texts.jsonl").write_text(json.dumps({"key": f"new{EVIL}", "content": EVIL}))
    a_bank(place / "docs" / "knowledge-bank", an_entry(f"Refunds go {EVIL} to the queue."))
    rows = [Memory(key=f"queue{EVIL}", content=f"Refunds go to the queue {EVIL} billing-v2. {EVIL}")]
    asyncio.run(ChromaMemory(place / "memory").store_many(rows))
    with SqliteStore.from_conn_string(str(place / "records.sqlite")) as store:
        store.setup()
        store.put(("context", "s1", "t1"), "turn", {"at": EVIL, "text": EVIL, EVIL: "x"})
        asyncio.run(StoreMemory(store).store_embedding("k", EVIL, {}))
    return place


CALLS = [
    "memory search refunds",
    "memory check",
    "memory stats --all",
    "memory export",
    "memory load texts.jsonl",
    "assemble refunds",
    "remember refunds",
    "experience list",
    "premortem debugging",
    "knowledge add document.md",
    "knowledge search refunds",
    "index code",
    "detect chat.json",
    "replay chat.json",
    "replay chat.json --memory memory",
    "replay chat.json --format html",
    "snapshot chat.json",
    "report chat.json",
    "records list records.sqlite",
    "records show records.sqlite s1",
    "brief",
    "config show",
    "hook install --print",
    "hook uninstall",
    "memory list",
    "memory show EVIL",
    "memory edit EVIL --text refunds",
    "memory backup backup.sqlite",
    "memory import exported.jsonl",
    "memory forget EVIL",
    "index docs",
    "index commits",
    "index values",
    "experience start --domain debugging --strategy check-assumptions --goal EVIL",
    "knowledge remove EVIL",
    "inspect chat.json --output page.html",
    "version",
]

MAY_FAIL = {
    "memory show EVIL",
    "memory edit EVIL --text refunds",
    "memory forget EVIL",
    "knowledge remove EVIL",
    "index values",
    "index commits",
}
"""Commands that end with an error here, which must not steer the terminal either."""

WITHOUT_TEXTS = {
    "run": "shows its own demonstration, on a screen that it redraws",
    "train": "prints figures",
    "mcp": "speaks JSON on its standard output: test_mcp.py",
    "hook session-start": "prints JSON: test_a_hook_hands_on_no_markup_of_an_attack",
    "hook user-prompt-submit": "prints JSON: test_a_hook_hands_on_no_markup_of_an_attack",
    "hook post-tool-failure": "prints JSON, the same function as for user-prompt-submit",
    "hook stop": "prints nothing",
    "hook pre-compact": "prints nothing",
    "hook session-end": "prints nothing",
    "config write": "prints the package's own text",
    "experience update": "prints like `experience list`, and its errors by the same function as all commands",
    "experience resolve": "prints like `experience list`, and its errors by the same function as all commands",
}
"""Commands whose output on the terminal has no texts of others, and why."""


def commands(command: Any, name: str = "") -> Iterator[str]:
    """The names of a command and those below it."""
    below = getattr(command, "commands", {})
    for own, each in below.items():
        yield from commands(each, f"{name} {own}".strip())
    if not below:
        yield name


def test_every_command_is_tested() -> None:
    named = {
        name for name in commands(typer.main.get_command(app)) if any(f"{c} ".startswith(f"{name} ") for c in CALLS)
    }

    assert sorted({*commands(typer.main.get_command(app))} - named) == sorted(WITHOUT_TEXTS)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("colour", [False, True], ids=["plain", "colour"])
def test_no_text_of_others_steers_the_terminal(
    place: Path, monkeypatch: pytest.MonkeyPatch, call: str, colour: bool
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("SCRUM_MASTER_MEMORY_PATH", "memory")
    if colour:
        monkeypatch.setenv("FORCE_COLOR", "1")
    if call in ("experience list", "premortem debugging"):
        start = ["--domain", "debugging", "--strategy", "check-assumptions", "--goal", f"Refunds {EVIL}"]
        CliRunner().invoke(app, ["experience", "start", *start])

    if "exported" in call:
        (place / "exported.jsonl").write_text(CliRunner().invoke(app, ["memory", "export"]).stdout)
    (place / "backup.sqlite").unlink(missing_ok=True)

    done = CliRunner().invoke(app, [EVIL if each == "EVIL" else each for each in call.split()])

    assert done.output.strip() or done.exception
    assert done.exit_code == 0 or call in MAY_FAIL, done.output
    assert steering(done.stdout) == steering(done.stderr) == []
    assert colour or "\x1b" not in done.output


@pytest.mark.parametrize(
    "call", ["memory search refunds", "memory export", "snapshot chat.json", "replay chat.json", "detect chat.json"]
)
def test_json_has_the_whole_text_and_no_control_characters(
    place: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("SCRUM_MASTER_MEMORY_PATH", "memory")
    lines = call in ("memory export", "snapshot chat.json")

    done = CliRunner().invoke(app, [*call.split(), *([] if lines else ["--json"])])

    documents = [json.loads(line) for line in done.stdout.splitlines()] if lines else [json.loads(done.stdout)]
    assert "\\u001b]52;c;cm0gLXJm\\u0007" in json.dumps(documents)
    assert "\\u009b31m" in json.dumps(documents)
    assert STEERING.findall(done.stdout) == []


@pytest.mark.parametrize(
    "arguments",
    [
        [f"no-command{EVIL}"],
        ["detect", f"--no-option{EVIL}"],
        ["detect", f"missing{EVIL}.json"],
        ["memory", "search", "x", "-k", f"{EVIL}"],
        ["replay", "."],
        ["records", "show", "records.sqlite", f"s{EVIL}"],
        ["brief", "--limit", f"{EVIL}"],
    ],
    ids=lambda arguments: arguments[0][:10],
)
@pytest.mark.parametrize("colour", [{}, {"FORCE_COLOR": "1"}], ids=["plain", "colour"])
def test_no_error_message_steers_the_terminal(place: Path, arguments: list[str], colour: dict[str, str]) -> None:
    path = os.pathsep.join((os.environ["PYTHONPATH"], str(SOURCES.parents[1])))
    environ = {**os.environ, **colour, "PYTHONPATH": path}
    done = subprocess.run([COMMAND, *arguments], capture_output=True, cwd=place, check=False, env=environ)

    assert done.stderr.strip()
    assert steering(done.stdout.decode()) == steering(done.stderr.decode()) == []
    assert colour or b"\x1b" not in done.stdout + done.stderr


def test_no_log_line_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("langgraph_scrum_master")
    before = logger.handlers[:]
    try:
        show_warnings()
        logger.warning("memory.rebuilt %s", EVIL)
    finally:
        logger.handlers[:] = before
    with logging_to_stderr():
        structlog.get_logger().warning(f"event {EVIL}", why=EVIL)

    shown = capsys.readouterr()
    assert shown.err.count("]52;c;cm0gLXJm") == 3
    assert steering(shown.err) == []


def test_text_keeps_its_lines_tabs_and_letters(capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"größe\t1{EVIL}\r\n日本 👩‍💻")
    echo_json(json.dumps({"text": EVIL, "flag": "\U000e0041 ü"}, ensure_ascii=False))

    text, data = capsys.readouterr().out.rstrip().rsplit("\n", 1)
    assert text.startswith("größe\t1]52;c;")
    assert text.endswith("\n日本 👩‍💻")
    assert json.loads(data) == {"text": EVIL, "flag": "\U000e0041 ü"}
    assert "ü" in data


def test_a_console_keeps_its_colours_and_writes_no_links(capsys: pytest.CaptureFixture[str]) -> None:
    Console(force_terminal=True, color_system="standard").print(f"[red]red[/] [link=http://evil.test]here[/] {EVIL}")

    shown = capsys.readouterr().out
    assert "\x1b[31mred\x1b[0m here" in shown
    assert steering(shown) == []


@pytest.mark.parametrize("file", sorted(SOURCES.glob("*.py")), ids=lambda file: file.name)
def test_commands_print_only_through_the_helpers(file: Path) -> None:
    others = re.findall(r"typer\.s?echo\(|\bprint\(|from rich\.console import.*\bConsole\b", file.read_text())

    assert [each for each in others if each != "print("] == (["typer.echo("] * 2 if file.name == "terminal.py" else [])
    assert not re.search(r"(?<![.\w])print\(|sys\.std(?:out|err)\.write", file.read_text())
