"""Files that a command writes where it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langgraph_scrum_master.errors import ScrumMasterError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one line why the file cannot be written. The folders that it is in are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise ScrumMasterError(f"cannot write {str(path)!r}: {error.filename!r} is no folder") from error
    except OSError as error:
        raise ScrumMasterError(f"cannot write {str(path)!r}: {error.strerror}") from error
