"""Commits, from `git log`."""

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
"""Commits that are kept at once; after each, progress is told, and the indexing may be interrupted."""

_HEAD = "head"
_FIELDS = ("%m", "%H", "%an", "%ae", "%aI", "%B", "")
_LOG = ("--no-merges", "--numstat", "-z", "-M")

_SECONDS = 1_800.0
"""How long reading a history may take, by hand: some have a million commits."""


class History(NamedTuple):
    """What happened in a repository since a commit."""

    head: str
    """Where it stands now; empty if it has no commit."""
    new: Sequence[Commit] = ()
    """What came, the oldest first."""
    gone: Collection[str] = ()
    """What was there then and is no more, as after a rebase."""
    whole: bool = False
    """Whether `new` is all there ever was."""
    shallow: bool = False
    """Whether the clone has only a part of it."""


async def index_commits(memory: MemoryStore, root: str | Path, progress: IndexProgress | None = None) -> IndexReport:
    """Keep the commits of a repository in the memory's commits, but for merges; only what is new is read."""
    shelf = indexed_memory(memory, "index_commits", "shelves").beside("commits")
    facts = (await shelf.notes(INDEX, [_HEAD])).get(_HEAD, {})
    last, kept = str(facts.get("sha", "")), int(facts.get("count", 0))
    history = await off_loop(history_since, Path(root), last, bool(facts.get("shallow")))
    gone = history.gone or (await _strangers(shelf, history.new) if last and history.whole else ())
    if gone:
        await shelf.forget(*gone)
        kept -= len(gone)
    written = 0
    for start in range(0, len(history.new), _BATCH):
        part = history.new[start : start + _BATCH]
        written += await store_changed(shelf, [commit.kept() for commit in part])
        # Oldest first: whatever was kept is not read again.
        await shelf.save_notes(
            INDEX, {_HEAD: {"sha": part[-1].sha, "count": kept + written, "shallow": history.shallow}}
        )
        if progress is not None:
            progress(start + len(part), len(history.new))
    if history.head != last:
        await shelf.save_notes(
            INDEX, {_HEAD: {"sha": history.head, "count": kept + written, "shallow": history.shallow}}
        )
    return IndexReport(written=written, removed=len(gone), unchanged=kept)


async def _strangers(shelf: FullMemory, commits: Sequence[Commit]) -> list[str]:
    """What is kept of a history that was written anew elsewhere; nothing if it is another project's."""
    kept, there = {result.key for result in await shelf.every()}, {commit.sha for commit in commits}
    return sorted(kept - there) if kept & there else []


def history_since(root: Path, last: str, anew: bool = False) -> History:
    """What came since this commit, and what went; all there is, if `anew`, or if the repository does not know it."""
    head = _verified(root, "HEAD")
    if not head or head == last:
        return History(head)
    # No message can hold the name of a commit that comes after it.
    mark = f"<{head}>"
    log = [*_LOG, "--topo-order", "--reverse", "--left-right", f"--format={mark}{mark.join(_FIELDS)}"]
    cut_off = _cut_off(root)
    known = bool(last) and not anew and bool(_verified(root, f"{last}^{{commit}}"))
    read = list(_parsed(_git(root, "log", *log, f"{last}...{head}" if known else head, "--"), mark))
    return History(
        head,
        new=[commit for side, commit in read if side != "<" and commit.sha not in cut_off],
        gone=[commit.sha for side, commit in read if side == "<"],
        whole=not known and not cut_off,
        shallow=bool(cut_off),
    )


def _verified(root: Path, revision: str) -> str:
    """The id of a revision; nothing if there is none."""
    return _git(root, "rev-parse", "--verify", "--quiet", revision, may_fail=True).strip()


def _cut_off(root: Path) -> frozenset[str]:
    """The oldest commits of a shallow clone, which seem to have added every file."""
    file = root / _git(root, "rev-parse", "--git-path", "shallow").strip()
    return frozenset(load_text(file, LARGEST_DOCUMENT).split()) if file.is_file() else frozenset()


def _parsed(log: str, mark: str) -> Iterator[tuple[str, Commit]]:
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
            deletions=sum(taken for _, _, taken in files),
        )
        yield side, commit


def _changes(numbers: str) -> Iterator[tuple[str, int, int]]:
    """Each file with the lines that came and went: of a renamed one its new name, of a binary one no lines."""
    rows = iter(numbers.strip("\0\n").split("\0"))
    for row in rows:
        if row.count("\t") >= 2:
            added, taken, path = row.lstrip("\n").split("\t", 2)
            if not path:
                next(rows)
                path = next(rows)
            yield path, int(added) if added.isdigit() else 0, int(taken) if taken.isdigit() else 0


def _git(root: Path, subcommand: Subcommand, *arguments: str, may_fail: bool = False) -> str:
    """What git prints; nothing, if it may fail, where it finds nothing."""
    try:
        done = git(root, subcommand, *arguments, seconds=_SECONDS)
    except OSError as error:
        raise ConfigError(f"git cannot be run: {error.strerror or error}") from error
    if done.code and not (may_fail and done.code == 1):
        raise ConfigError(f"{str(root)!r} must be in a git repository: {done.problem}")
    return done.text
