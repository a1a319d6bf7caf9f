"""Output files of commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langgraph_scrum_master.errors import ScrumMasterError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Create the parent folders, and turn failures to write the file into `ScrumMasterError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise ScrumMasterError(f"cannot write {str(path)!r}: {error.filename!r} is not a folder") from error
    except OSError as error:
        raise ScrumMasterError(f"cannot write {str(path)!r}: {error.strerror}") from error
