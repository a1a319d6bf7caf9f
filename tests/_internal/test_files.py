"""Files of others, some of them hostile, and files of our own that are never half written."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from builders import a_bank, an_entry
from langgraph_scrum_master import ChromaMemory, SessionBriefing
from langgraph_scrum_master._internal.files import (
    UnfitFileError,
    first_bytes,
    load_text,
    read_bytes,
    read_text,
    write_atomically,
)
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.dialogue.entities import EntityRegistry
from langgraph_scrum_master.errors import DecodeError, NotFoundError, ScrumMasterError
from langgraph_scrum_master.learning.indexers import index_documents
from langgraph_scrum_master.model import Query
from langgraph_scrum_master.replay.databases import is_database
from langgraph_scrum_master.retrieval.sources.architecture import ArchitectureSource
from langgraph_scrum_master.team.record.files import snapshots_in

HUGE = 100_000_000


def sparse(path: Path, size: int = HUGE) -> Path:
    """A file that is as large as that and takes no room."""
    path.touch()
    os.truncate(path, size)
    return path


def fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def test_a_text_is_read_without_its_byte_order_mark_and_with_plain_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\xff")

    assert read_text(tmp_path / "a.md", 100, errors="replace") == "one\ntwo\nthree\ufffd"
    with pytest.raises(DecodeError, match="must be UTF-8"):
        load_text(tmp_path / "a.md", 100)


def test_a_file_may_be_as_large_as_the_limit_and_no_larger(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")

    assert read_bytes(tmp_path / "a", 5) == b"12345"
    with pytest.raises(UnfitFileError, match="larger than 4 bytes"):
        read_bytes(tmp_path / "a", 4)


def test_a_file_that_tells_no_size_is_read_no_further_than_the_limit() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc")

    with pytest.raises(UnfitFileError, match="larger than 10 bytes"):
        read_bytes("/proc/self/status", 10)


def test_pipes_devices_sockets_and_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")

        for name in (fifo(tmp_path / "pipe"), "/dev/zero", "socket"):
            with pytest.raises(DecodeError, match=r"cannot read .*: not a regular file"):
                load_text(name, 100)
            with pytest.raises(UnfitFileError):
                first_bytes(name, 10)
    with pytest.raises(DecodeError, match="Is a directory"):
        load_text(tmp_path, 100)
    with pytest.raises(NotFoundError, match="cannot read 'nowhere': No such file or directory"):
        load_text("nowhere", 100)


def test_a_link_may_lead_elsewhere_in_its_folder_but_not_out_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").write_text("password")
    (folder / "real").write_text("text")
    (folder / "within").symlink_to("real")
    (folder / "out").symlink_to("../secret")
    (folder / "up").symlink_to("..")
    (tmp_path / "alias").symlink_to(folder)

    assert read_text(folder / "within", 100, folder=folder) == "text"
    assert read_text(tmp_path / "alias" / "real", 100, folder=tmp_path / "alias") == "text"
    for path in ("out", "up/secret"):
        with pytest.raises(UnfitFileError, match="leads out of"):
            read_text(folder / path, 100, folder=folder)
    assert read_text(folder / "out", 100) == "password"


async def test_an_architecture_folder_gives_only_files_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "architecture"
    (folder / "odd.md").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("# Queues\n\nThe password of the queues.\n")
    (folder / "1.md").write_text("# Queues\n\nRefunds go through queues.\n")
    (folder / "linked.md").symlink_to(tmp_path / "secret.md")
    (folder / "lock.md").symlink_to("nobody@nowhere:1")
    fifo(folder / "pipe.md")
    sparse(folder / "huge.md")

    found = await ArchitectureSource(str(folder)).find(
        Query(text="Which queues do refunds go through?", agent="dev", now="2026-03-02T09:00:00+00:00"), {}
    )

    assert [context.key for context in found] == ["adr:1.md"]


async def test_an_index_reads_nothing_from_outside_the_project(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (outside / "a.md").write_text("# Secret\n\nThe password.\n")
    (project / "docs").symlink_to(outside)
    from langgraph_scrum_master.learning.indexers import files

    found = files._inspect(project, "docs/a.md", None, lambda _: [])

    assert found == f"leads out of {str(project)!r}"
    assert (await index_documents(ChromaMemory(), project)).written == 0


ENTRIES = [
    *("knowledge add -m memory {}", "memory load -m memory {}", "memory import -m memory {}", "train {}"),
    *("detect {}", "snapshot {}", "replay {}", "report {}", "inspect {} --output page.html", "records list {}"),
    "config show",
]
"""The commands that read a file of the user, or find one by its name."""


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    """Fails instead of waiting for ever, as a pipe makes one do."""

    def end(*_: object) -> None:
        raise AssertionError(f"still reading after {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "huge"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_no_command_hangs_on_a_file_or_reads_without_end(
    entry: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("scrum-master.toml" if entry == "config show" else "given.jsonl")
    match kind:
        case "pipe":
            fifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path.name)
        case _:
            sparse(path, 1 << 31)

    with alarm(30):
        done = CliRunner().invoke(app, entry.format(path).split())

    # A settings file that is no file is not there.
    refused = isinstance(done.exception, ScrumMasterError | SystemExit) and done.exit_code != 0
    assert refused or (entry == "config show" and kind != "huge"), done.exception


@pytest.mark.parametrize("kind", ["pipe", "out", "loop", "huge"])
def test_a_folder_of_recordings_names_what_it_does_not_read(kind: str, tmp_path: Path) -> None:
    folder, path = tmp_path / "folder", tmp_path / "folder" / "odd.json"
    folder.mkdir()
    state = json.dumps({"messages": [{"role": "user", "content": "Hi"}]})
    (folder / "real.json").write_text(state)
    (tmp_path / "secret.json").write_text(state.replace("Hi", "secret"))
    match kind:
        case "pipe":
            fifo(path)
        case "loop":
            path.symlink_to("odd.json")
        case "out":
            path.symlink_to(tmp_path / "secret.json")
        case _:
            sparse(path, 1 << 31)

    with alarm(30):
        done = CliRunner().invoke(app, ["snapshot", str(folder)])

    assert "secret" not in done.stdout
    assert "Hi" in done.stdout


@pytest.mark.parametrize("kind", ["pipe", "out", "loop", "huge"])
def test_a_knowledge_bank_is_read_from_files_of_its_own(kind: str, tmp_path: Path) -> None:
    bank = a_bank(tmp_path / "docs" / "knowledge-bank", an_entry("Refunds go to the queue."))
    path = bank / "heuristics.md"
    path.unlink()
    (tmp_path / "secret.md").write_text("### Secret\n\n- Description: the password\n")
    match kind:
        case "pipe":
            fifo(path)
        case "loop":
            path.symlink_to(path.name)
        case "out":
            path.symlink_to(tmp_path / "secret.md")
        case _:
            sparse(path, 1 << 31)

    with alarm(30):
        text = SessionBriefing(tmp_path).brief().text

    assert "Refunds" in text
    assert "password" not in text


@pytest.mark.parametrize("command", [["knowledge", "add"], ["memory", "load"]])
def test_a_command_refuses_what_is_no_file(command: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*command, "-m", str(tmp_path / "memory"), str(fifo(tmp_path / "pipe"))])

    assert done.exit_code == 1
    assert isinstance(done.exception, DecodeError)
    assert "not a regular file" in str(done.exception)


def test_a_document_of_100_mb_is_refused(tmp_path: Path) -> None:
    huge = sparse(tmp_path / "huge.md")

    done = CliRunner().invoke(app, ["knowledge", "add", "-m", str(tmp_path / "memory"), str(huge)])

    assert str(done.exception) == f"cannot read {str(huge)!r}: larger than 10,000,000 bytes"
    with pytest.raises(DecodeError, match="larger than 10,000,000 bytes"):
        EntityRegistry.load(sparse(tmp_path / "huge.json"))


def test_recordings_are_read_from_regular_files_of_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "state.json").write_text('{"messages": [{"role": "user", "content": "Hi"}]}')
    (folder / "linked.json").symlink_to(tmp_path / "state.json")

    (placed,) = snapshots_in(folder / "linked.json", "linked.json", folder)
    (pipe,) = snapshots_in(fifo(folder / "pipe.json"))

    assert "leads out of" in placed.problem
    assert "not a regular file" in pipe.problem
    assert not is_database(folder / "pipe.json")


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    texts = [letter * 50_000 for letter in "abcdefgh"]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda text: write_atomically(path, text), texts))

    assert path.read_text() in texts
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_lone_surrogate_can_be_written(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a.txt", "\ud800 ö")

    assert (tmp_path / "a.txt").read_text("utf-8") == "\\ud800 ö"
