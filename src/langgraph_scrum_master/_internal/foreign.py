"""What third-party code raised: which of it is a failure to record, and which must pass."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from langgraph_scrum_master.errors import steers_the_graph

T = TypeVar("T")


def recordable(error: BaseException) -> Exception:
    """What third-party code raised, as an exception to record. Raises it again if it must pass.

    Native panics and other errors that no `except Exception` catches are recorded too. What interrupts or routes a
    graph passes, and so do cancellation, Ctrl-C and exits, except an exit in an event loop, which would end the loop.
    """
    if steers_the_graph(error) or isinstance(error, GeneratorExit) or _is_cancelled(error) or _is_the_hosts(error):
        raise error
    return contained(error)


async def awaited(call: Callable[[], Awaitable[T]]) -> T:
    """The result of third-party code that is awaited. It raises only exceptions that do not end an event loop."""
    try:
        return await call()
    except BaseException as error:
        raise recordable(error) from error


def contained(error: BaseException) -> Exception:
    """The error as an `Exception`, whatever it is. `StopIteration` is wrapped too, because a future rejects it."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def _is_cancelled(error: BaseException) -> bool:
    # Not imported here: the hooks of a coding agent start without it.
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def _is_the_hosts(error: BaseException) -> bool:
    if not isinstance(error, KeyboardInterrupt | SystemExit):
        return False
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()
