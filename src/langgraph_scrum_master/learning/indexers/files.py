"""Incremental indexing: finds a project's files, and stores the records of those that changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2s
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from langgraph_scrum_master._internal.files import UnfitFileError, read_bytes
from langgraph_scrum_master._internal.git import git
from langgraph_scrum_master._internal.serialisation import Plain, json_shapes
from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.errors import ConfigError, NotFoundError
from langgraph_scrum_master.memory.adapter import full_memory
from langgraph_scrum_master.memory.records import Memory, MemoryResult
from langgraph_scrum_master.protocols import Capability, FullMemory, MemoryStore, require

_LARGEST = 1_000_000
"""The maximum size of an indexed file in bytes."""

_BATCH = 250
"""Records per write. An interrupted run repeats at most the files of one batch."""

IGNORED_FOLDERS = frozenset({"node_modules", "venv", "__pycache__", "dist", "build", "target", "site-packages"})
"""Folders that are not the project's own. Hidden folders are ignored too."""

IndexProgress: TypeAlias = Callable[[int, int], None]
"""Called with the number of items done and the total."""


def indexed_memory(memory: MemoryStore, user: str, *more: Capability) -> FullMemory:
    """The memory for an indexer. Raises `ConfigError` if it lacks a capability that indexers need."""
    require(memory, user, "lookup", "deletion", "notes", *more)
    return full_memory(memory, user)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport(Plain):
    """The result of an indexer."""

    written: int = 0
    """New or changed records."""
    removed: int = 0
    unchanged: int = 0
    """Files, commits or values that did not change."""
    skipped: dict[str, str] = field(default_factory=dict, hash=False)
    """Skipped files or axes, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A new or changed file."""

    path: str
    """Relative to the project's root, with slashes."""
    text: str


class SkippedFileError(ValueError):
    """A file is skipped for a reason other than its syntax."""


Cut: TypeAlias = Callable[[ChangedFile], list[Memory]]
"""Splits a file into records. Raises ValueError if the file cannot be parsed."""


def project_files(root: Path, suffixes: Sequence[str]) -> list[str]:
    """The project's files with these suffixes: those that git does not ignore; without git all that are not hidden."""
    if not root.is_dir():
        raise NotFoundError(f"there is no folder {str(root)!r}")
    names = _tracked(root)
    own = _walk(root) if names is None else (name for name in names if all(map(_is_own, name.split("/")[:-1])))
    wanted = sorted({name for name in own if name.endswith(tuple(suffixes))})
    # A symbolic link points to a file that is listed already, or to one outside the project.
    return [name for name in wanted if (root / name).is_file() and not (root / name).is_symlink()]


def _tracked(root: Path) -> list[str] | None:
    try:
        listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    except TimeoutError as error:
        # Falling back to a directory walk would index files that git ignores.
        raise ConfigError(f"the files of {str(root)!r} cannot be listed: {error}") from error
    except OSError:
        return None
    return None if listed.code else [name for name in listed.text.split("\0") if name]


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = filter(_is_own, folders)
        yield from (Path(folder, name).relative_to(root).as_posix() for name in files)


def _is_own(folder: str) -> bool:
    return folder not in IGNORED_FOLDERS and not folder.startswith(".")


async def index_files(
    shelf: FullMemory, root: Path, suffixes: Sequence[str], cut: Cut, name: str, progress: IndexProgress | None = None
) -> IndexReport:
    """Store the records of changed files, and delete those of files that are gone.

    The keys of a file's records are note before and after they are stored. An interrupted run can therefore resume,
    and every stored record can be deleted later.
    """
    book = f"{INDEX} {name}"
    names = await off_loop(project_files, root, suffixes)
    notes = await shelf.notes(book)
    gone = sorted(set(notes) - set(names))
    written = removed = unchanged = 0
    skipped: dict[str, str] = {}
    pending: list[_File] = []
    for done, path in enumerate(names, 1):
        outcome = await off_loop(_inspect, root, path, notes.get(path), cut)
        if isinstance(outcome, str):
            skipped[path] = outcome
        elif outcome is None:
            unchanged += 1
        else:
            pending.append(outcome)
        if done == len(names) or sum(len(file.records) for file in pending) >= _BATCH:
            counts = await _store(shelf, book, pending, notes)
            written, removed, pending = written + counts[0], removed + counts[1], []
        if progress is not None:
            progress(done, len(names))
    if gone:
        removed += (await _store(shelf, book, [_File(path, "", []) for path in gone], notes))[1]
        await shelf.save_notes(book, dict.fromkeys(gone))
    return IndexReport(written=written, removed=removed, unchanged=unchanged, skipped=skipped)


INDEX = "index"
"""The notebook in which indexers record their progress."""


class _File(NamedTuple):
    """A changed file and its records."""

    path: str
    digest: str
    records: list[Memory]


def _inspect(root: Path, path: str, note: Mapping[str, Any] | None, cut: Cut) -> _File | str | None:
    """The file if it changed, None if it did not, or the reason to skip it."""
    file = root / path
    try:
        content = read_bytes(file, _LARGEST, folder=root)
    except UnfitFileError as error:
        return str(error.strerror)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    digest = blake2s(content, digest_size=16).hexdigest()
    if note is not None and note.get("digest") == digest:
        return None
    if b"\0" in content[:8192]:
        return "binary"
    try:
        return _File(path, digest, cut(ChangedFile(path=path, text=content.decode("utf-8-sig"))))
    except UnicodeDecodeError:
        return "not UTF-8"
    except SkippedFileError as error:
        return str(error)
    except (ValueError, RecursionError) as error:
        return f"cannot be parsed: {error}"


async def _store(
    shelf: FullMemory, book: str, files: Sequence[_File], notes: Mapping[str, Mapping[str, Any]]
) -> tuple[int, int]:
    """Replace the records of these files. Returns how many were written and how many deleted."""
    stored = {path: set(note["keys"]) for path, note in notes.items()}
    keys = {file.path: {record.key for record in file.records} for file in files}
    new = [path for path, each in keys.items() if each - stored.get(path, set())]
    await shelf.save_notes(
        book, {path: {"digest": "", "keys": sorted(keys[path] | stored.get(path, set()))} for path in new}
    )
    written = await store_changed(shelf, [record for file in files for record in file.records])
    gone = sorted({key for path, each in keys.items() for key in stored.get(path, set()) - each})
    if gone:
        await shelf.forget(*gone)
    await shelf.save_notes(
        book, {file.path: {"digest": file.digest, "keys": sorted(keys[file.path])} for file in files if file.digest}
    )
    return written, len(gone)


async def store_changed(shelf: FullMemory, rows: Sequence[Memory]) -> int:
    """Store the new and changed records. Returns how many there are."""
    before = await shelf.get_many([memory.key for memory in rows])
    changed = [memory for memory in rows if _differs(memory, before.get(memory.key))]
    if changed:
        await shelf.store_many(changed)
    return len(changed)


def _differs(memory: Memory, before: MemoryResult | None) -> bool:
    if before is None or before.content != memory.content:
        return True
    facts = {name: value for name, value in before.metadata.items() if name != "kind"}
    return bool(facts != json_shapes(memory.fields()))


def numbered(keys: Iterable[str]) -> Iterator[str]:
    """The keys, with a number appended to repeated ones."""
    seen: dict[str, int] = {}
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
        yield key if seen[key] == 1 else f"{key}~{seen[key]}"
