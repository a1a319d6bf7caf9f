"""The files of a project, and which of them changed since they were last looked at."""

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
"""Bytes of a file that is looked at."""

_BATCH = 250
"""Texts that are kept at once: an indexing that is interrupted loses no more than their files."""

PASSED_OVER = frozenset({"node_modules", "venv", "__pycache__", "dist", "build", "target", "site-packages"})
"""Folders that hold nothing of the project's own; so do those whose name begins with a dot."""

IndexProgress: TypeAlias = Callable[[int, int], None]
"""Is told how many of how many are done."""


def indexed_memory(memory: MemoryStore, user: str, *more: Capability) -> FullMemory:
    """The memory that an indexer fills; raises `ConfigError` if it lacks what indexers need."""
    require(memory, user, "lookup", "deletion", "notes", *more)
    return full_memory(memory, user)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport(Plain):
    """What an indexer did."""

    written: int = 0
    """Texts that are new, or changed."""
    removed: int = 0
    unchanged: int = 0
    """Files, commits or values that were as before."""
    skipped: dict[str, str] = field(default_factory=dict, hash=False)
    """Files, or axes, that were left out, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that changed, with its text."""

    path: str
    """From the project's root, with slashes."""
    text: str


class LeftOut(ValueError):
    """A file that is not kept, for a reason other than its syntax."""


Cut: TypeAlias = Callable[[ChangedFile], list[Memory]]
"""The texts to keep of a file; raises ValueError if it cannot be read."""


def project_files(root: Path, suffixes: Sequence[str]) -> list[str]:
    """The project's own files with these suffixes: those that git would track, or else all that are not hidden."""
    if not root.is_dir():
        raise NotFoundError(f"there is no folder {str(root)!r}")
    names = _tracked(root)
    own = _walked(root) if names is None else (name for name in names if all(map(_own, name.split("/")[:-1])))
    wanted = sorted({name for name in own if name.endswith(tuple(suffixes))})
    # A link leads to what is there already, or to what is not the project's.
    return [name for name in wanted if (root / name).is_file() and not (root / name).is_symlink()]


def _tracked(root: Path) -> list[str] | None:
    try:
        listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    except TimeoutError as error:
        # Walking the folder instead would index what git ignores.
        raise ConfigError(f"the files of {str(root)!r} cannot be listed: {error}") from error
    except OSError:
        return None
    return None if listed.code else [name for name in listed.text.split("\0") if name]


def _walked(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = filter(_own, folders)
        yield from (Path(folder, name).relative_to(root).as_posix() for name in files)


def _own(folder: str) -> bool:
    return folder not in PASSED_OVER and not folder.startswith(".")


async def index_files(
    shelf: FullMemory, root: Path, suffixes: Sequence[str], cut: Cut, name: str, progress: IndexProgress | None = None
) -> IndexReport:
    """Store what `cut` makes of the files, of changed ones only, and remove what is gone.

    In a book of this name it is noted what is about to be stored of each file, and that it was stored: an indexing that
    was interrupted goes on where it was, and nothing is stored that could not be removed later.
    """
    book = f"{INDEX} {name}"
    names = await off_loop(project_files, root, suffixes)
    notes = await shelf.notes(book)
    gone = sorted(set(notes) - set(names))
    written = removed = unchanged = 0
    skipped: dict[str, str] = {}
    waiting: list[_File] = []
    for done, path in enumerate(names, 1):
        outcome = await off_loop(_looked_at, root, path, notes.get(path), cut)
        if isinstance(outcome, str):
            skipped[path] = outcome
        elif outcome is None:
            unchanged += 1
        else:
            waiting.append(outcome)
        if done == len(names) or sum(len(file.kept) for file in waiting) >= _BATCH:
            counts = await _settled(shelf, book, waiting, notes)
            written, removed, waiting = written + counts[0], removed + counts[1], []
        if progress is not None:
            progress(done, len(names))
    if gone:
        removed += (await _settled(shelf, book, [_File(path, "", []) for path in gone], notes))[1]
        await shelf.save_notes(book, dict.fromkeys(gone))
    return IndexReport(written=written, removed=removed, unchanged=unchanged, skipped=skipped)


INDEX = "index"
"""The book in which indexers note what they have indexed."""


class _File(NamedTuple):
    """A file that changed, and what is to be kept of it."""

    path: str
    digest: str
    kept: list[Memory]


def _looked_at(root: Path, path: str, noted: Mapping[str, Any] | None, cut: Cut) -> _File | str | None:
    """The file if it changed, None if it did not, or why it is left out."""
    file = root / path
    try:
        content = read_bytes(file, _LARGEST, folder=root)
    except UnfitFileError as error:
        return str(error.strerror)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    digest = blake2s(content, digest_size=16).hexdigest()
    if noted is not None and noted.get("digest") == digest:
        return None
    if b"\0" in content[:8192]:
        return "binary"
    try:
        return _File(path, digest, cut(ChangedFile(path=path, text=content.decode("utf-8-sig"))))
    except UnicodeDecodeError:
        return "not UTF-8"
    except LeftOut as error:
        return str(error)
    except (ValueError, RecursionError) as error:
        return f"cannot be parsed: {error}"


async def _settled(
    shelf: FullMemory, book: str, files: Sequence[_File], notes: Mapping[str, Mapping[str, Any]]
) -> tuple[int, int]:
    """Keep what the files hold instead of what they held; gives how many are new or changed, and gone."""
    held = {path: set(noted["keys"]) for path, noted in notes.items()}
    keys = {file.path: {memory.key for memory in file.kept} for file in files}
    new = [path for path, each in keys.items() if each - held.get(path, set())]
    await shelf.save_notes(
        book, {path: {"digest": "", "keys": sorted(keys[path] | held.get(path, set()))} for path in new}
    )
    written = await store_changed(shelf, [memory for file in files for memory in file.kept])
    gone = sorted({key for path, each in keys.items() for key in held.get(path, set()) - each})
    if gone:
        await shelf.forget(*gone)
    await shelf.save_notes(
        book, {file.path: {"digest": file.digest, "keys": sorted(keys[file.path])} for file in files if file.digest}
    )
    return written, len(gone)


async def store_changed(shelf: FullMemory, rows: Sequence[Memory]) -> int:
    """Keep these, if they are not kept just so already; gives how many are new or changed."""
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
    """The keys, those that come again with a number."""
    seen: dict[str, int] = {}
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
        yield key if seen[key] == 1 else f"{key}~{seen[key]}"
