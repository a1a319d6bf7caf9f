"""Recognises the files of a memory in a folder without opening them."""

from __future__ import annotations

from pathlib import Path

FILE = "memory.sqlite3"
"""The file in a memory's folder."""

EARLIER = "ledger-*.sqlite3"
"""The files of the earlier layout, which is converted when it is opened."""


def is_memory(folder: Path) -> bool:
    """Whether the folder contains a memory. Opening it would create one."""
    return (folder / FILE).is_file() or is_earlier(folder)


def is_earlier(folder: Path) -> bool:
    """Whether the folder has the earlier layout."""
    return any(folder.glob(EARLIER))
