"""A memory to read in, from a folder that stays as it is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.protocols import MemoryStore


@contextmanager
def borrowed(folder: str | Path, namespace: str = "default", embedder: str = "static") -> Iterator[MemoryStore]:
    """The memory of a folder, in a copy: merely opening Chroma and its ledger writes."""
    from langgraph_scrum_master.memory.chroma import ChromaMemory

    if not Path(folder).is_dir():
        raise DecodeError(f"there is no memory in {str(folder)!r}: give the folder that ChromaMemory was opened with")
    with TemporaryDirectory(prefix="scrum-master-") as place:
        copy = Path(place) / "memory"
        shutil.copytree(folder, copy)
        memory = ChromaMemory(copy, namespace=namespace, embedder=embedder)
        try:
            yield memory
        finally:
            memory.close()
