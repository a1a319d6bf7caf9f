"""Opens a copy of a memory folder, so that the original is not modified."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from langgraph_scrum_master.errors import NotFoundError, StoreError
from langgraph_scrum_master.memory.folder import is_memory
from langgraph_scrum_master.protocols import MemoryStore


def copy_folder(folder: str | Path, copy: Path) -> Path:
    """Copy a memory folder, even while it is in use: temporary SQLite files may disappear meanwhile."""

    def copy_if_present(source: str, target: str) -> str:
        with suppress(FileNotFoundError):
            shutil.copy2(source, target)
        return target

    return Path(shutil.copytree(folder, copy, copy_function=copy_if_present))


@contextmanager
def memory_copy(folder: str | Path, namespace: str = "default", embedder: str = "static") -> Iterator[MemoryStore]:
    """Open a copy of a memory folder, because opening a memory writes to it."""
    from langgraph_scrum_master.memory.chroma import ChromaMemory

    if not is_memory(Path(folder)):
        raise NotFoundError(f"there is no memory in {str(folder)!r}: pass the folder of a ChromaMemory")
    with TemporaryDirectory(prefix="scrum-master-") as temporary:
        try:
            copy = copy_folder(folder, Path(temporary) / "memory")
        except OSError as error:
            raise StoreError(f"cannot read the memory in {str(folder)!r}: {error.strerror or error}") from error
        memory = ChromaMemory(copy, namespace=namespace, embedder=embedder)
        try:
            yield memory
        finally:
            memory.close()
