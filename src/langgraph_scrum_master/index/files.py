"""The files of a project, and which of them changed since they were last looked at."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2s
from pathlib import Path
from typing import Protocol, TypeAlias

from langgraph_scrum_master.blocking import off_loop
from langgraph_scrum_master.codec import Plain
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.memories import Memory, MemoryResult

LARGEST = 1_000_000
"""Bytes of a file that is looked at."""

PASSED_OVER = frozenset({"node_modules", "venv", "__pycache__", "dist", "build", "target", "site-packages"})
"""Folders that hold nothing of the project's own; so do those whose name begins with a dot."""

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many of how many are done."""


class Shelf(Protocol):
    """What an indexer needs of a memory."""

    async def store_many(self, rows: Iterable[Memory]) -> None:
        """Keep texts; one with the same key is replaced."""
        ...

    async def forget(self, *keys: str) -> None:
        """Let go of texts by their keys."""
        ...

    async def get_many(self, keys: Sequence[str]) -> Mapping[str, MemoryResult]:
        """The texts that are kept under these keys."""
        ...

    def beside(self, name: str) -> Shelf:
        """A memory of its own in the same place."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport(Plain):
    """What an indexer did."""

    written: int = 0
    """Texts that are new, or changed."""
    removed: int = 0
    unchanged: int = 0
    """Files, or commits, that were as before."""
    skipped: dict[str, str] = field(default_factory=dict, hash=False)
    """Files that were left out, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that changed, with its text."""

    path: str
    """From the project's root, with slashes."""
    text: str
    digest: str


Cut: TypeAlias = Callable[[Source], list[Memory]]
"""The texts to keep of a file; raises ValueError if it cannot be read."""


def project_files(root: Path, suffixes: Sequence[str]) -> list[str]:
    """The project's own files with these suffixes: those that git would track, or else all that are not hidden."""
    if not root.is_dir():
        raise ConfigError(f"there is no folder {str(root)!r}")
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        names = {name.decode(errors="replace") for name in listed.stdout.split(b"\0") if name}
    else:
        names = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    return sorted(name for name in names if name.endswith(tuple(suffixes)) and _own(name) and (root / name).is_file())


def _own(name: str) -> bool:
    return not any(part in PASSED_OVER or part.startswith(".") for part in name.split("/")[:-1])


async def index_files(
    shelf: Shelf, root: Path, suffixes: Sequence[str], cut: Cut, name: str, progress: Progress | None = None
) -> IndexReport:
    """Keep on the shelf what `cut` makes of the files, of changed ones only, and let go of what is gone.

    What was kept of each file is noted beside the shelf under this name, after it was kept: an indexing that was
    interrupted goes on where it was.
    """
    book = shelf.beside(f"index-{name}")
    names = await off_loop(project_files, root, suffixes)
    everything = await book.get_many([ALL])
    earlier = set(everything[ALL].metadata["files"]) if ALL in everything else set()
    notes = await book.get_many([*names, *(earlier - set(names))])
    # Noted before: whatever is kept from here on can be let go of later.
    if set(names) - earlier:
        await book.store_many([_note(ALL, files=sorted(earlier | set(names)))])
    written = removed = unchanged = 0
    skipped: dict[str, str] = {}
    for done, path in enumerate(names, 1):
        outcome = await off_loop(_changed, root, path, notes.get(path))
        if isinstance(outcome, str):
            skipped[path] = outcome
        elif outcome is None:
            unchanged += 1
        else:
            try:
                kept = await off_loop(cut, outcome)
            except (ValueError, RecursionError) as error:
                skipped[path] = f"cannot be parsed: {error}"
                continue
            new, gone = await _replace(shelf, kept, notes.get(path))
            await book.store_many([_note(path, digest=outcome.digest, keys=[each.key for each in kept])])
            written, removed = written + new, removed + gone
        if progress is not None:
            progress(done, len(names))
        await asyncio.sleep(0)
    for path in sorted(earlier - set(names)):
        removed += (await _replace(shelf, [], notes.get(path)))[1]
        await book.forget(path)
    if earlier - set(names):
        await book.store_many([_note(ALL, files=names)])
    return IndexReport(written=written, removed=removed, unchanged=unchanged, skipped=skipped)


ALL = "all files"


def _note(key: str, **facts: object) -> Memory:
    return Memory(content=key, key=key, metadata=dict(facts))


def _changed(root: Path, path: str, note: MemoryResult | None) -> Source | str | None:
    """The file if it changed, None if it did not, or why it is left out."""
    file = root / path
    try:
        if file.stat().st_size > LARGEST:
            return f"larger than {LARGEST:,} bytes"
        content = file.read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    digest = blake2s(content, digest_size=16).hexdigest()
    if note is not None and note.metadata.get("digest") == digest:
        return None
    if b"\0" in content[:8192]:
        return "binary"
    try:
        return Source(path=path, text=content.decode("utf-8-sig"), digest=digest)
    except UnicodeDecodeError:
        return "not UTF-8"


async def _replace(shelf: Shelf, kept: Sequence[Memory], note: MemoryResult | None) -> tuple[int, int]:
    """Keep these instead of what the note names; gives how many are new or changed, and how many are gone."""
    before = await shelf.get_many([memory.key for memory in kept])
    changed = [memory for memory in kept if _differs(memory, before.get(memory.key))]
    if changed:
        await shelf.store_many(changed)
    gone = sorted(set(note.metadata.get("keys", ()) if note else ()) - {memory.key for memory in kept})
    if gone:
        await shelf.forget(*gone)
    return len(changed), len(gone)


def _differs(memory: Memory, before: MemoryResult | None) -> bool:
    return before is None or before.content != memory.content or _facts(before) != memory.fields()


def _facts(result: MemoryResult) -> dict[str, object]:
    return {name: value for name, value in result.metadata.items() if name != "kind"}


def numbered(keys: Iterable[str]) -> Iterator[str]:
    """The keys, those that come again with a number."""
    seen: dict[str, int] = {}
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
        yield key if seen[key] == 1 else f"{key}~{seen[key]}"
