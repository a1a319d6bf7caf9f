"""A memory to read in, from a folder that stays as it is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from langgraph_scrum_master.errors import NotFoundError, StoreError
from langgraph_scrum_master.memory.folder import is_memory
from langgraph_scrum_master.protocols import MemoryStore


def copied(folder: str | Path, copy: Path) -> Path:
    """A copy of a memory's folder, also while somebody uses it: SQLite's passing files may go meanwhile."""

    def as_long_as_it_is_there(source: str, target: str) -> str:
        with suppress(FileNotFoundError):
            shutil.copy2(source, target)
        return target

    return Path(shutil.copytree(folder, copy, copy_function=as_long_as_it_is_there))


@contextmanager
def borrowed(folder: str | Path, namespace: str = "default", embedder: str = "static") -> Iterator[MemoryStore]:
    """The memory of a folder, in a copy: merely opening Chroma and its ledger writes."""
    from langgraph_scrum_master.memory.chroma import ChromaMemory

    if not is_memory(Path(folder)):
        raise NotFoundError(f"there is no memory in {str(folder)!r}: give the folder that ChromaMemory was opened with")
    with TemporaryDirectory(prefix="scrum-master-") as place:
        try:
            copy = copied(folder, Path(place) / "memory")
        except OSError as error:
            raise StoreError(f"the memory in {str(folder)!r} cannot be read: {error.strerror or error}") from error
        memory = ChromaMemory(copy, namespace=namespace, embedder=embedder)
        try:
            yield memory
        finally:
            memory.close()
