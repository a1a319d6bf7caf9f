from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from langgraph_scrum_master import ChromaMemory
from langgraph_scrum_master.cli.app import COMMANDS, app
from langgraph_scrum_master.cli.examples import EXAMPLES
from langgraph_scrum_master.errors import ScrumMasterError
from langgraph_scrum_master.team.record.files import states_in
from pages import PAGES

ROOT = Path(__file__).parents[2]
COMMAND = str(Path(sys.executable).with_name("scrum-master"))


def scrum_master(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False, input=given)


def test_without_a_command_it_prints_help() -> None:
    shown = CliRunner().invoke(app, [])

    for command in ("run", "detect", "version"):
        assert command in shown.output


def test_the_version_is_the_installed_one() -> None:
    assert scrum_master("version").stdout == version("langgraph-scrum-master") + "\n"


@pytest.mark.parametrize("call", [["version"], ["--version"]])
def test_a_command_and_an_option_print_the_version(call: list[str]) -> None:
    done = CliRunner().invoke(app, call)

    assert (done.exit_code, done.stdout) == (0, version("langgraph-scrum-master") + "\n")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """What `scrum-master run` printed and drew."""
    picture = tmp_path_factory.mktemp("run") / "run.svg"
    return scrum_master("run", "--svg", str(picture)), picture


Played = tuple[subprocess.CompletedProcess[str], Path]


@pytest.mark.parametrize(
    "part",
    [
        "Stopped at the step limit of 12",
        "Gate passed",
        "@dev-1",
        "clarification_requested, confidence 0.90",
        "ADR-0012: Idempotency keys in Redis",
        "not relevant enough",
        "<injected_context",
    ],
)
def test_run_shows_both_endings_the_gap_the_choice_and_the_text(played: Played, part: str) -> None:
    done, _ = played

    assert done.returncode == 0, done.stderr
    assert part in done.stdout


def test_the_picture_in_the_readme_is_what_run_draws(played: Played) -> None:
    _, picture = played

    committed = ROOT / "docs" / "images" / "run.svg"
    assert picture.read_text(encoding="utf-8") == committed.read_text(encoding="utf-8"), "make picture draws it anew"


STUCK = {"messages": [{"role": "assistant", "name": "dev", "content": "Which database do we use?", "id": "m1"}]}


@pytest.mark.parametrize("state", [STUCK, STUCK["messages"]], ids=["state", "messages"])
def test_detect_says_who_lacks_what(tmp_path: Path, state: Any) -> None:
    (tmp_path / "state.json").write_text(json.dumps(state))

    shown = scrum_master("detect", str(tmp_path / "state.json"))
    (gap,) = json.loads(scrum_master("detect", "--json", str(tmp_path / "state.json")).stdout)

    assert "dev" in shown.stdout
    assert "asks (model " in shown.stdout
    assert (gap["agent"], gap["reason"]) == ("dev", "clarification_requested")


def test_detect_reads_standard_input_and_reports_no_gap() -> None:
    done = scrum_master("detect", "-", given='{"messages": []}')

    assert (done.returncode, done.stdout) == (0, "standard input: 1 state\nNo gap: nobody lacks context.\n")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "there is no "),
        ("{broken", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("7", "must hold a snapshot, a state (with `messages` or another key that is read), or messages"),
    ],
)
def test_a_bad_file_is_reported_in_one_line_with_exit_code_2(
    tmp_path: Path, content: str | None, expected: str
) -> None:
    path = tmp_path / "state.json"
    if content is not None:
        path.write_text(content)

    done = scrum_master("detect", str(path))

    assert done.returncode == 2
    assert done.stderr.startswith("scrum-master: ")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


ASKED = "Which queue do refunds go to?"


@pytest.mark.parametrize(
    "data",
    [
        {"schema": 2, "state": {"messages": [{"role": "assistant", "name": "dev", "content": ASKED}]}},
        [{"source": "dev", "content": ASKED, "type": "TextMessage"}],
        {"tasks_output": [{"agent": "dev", "raw": ASKED}]},
        {"values": {"messages": [{"type": "ai", "name": "dev", "content": ASKED}]}, "created_at": ""},
    ],
    ids=["snapshot", "autogen", "crewai", "server"],
)
def test_detect_accepts_the_formats_of_replay(data: object) -> None:
    done = CliRunner().invoke(app, ["detect", "-", "--json"], input=json.dumps(data))

    assert [(gap["agent"], gap["reason"]) for gap in json.loads(done.stdout)] == [("dev", "clarification_requested")]


def test_detect_reads_the_other_keys_of_a_state() -> None:
    asked = json.dumps({"messages": STUCK["messages"], "code_patterns": "as in the billing service"})

    assert states_in(Path("-"), asked)["-"]["code_patterns"] == "as in the billing service"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, "must hold a snapshot, a state") for text in ('{"mesages": []}', '{"foo": 1}', "{}", "[]")),
    ],
)
def test_detect_rejects_unknown_formats(text: str, expected: str) -> None:
    done = CliRunner().invoke(app, ["detect", "-"], input=text)

    assert done.stdout == ""
    with pytest.raises(ScrumMasterError, match=re.escape(expected)):
        raise done.exception or AssertionError


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with files that are not what commands take."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("empty.json", "empty.jsonl", "folder/notes.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "binary.json").write_bytes(bytes(range(128, 256)))
    (tmp_path / "cut.db").write_bytes(b"SQLite format 3\0cut")
    (tmp_path / "chat.json").write_text(json.dumps(STUCK["messages"]))
    return tmp_path


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["", "json"])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("detect empty.json", "'empty.json' is empty: it must hold JSON"),
        ("detect folder", "there are no snapshots in 'folder'"),
        ("replay missing", "there is no 'missing': pass a file or folder of snapshots"),
        ("replay mysql://me:hunter2@host/x", "there is no 'mysql': pass"),
        ("replay empty.jsonl", "nothing to replay in 'empty.jsonl': it has no snapshots, states or messages"),
        ("replay binary.json", "there is nothing to replay in 'binary.json'"),
        ("replay folder", "it has no .json or .jsonl files"),
        ("replay cut.db --thread x", "'cut.db' is not a checkpoint database"),
        ("replay chat.json --thread x", "there is no thread 'x' in 'chat.json': its steps have no thread"),
        ("inspect chat.json --port 8000", "--port 8000 needs --serve: add --serve, or remove --port"),
        ("replay chat.json --memory folder", "there is no memory in 'folder'"),
        ("replay chat.json --config empty.json", "'empty.json' is empty"),
        ("inspect empty.json", "there is nothing to inspect in 'empty.json'"),
        ("inspect chat.json -o chat.json/page.html", "'chat.json' is not a folder"),
        ("snapshot empty.jsonl", "there is nothing to save in 'empty.jsonl': it has no"),
        ("snapshot chat.json --out folder", "cannot write 'folder': Is a directory"),
        ("memory check --memory folder", "there is no memory in 'folder': fill one, or pass"),
        ("memory search x --memory chat.json", "there is no memory in 'chat.json'"),
        ("memory load empty.jsonl --memory chat.json", "'chat.json' is not a folder: pass one with --memory"),
        ("index values --memory folder", "there is no memory in 'folder'"),
        ("knowledge add empty.json", "'empty.json': a document's text must be a non-empty string"),
        ("records list empty.json", "'empty.json' is not a LangGraph store"),
    ],
)
def test_bad_input_is_reported_and_writes_nothing(place: Path, call: str, expected: str, options: list[str]) -> None:
    before = sorted(place.rglob("*"))

    done = CliRunner().invoke(app, [*call.split(), *options])

    assert isinstance(done.exception, ScrumMasterError), done.output
    assert expected in str(done.exception)
    assert "hunter2" not in f"{done.output}{done.exception}"
    assert not options or not done.stdout or json.loads(done.stdout)["steps"] == []
    assert sorted(place.rglob("*")) == before


def test_an_empty_query_is_rejected(place: Path) -> None:
    assert CliRunner().invoke(app, ["remember", "Refunds go to refunds-v2.", "--memory", "m"]).exit_code == 0

    for command in ("memory", "knowledge"):
        done = CliRunner().invoke(app, [command, "search", " ", "--memory", "m"])
        assert "the query must not be empty, got ' '" in str(done.exception)


def test_an_error_of_the_system_is_reported_in_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([COMMAND, "version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (done.returncode, done.stderr) == (2, "scrum-master: [Errno 28] No space left on device\n")


@pytest.mark.skipif(os.name != "posix" or not shutil.which("setpriv"), reason="permissions cannot be given up here")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (["replay", "locked"], "cannot read 'locked': Permission denied"),
        (["replay", "locked/chat.json"], "cannot read 'locked/chat.json': Permission denied"),
        (["brief", "--project-root", "locked"], "Permission denied"),
    ],
)
def test_missing_permissions_are_reported(place: Path, call: list[str], expected: str) -> None:
    (place / "locked").mkdir(mode=0)
    # Root may read all but for this.
    without = ["--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []

    done = subprocess.run(["setpriv", *without, COMMAND, *call], capture_output=True, text=True, check=False)

    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_odd_characters_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    odd = {"messages": [{"role": "assistant", "name": "dev", "content": "Which \ud800 database do we use?"}]}
    (tmp_path / "state.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(odd).encode())

    for options in ([], ["--json"]):
        done = scrum_master("detect", str(tmp_path / "state.json"), *options)
        assert (done.returncode, "clarification_requested" in done.stdout) == (0, True), done.stderr


def test_a_picture_that_cannot_be_written_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = scrum_master("run", "--svg", str(tmp_path / "file" / "run.svg"))

    assert done.returncode == 2
    assert done.stderr.startswith("scrum-master: cannot write")


def test_the_reference_names_every_command() -> None:
    reference = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")

    assert [name for name in COMMANDS if f"`scrum-master {name}" not in reference] == []


def _named(*words: str) -> tuple[Any, list[str]]:
    """The command of these words, and what is left of them."""
    command: Any = get_command(app)
    rest = list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    return command, rest


@pytest.mark.parametrize("call", [call for calls in EXAMPLES.values() for call in calls])
def test_examples_in_the_help_are_valid_calls(call: str) -> None:
    command, rest = _named(*shlex.split(re.split(" [<>|] ", call)[0]))

    assert not hasattr(command, "commands"), call
    command.make_context(command.name, rest)


def _calls_in(text: str) -> Iterator[str]:
    """What the prose of a page has one call, a call for each of the commands of `a | b`."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    for call in re.findall(r"`scrum-master ([^`]+)`", prose):
        if several := re.search(r"[\w-]+(?: \\?\| [\w-]+)+", call):
            yield from (call.replace(several[0], name) for name in re.split(r" \\?\| ", several[0]))
        else:
            yield call


def _too_much(call: str) -> list[str]:
    """What the command of a call does not take; an option that it does not have is an error."""
    command, rest = _named(*(word for word in shlex.split(call) if word != "…"))
    left: list[str] = command.make_parser(typer.Context(command)).parse_args(rest)[1]
    return left


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_calls_in_the_prose_of_a_page_are_valid(page: Path) -> None:
    calls = set(_calls_in(page.read_text(encoding="utf-8")))

    assert {call: left for call in calls if (left := _too_much(call))} == {}


def test_an_invalid_call_is_noticed() -> None:
    assert list(_calls_in("`scrum-master index code \\| docs X`, `scrum-master run`")) == [
        "index code X",
        "index docs X",
        "run",
    ]
    assert _too_much("memory check FOLDER") == ["FOLDER"]
    assert _too_much("memory chekc --repair") == ["chekc", "--repair"]
    with pytest.raises(Exception, match="No such option: --repare"):
        _too_much("memory check --repare")


def test_every_command_has_examples() -> None:
    for path, command in _leaves(get_command(app)):
        shown = [line.partition("   #")[0] for line in (command.epilog or "").splitlines()]

        assert shown[:1] == ["Examples:"], path
        assert shown[1:], path
        assert {call.startswith(f"scrum-master {path}") for call in shown[1:]} == {True}, path


def test_examples_are_for_existing_commands() -> None:
    assert [path for path in EXAMPLES if path and _named(*path.split())[1]] == []


def test_the_first_help_shows_where_to_start() -> None:
    assert "scrum-master run   # see what it does" in CliRunner().invoke(app, ["--help"]).stdout


def test_help_does_not_break_lines_where_its_source_does() -> None:
    shown = " ".join(CliRunner().invoke(app, ["detect", "--help"], env={"COLUMNS": "200"}).stdout.split("\n"))

    assert "keys that the scrum master reads." in shown


def _leaves(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if not (subs := getattr(command, "commands", {})):
        yield path, command
    for name in subs:
        yield from _leaves(subs[name], f"{path} {name}".strip())


def test_every_command_has_json_output() -> None:
    without = {
        name
        for name, command in _leaves(get_command(app))
        if not any("--json" in parameter.opts for parameter in command.params)
    }

    assert without == {
        "mcp",
        "memory export",
        "config write",
        "hook session-start",
        "hook user-prompt-submit",
        "hook post-tool-failure",
        "hook stop",
        "hook pre-compact",
        "hook session-end",
    }


def on_a_terminal(*arguments: str) -> tuple[str, str]:
    """What a command prints on standard output, and what it shows on a standard error that is a terminal."""
    ours, its = pty.openpty()
    environ = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=its, text=True, check=True, env=environ)
    os.close(its)
    seen = b""
    with suppress(OSError):
        while some := os.read(ours, 4096):
            seen += some
    os.close(ours)
    return done.stdout, seen.decode()


def test_the_progress_of_a_replay_is_shown_only_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text(json.dumps(STUCK["messages"] * 3))
    command = ["replay", str(tmp_path / "chat.json")]

    shown, seen = on_a_terminal(*command)
    _, silent = on_a_terminal(*command, "--json")
    forced = {**os.environ, "FORCE_COLOR": "1"}
    piped = subprocess.run([COMMAND, *command], capture_output=True, text=True, check=True, env=forced)

    assert re.search(r"Replaying.* \S*2/3\x1b", seen)
    assert "Replaying" not in shown
    assert silent == piped.stderr == ""


def test_both_runs_of_the_example_can_be_printed_as_json() -> None:
    done = json.loads(CliRunner().invoke(app, ["run", "--json"]).stdout)

    assert (done["without"]["passed"], done["with"]["passed"]) == (False, True)
    assert done["with"]["result"]["gap"]["agent"] == "dev"


def test_long_values_are_folded_and_not_truncated(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "a-name-" + "of-a-name-" * 8 + "end"
    monkeypatch.setenv("SCRUM_MASTER_MAX_CONTEXT_SIZE_BYTES", "3000")
    monkeypatch.setenv("SCRUM_MASTER_MEMORY_PATH", str(place / long))
    (place / "rows.jsonl").write_text(json.dumps({"key": long, "content": "Refunds go to billing."}))
    assert CliRunner().invoke(app, ["memory", "load", "rows.jsonl"]).exit_code == 0

    for call in (["config", "show"], ["replay", "chat.json"], ["memory", "search", "refunds"]):
        done = CliRunner().invoke(app, call, env={"COLUMNS": "80"})
        assert (done.exit_code, "…" in done.stdout) == (0, False), done.output


def test_a_search_shows_only_spaces_that_count(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    row = {"key": "queue", "content": "Refunds go to the queue refunds-v2.", "metadata": {"created_at": "2026-03-02"}}
    (place / "texts.jsonl").write_text(json.dumps(row))
    CliRunner().invoke(app, ["memory", "load", "-m", "m", "texts.jsonl", "--embedder", "hash"], catch_exceptions=False)

    done = CliRunner().invoke(
        app, ["memory", "search", "-m", "m", "--embedder", "hash", "Which queue do refunds go to?"]
    )

    assert re.search(r"E\d+ \d\.\d\d", done.stdout)
    assert not re.search(r"\bE[234] ", done.stdout)


def test_warnings_go_to_standard_error_and_json_stays_pure(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    asyncio.run(ChromaMemory(folder).store_embedding("queue", "Refunds go to the queue billing-v2.", {}))
    with closing(sqlite3.connect(folder / "memory.sqlite3")) as database, database:
        database.execute("DROP TABLE postings_data")

    done = scrum_master("memory", "search", "Where do refunds go?", "--memory", str(folder), "--json")

    assert [row["key"] for row in json.loads(done.stdout)] == ["queue"]
    assert done.stderr.startswith("WARNING: memory.rebuilt "), done.stderr
