"""Indexes commits, read from `git log`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from langgraph_scrum_master._internal.files import LARGEST_DOCUMENT, load_text
from langgraph_scrum_master._internal.git import Subcommand, git
from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.learning.indexers.files import (
    INDEX,
    IndexProgress,
    IndexReport,
    indexed_memory,
    store_changed,
)
from langgraph_scrum_master.learning.records import Commit
from langgraph_scrum_master.protocols import FullMemory, MemoryStore

_BATCH = 500
"""Commits per write. Progress is reported after each write, and indexing can be interrupted there."""

_HEAD = "head"
_FIELDS = ("%m", "%H", "%an", "%ae", "%aI", "%B", "")
_LOG = ("--no-merges", "--numstat", "-z", "-M")

_SECONDS = 1_800.0
"""The timeout for reading a history, by hand: some have a million commits."""


class History(NamedTuple):
    """The changes of a repository's history since a commit."""

    head: str
    """The current commit; empty if there is none."""
    new: Sequence[Commit] = ()
    """New commits, oldest first."""
    gone: Collection[str] = ()
    """Commits that are no longer in the history, for example after a rebase."""
    whole: bool = False
    """Whether `new` is the complete history."""
    shallow: bool = False
    """Whether the clone is shallow."""


async def index_commits(memory: MemoryStore, root: str | Path, progress: IndexProgress | None = None) -> IndexReport:
    """Store a repository's commits, except merges, on the memory's shelf `commits`. Only new ones are read."""
    shelf = indexed_memory(memory, "index_commits", "shelves").beside("commits")
    facts = (await shelf.notes(INDEX, [_HEAD])).get(_HEAD, {})
    last, stored = str(facts.get("sha", "")), int(facts.get("count", 0))
    history = await off_loop(history_since, Path(root), last, bool(facts.get("shallow")))
    gone = history.gone or (await _rewritten(shelf, history.new) if last and history.whole else ())
    if gone:
        await shelf.forget(*gone)
        stored -= len(gone)
    written = 0
    for start in range(0, len(history.new), _BATCH):
        part = history.new[start : start + _BATCH]
        written += await store_changed(shelf, [commit.to_memory() for commit in part])
        # Oldest first: after an interruption, stored commits are not read again.
        await shelf.save_notes(
            INDEX, {_HEAD: {"sha": part[-1].sha, "count": stored + written, "shallow": history.shallow}}
        )
        if progress is not None:
            progress(start + len(part), len(history.new))
    if history.head != last:
        await shelf.save_notes(
            INDEX, {_HEAD: {"sha": history.head, "count": stored + written, "shallow": history.shallow}}
        )
    return IndexReport(written=written, removed=len(gone), unchanged=stored)


async def _rewritten(shelf: FullMemory, commits: Sequence[Commit]) -> list[str]:
    """Stored commits that a rewritten history no longer has; none if it is the history of another project."""
    stored, current = {result.key for result in await shelf.every()}, {commit.sha for commit in commits}
    return sorted(stored - current) if stored & current else []


def history_since(root: Path, last: str, complete: bool = False) -> History:
    """The changes since this commit; all commits if `complete`, or if the repository does not have it."""
    head = _verified(root, "HEAD")
    if not head or head == last:
        return History(head)
    # No commit message can contain the hash of a later commit.
    mark = f"<{head}>"
    log = [*_LOG, "--topo-order", "--reverse", "--left-right", f"--format={mark}{mark.join(_FIELDS)}"]
    boundary = _shallow_boundary(root)
    known = bool(last) and not complete and bool(_verified(root, f"{last}^{{commit}}"))
    entries = list(_parse(_git(root, "log", *log, f"{last}...{head}" if known else head, "--"), mark))
    return History(
        head,
        new=[commit for side, commit in entries if side != "<" and commit.sha not in boundary],
        gone=[commit.sha for side, commit in entries if side == "<"],
        whole=not known and not boundary,
        shallow=bool(boundary),
    )


def _verified(root: Path, revision: str) -> str:
    """The hash of a revision; empty if it does not exist."""
    return _git(root, "rev-parse", "--verify", "--quiet", revision, may_fail=True).strip()


def _shallow_boundary(root: Path) -> frozenset[str]:
    """The oldest commits of a shallow clone. Their diffs would add every file."""
    file = root / _git(root, "rev-parse", "--git-path", "shallow").strip()
    return frozenset(load_text(file, LARGEST_DOCUMENT).split()) if file.is_file() else frozenset()


def _parse(log: str, mark: str) -> Iterator[tuple[str, Commit]]:
    parts = log.split(mark)[1:]
    for start in range(0, len(parts), len(_FIELDS)):
        side, sha, author, email, timestamp, message, numbers = parts[start : start + len(_FIELDS)]
        files = list(_changes(numbers))
        commit = Commit(
            sha=sha,
            message=message.strip(),
            author=author,
            author_email=email,
            timestamp=timestamp,
            files_changed=tuple(path for path, _, _ in files),
            insertions=sum(added for _, added, _ in files),
            deletions=sum(removed for _, _, removed in files),
        )
        yield side, commit


def _changes(numbers: str) -> Iterator[tuple[str, int, int]]:
    """Each file with the lines added and removed: renamed files by their new name, binary files with 0."""
    rows = iter(numbers.strip("\0\n").split("\0"))
    for row in rows:
        if row.count("\t") >= 2:
            added, removed, path = row.lstrip("\n").split("\t", 2)
            if not path:
                next(rows)
                path = next(rows)
            yield path, int(added) if added.isdigit() else 0, int(removed) if removed.isdigit() else 0


def _git(root: Path, subcommand: Subcommand, *arguments: str, may_fail: bool = False) -> str:
    """The output of git. With `may_fail`, exit code 1 means no result instead of an error."""
    try:
        output = git(root, subcommand, *arguments, seconds=_SECONDS)
    except OSError as error:
        raise ConfigError(f"git cannot be run: {error.strerror or error}") from error
    if output.code and not (may_fail and output.code == 1):
        raise ConfigError(f"{str(root)!r} must be in a git repository: {output.problem}")
    return output.text
