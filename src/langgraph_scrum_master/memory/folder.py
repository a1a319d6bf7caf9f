"""The files of a memory in a folder, found without opening them."""

from __future__ import annotations

from pathlib import Path

FILE = "memory.sqlite3"
"""The file in a memory's folder."""

EARLIER = "ledger-*.sqlite3"
"""The files of an earlier layout, which is converted when it is opened."""


def is_memory(folder: Path) -> bool:
    """Whether a memory is kept in the folder: to find out by opening it would make one."""
    return (folder / FILE).is_file() or is_earlier(folder)


def is_earlier(folder: Path) -> bool:
    """Whether files of the earlier layout are in the folder."""
    return any(folder.glob(EARLIER))
