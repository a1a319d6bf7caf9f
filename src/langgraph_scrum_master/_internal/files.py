"""Atomic writes, and safe reads of untrusted files."""

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
"""The maximum size of a text that a person wrote, in bytes, by hand."""

LARGEST_RECORDING = 1_000_000_000
"""The maximum size of a text that a program wrote, such as a dump or snapshots, in bytes, by hand."""

# Without O_NONBLOCK, opening a pipe blocks until there is a writer. Windows has only O_BINARY.
_READ_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))


class UnfitFileError(OSError):
    """A file is not a regular file, too large, or outside its folder."""


def write_atomically(path: Path, text: str) -> None:
    """Write a file atomically: readers see the old content or the new one. Creates missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(text.encode(errors="backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        # Exists only after a failure.
        temporary.unlink(missing_ok=True)


def load_text(path: Path | str, limit: int, folder: Path | None = None) -> str:
    """The text of a file named by the user. Raises NotFoundError or DecodeError with the reason."""
    try:
        return read_text(path, limit, folder=folder)
    except OSError as error:
        kind = NotFoundError if isinstance(error, FileNotFoundError) else DecodeError
        raise kind(f"cannot read {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DecodeError(f"{str(path)!r} must be UTF-8: {error}") from error


def read_text(path: Path | str, limit: int, *, folder: Path | None = None, errors: str = "strict") -> str:
    """The text of an untrusted file, with `\\n` line ends. Raises like `read_bytes` and `bytes.decode`."""
    text = read_bytes(path, limit, folder=folder).decode("utf-8-sig", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: Path | str, limit: int, *, folder: Path | None = None) -> bytes:
    """The content of an untrusted file. Raises OSError.

    Raises UnfitFileError for pipes, devices and sockets, for files larger than `limit` bytes, and for links that point
    outside `folder`.
    """
    with _open(path, folder) as file:
        # The reported size can be wrong, or change.
        content = file.read(limit + 1) if os.fstat(file.fileno()).st_size <= limit else None
    if content is None or len(content) > limit:
        raise UnfitFileError(errno.EFBIG, f"larger than {limit:,} bytes", str(path))
    return content


def first_bytes(path: Path | str, count: int) -> bytes:
    """The first bytes of a file. Raises OSError; UnfitFileError if it is not a regular file."""
    with _open(path, None) as file:
        return file.read(count)


def last_bytes(path: Path | str, count: int) -> bytes:
    """The last bytes of a file. Raises OSError; UnfitFileError if it is not a regular file."""
    with _open(path, None) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - count))
        return file.read(count)


@contextmanager
def _open(path: Path | str, folder: Path | None) -> Iterator[BinaryIO]:
    resolved = Path(path) if folder is None else _within(Path(path), folder)
    # Checked before, since opening a device can have effects, and after, in case the file was replaced.
    _check_regular(resolved.stat(), path)
    with os.fdopen(os.open(resolved, _READ_FLAGS), "rb") as file:
        _check_regular(os.fstat(file.fileno()), path)
        yield file


def _within(path: Path, folder: Path) -> Path:
    # `Path.resolve` raises RuntimeError for links in a circle.
    resolved = Path(os.path.realpath(path))
    if not resolved.is_relative_to(os.path.realpath(folder)):
        raise UnfitFileError(errno.EPERM, f"leads out of {str(folder)!r}", str(path))
    return resolved


def _check_regular(status: os.stat_result, path: Path | str) -> None:
    if S_ISDIR(status.st_mode):
        raise UnfitFileError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not S_ISREG(status.st_mode):
        raise UnfitFileError(errno.EINVAL, "not a regular file", str(path))
