"""Commits, from `git log`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from langgraph_scrum_master.blocking import off_loop
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.index.files import IndexReport, Progress, Shelf
from langgraph_scrum_master.learned import Commit
from langgraph_scrum_master.memories import Memory

BATCH = 500
"""Commits that are kept at once; after each, progress is told, and the indexing may be interrupted."""

_FORMAT = "%x1e%H%x1f%an%x1f%ae%x1f%aI%x1f%B%x1f"
_HEAD = "head"


async def index_commits(memory: Shelf, root: str | Path, progress: Progress | None = None) -> IndexReport:
    """Keep the commits of a repository in the memory's commits; only those since the last time are read."""
    shelf = memory.beside("commits")
    book = shelf.beside("index-commits")
    noted = (await book.get_many([_HEAD])).get(_HEAD)
    last = str(noted.metadata.get("sha", "")) if noted else ""
    commits = await off_loop(commits_since, Path(root), last)
    for start in range(0, len(commits), BATCH):
        part = commits[start : start + BATCH]
        await shelf.store_many([commit.kept() for commit in part])
        # Oldest first: whatever was kept is not read again.
        await book.store_many([Memory(content=_HEAD, key=_HEAD, metadata={"sha": part[-1].sha})])
        if progress is not None:
            progress(start + len(part), len(commits))
    return IndexReport(written=len(commits), unchanged=0 if commits else 1)


def commits_since(root: Path, last: str) -> list[Commit]:
    """The commits since this one, oldest first; all, if it is not among those before the present one."""
    _git(root, "rev-parse", "--git-dir")
    if not _git(root, "rev-list", "-n1", "--all").strip():
        return []
    known = bool(last) and _runs(root, "merge-base", "--is-ancestor", last, "HEAD")
    log = _git(
        root,
        "log",
        "--reverse",
        "--no-merges",
        "--numstat",
        f"--format={_FORMAT}",
        *([f"{last}..HEAD"] if known else []),
    )
    return list(_parsed(log))


def _parsed(log: str) -> Iterator[Commit]:
    for entry in log.split("\x1e")[1:]:
        sha, author, email, timestamp, message, numbers = entry.split("\x1f", 5)
        rows = [row.split("\t", 2) for row in numbers.strip().split("\n") if row.count("\t") >= 2]
        yield Commit(
            sha=sha,
            message=message.strip(),
            author=author,
            author_email=email,
            timestamp=timestamp,
            files_changed=tuple(path for _, _, path in rows),
            insertions=sum(int(added) for added, _, _ in rows if added.isdigit()),
            deletions=sum(int(taken) for _, taken, _ in rows if taken.isdigit()),
        )


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)
    except OSError as error:
        raise ConfigError(f"git cannot be run: {error.strerror}") from error
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip().split("\n")[-1]
        raise ConfigError(f"{str(root)!r} must be in a git repository: {told}")
    return done.stdout.decode(errors="replace")


def _runs(root: Path, *arguments: str) -> bool:
    return not subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False).returncode
