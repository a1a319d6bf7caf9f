"""Files: written whole or not at all, and read with care where others wrote them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO

from langgraph_scrum_master.errors import DecodeError, NotFoundError

LARGEST_DOCUMENT = 10_000_000
"""Bytes of a text that a person may have written, by hand."""

LARGEST_RECORDING = 1_000_000_000
"""Bytes of a text that a program may have written, such as a memory's dump or a team's snapshots, by hand."""

# Without the first, opening a pipe waits until somebody writes to it. Windows has none of these.
_READING = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))


class UnfitFileError(OSError):
    """A file that is not read because of what it is: no regular file, too large, or outside its folder."""


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that whoever reads it meanwhile gets the old one or the new one, whole. Its folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        with unfinished.open("xb") as file:
            file.write(text.encode(errors="backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        # There only if it failed.
        unfinished.unlink(missing_ok=True)


def load_text(path: Path | str, limit: int, folder: Path | None = None) -> str:
    """The text of a file that a user named. Raises NotFoundError or DecodeError, which say why there is none."""
    try:
        return read_text(path, limit, folder=folder)
    except OSError as error:
        kind = NotFoundError if isinstance(error, FileNotFoundError) else DecodeError
        raise kind(f"cannot read {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DecodeError(f"{str(path)!r} must be UTF-8: {error}") from error


def read_text(path: Path | str, limit: int, *, folder: Path | None = None, errors: str = "strict") -> str:
    """The text of a file that others wrote, its lines ended by `\\n`. Raises as `read_bytes` and `bytes.decode` do."""
    text = read_bytes(path, limit, folder=folder).decode("utf-8-sig", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: Path | str, limit: int, *, folder: Path | None = None) -> bytes:
    """What a file holds that others wrote. Raises OSError, as UnfitFileError if the file is not to be read.

    Pipes, devices and sockets are refused, files of more bytes than `limit`, and links that lead out of `folder`.
    """
    with _opened(path, folder) as file:
        # The size may be told wrong, or change.
        content = file.read(limit + 1) if os.fstat(file.fileno()).st_size <= limit else None
    if content is None or len(content) > limit:
        raise UnfitFileError(errno.EFBIG, f"larger than {limit:,} bytes", str(path))
    return content


def first_bytes(path: Path | str, count: int) -> bytes:
    """How a file begins. Raises OSError, as UnfitFileError if it is not a regular file."""
    with _opened(path, None) as file:
        return file.read(count)


@contextmanager
def _opened(path: Path | str, folder: Path | None) -> Iterator[BinaryIO]:
    place = Path(path) if folder is None else _within(Path(path), folder)
    # Looked at first, since opening a device may already do something, and again in case it was replaced meanwhile.
    _check_regular(place.stat(), path)
    with os.fdopen(os.open(place, _READING), "rb") as file:
        _check_regular(os.fstat(file.fileno()), path)
        yield file


def _within(path: Path, folder: Path) -> Path:
    place = path.resolve()
    if not place.is_relative_to(folder.resolve()):
        raise UnfitFileError(errno.EPERM, f"leads out of {str(folder)!r}", str(path))
    return place


def _check_regular(status: os.stat_result, path: Path | str) -> None:
    if S_ISDIR(status.st_mode):
        raise UnfitFileError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not S_ISREG(status.st_mode):
        raise UnfitFileError(errno.EINVAL, "not a regular file", str(path))
