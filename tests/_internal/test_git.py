"""Nothing of a repository is executed, whatever its configuration says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import langgraph_scrum_master
from langgraph_scrum_master import ChromaMemory, ScrumMasterError
from langgraph_scrum_master._internal.git import git
from langgraph_scrum_master.briefing.workspace import collect_context_signals
from langgraph_scrum_master.learning.indexers import index_code, index_commits, index_documents

ADR = "# ADR-1: Use queues\n\n## Status\n\nAccepted\n"


class Trap:
    """A program that leaves a mark when it is run."""

    def __init__(self, folder: Path) -> None:
        self.mark = folder / "executed"
        self.program = folder / "trap.sh"
        self.program.write_text(f"#!/bin/sh\ntouch '{self.mark}'\nexit 1\n")
        self.program.chmod(0o755)

    @property
    def sprung(self) -> bool:
        return self.mark.exists()


def run_git(root: Path, *arguments: str, given: str = "") -> str:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    command = ["git", "-C", str(root), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, input=given, text=True).stdout.strip()


def configure(root: Path, **values: str) -> None:
    for name, value in values.items():
        run_git(root, "config", name.replace("__", "."), value)


def fsmonitor(root: Path, program: Path) -> None:
    configure(root, core__fsmonitor=str(program))


def bare_in_docs(root: Path, program: Path) -> None:
    docs = root / "docs"
    subprocess.run(["git", "init", "-q", "--bare", str(docs)], check=True)
    run_git(docs, "config", "core.bare", "false")
    run_git(docs, "--git-dir", str(docs), "config", "core.worktree", str(docs))
    run_git(docs, "--git-dir", str(docs), "config", "core.fsmonitor", str(program))


def hooks(root: Path, program: Path) -> None:
    folder = root / "hooks"
    folder.mkdir()
    for name in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (folder / name).symlink_to(program)
    configure(root, core__hooksPath=str(folder))


def external_diff(root: Path, program: Path) -> None:
    configure(root, diff__external=str(program))


def diff_drivers(root: Path, program: Path) -> None:
    (root / ".gitattributes").write_text("* diff=trap\n")
    configure(root, diff__trap__command=str(program), diff__trap__textconv=str(program))


def textconv(root: Path, program: Path) -> None:
    (root / ".gitattributes").write_text("* diff=trap\n")
    configure(root, diff__trap__textconv=str(program))


def pager(root: Path, program: Path) -> None:
    configure(root, core__pager=str(program), pager__log=str(program), pager__diff=str(program))


def aliases(root: Path, program: Path) -> None:
    for name in ("log", "diff", "ls-files", "rev-parse", "symbolic-ref"):
        run_git(root, "config", f"alias.{name}", f"!{program}")


def filters(root: Path, program: Path) -> None:
    (root / ".gitattributes").write_text("* filter=trap\n")
    configure(root, filter__trap__clean=str(program), filter__trap__smudge=str(program))
    (root / "a.py").write_text("def changed(): ...\n")


def fetch_by_ssh(root: Path, program: Path) -> None:
    lose_an_object(root, "ssh://example.org/a")
    configure(root, core__sshCommand=str(program))


def fetch_by_program(root: Path, program: Path) -> None:
    lose_an_object(root, f"ext::{program}")
    configure(root, protocol__ext__allow="always")


def fetch_from_folder(root: Path, program: Path) -> None:
    lose_an_object(root, str(root))
    configure(root, remote__origin__uploadpack=str(program), protocol__file__allow="always")


def lose_an_object(root: Path, address: str) -> None:
    """Make git want to fetch, as of a partial clone."""
    blob = run_git(root, "rev-parse", "HEAD:a.py")
    configure(root, core__repositoryformatversion="1", extensions__partialClone="origin", remote__origin__url=address)
    configure(root, remote__origin__promisor="true")
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


def signatures(root: Path, program: Path) -> None:
    raw = run_git(root, "cat-file", "commit", "HEAD")
    head, message = raw.split("\n\n", 1)
    signed = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n{message}\n"
    run_git(root, "reset", "-q", "--soft", run_git(root, "hash-object", "-t", "commit", "-w", "--stdin", given=signed))
    configure(root, log__showSignature="true", gpg__program=str(program))


HOSTILE = [
    fsmonitor,
    bare_in_docs,
    hooks,
    external_diff,
    diff_drivers,
    textconv,
    pager,
    aliases,
    filters,
    fetch_by_ssh,
    fetch_by_program,
    fetch_from_folder,
    signatures,
]


async def code(root: Path) -> None:
    await index_code(ChromaMemory(), root)


async def documents(root: Path) -> None:
    await index_documents(ChromaMemory(), root)
    await index_documents(ChromaMemory(), root / "docs")


async def commits(root: Path) -> None:
    for folder in (root, root / "docs"):
        # Of some of these repositories there is no history to be had.
        try:
            await index_commits(ChromaMemory(), folder)
        except ScrumMasterError:
            continue


async def briefing(root: Path) -> None:
    for folder in (root, root / "docs"):
        collect_context_signals(folder, lambda _: None)


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "cloned"
    (root / "docs" / "adr").mkdir(parents=True)
    run_git(root, "init", "-q", "-b", "main")
    for number in range(5):
        (root / "a.py").write_text(f"def f{number}(): ...\n" * 20)
        (root / "docs" / "adr" / "1.md").write_text(f"{ADR}\nVersion {number}.\n")
        run_git(root, "add", "-A")
        run_git(root, "commit", "-qm", f"Change {number}")
    return root


@pytest.mark.parametrize("command", [code, documents, commits, briefing])
@pytest.mark.parametrize("hostile", HOSTILE)
async def test_a_repository_cannot_have_its_programs_run(
    hostile: Callable[[Path, Path], None], command: Callable[[Path], object], repository: Path, trap: Trap
) -> None:
    hostile(repository, trap.program)
    trap.mark.unlink(missing_ok=True)

    await command(repository)  # type: ignore[misc]

    assert not trap.sprung


@pytest.mark.parametrize("arguments", [("log", "-p"), ("diff", "HEAD~1..HEAD"), ("log", "--numstat", "-M")])
@pytest.mark.parametrize("hostile", [external_diff, diff_drivers, textconv, pager, signatures])
def test_patches_are_made_without_the_programs_of_a_repository(
    hostile: Callable[[Path, Path], None], arguments: tuple[str, ...], repository: Path, trap: Trap
) -> None:
    hostile(repository, trap.program)
    trap.mark.unlink(missing_ok=True)

    assert git(repository, *arguments).code == 0  # type: ignore[arg-type]
    assert not trap.sprung


@pytest.mark.parametrize("setting", ["core.attributesFile", "diff.orderFile", "mailmap.file"])
def test_a_repository_cannot_name_files_that_never_end(setting: str, repository: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "endless")
    run_git(repository, "config", setting, str(tmp_path / "endless"))

    assert git(repository, "log", "--numstat", seconds=10).code == 0


def test_the_environment_cannot_lead_git_elsewhere(
    repository: Path, trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(repository / "elsewhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap.program))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(trap.program))

    assert git(repository, "ls-files").text == "a.py\ndocs/adr/1.md\n"
    assert not trap.sprung


def test_a_folder_that_only_looks_like_a_repository_is_none(repository: Path, trap: Trap) -> None:
    bare_in_docs(repository, trap.program)

    assert git(repository / "docs", "ls-files").code == 128


def test_names_that_are_not_utf_8_are_decoded(repository: Path) -> None:
    Path(os.fsdecode(os.fsencode(repository) + b"/\xff.py")).touch()

    assert "\ufffd.py" in git(repository, "ls-files", "-z", "--others").text.split("\0")


def test_what_takes_too_long_is_ended(repository: Path) -> None:
    os.mkfifo(repository / ".git" / "info" / "waits")
    configure(repository, core__excludesFile=str(repository / ".git" / "info" / "waits"))

    with pytest.raises(TimeoutError, match=r"git ls-files took longer than 0\.2 s"):
        git(repository, "ls-files", "--others", "--exclude-standard", seconds=0.2)


def test_only_one_module_starts_processes() -> None:
    package = Path(langgraph_scrum_master.__file__).parent
    importing = [path for path in package.rglob("*.py") if "import subprocess" in path.read_text("utf-8")]

    assert [path.relative_to(package).as_posix() for path in importing] == ["_internal/git.py"]
