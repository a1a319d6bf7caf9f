"""Between threads and event loops: waiting for a coroutine from code that cannot await, and calling what blocks."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from langgraph_scrum_master._internal.logs import logger

T = TypeVar("T")


class _Home(NamedTuple):
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread
    process: int


_lock = threading.Lock()
_home: _Home | None = None


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """What the coroutine gives. Works inside a running event loop too, whose thread it then holds up."""
    home = _own_home()
    if threading.current_thread() is home.thread:
        work.close()
        raise RuntimeError("wait_for was called on its own event loop, where it would wait for ever: await instead")
    # The caller's context variables, a graph's configuration among them, hold in the other thread as well.
    context = copy_context()

    async def run() -> T:
        return await asyncio.get_running_loop().create_task(work, context=context)

    return asyncio.run_coroutine_threadsafe(run(), home.loop).result()


async def off_loop(call: Callable[..., T], *args: Any) -> T:
    """What a blocking call gives, made in a daemon thread that nobody else has meanwhile.

    Not in the loop's executor: calls that hang would fill it up, and closing the loop would wait for them.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def settle(setter: Callable[[Any], None], value: Any) -> None:
        if not outcome.done():
            setter(value)

    def work() -> None:
        try:
            settled = (outcome.set_result, context.run(call, *args))
        except BaseException as error:
            settled = (outcome.set_exception, contained(error))  # type: ignore[assignment]
        # The loop may be gone by now: then nobody waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, *settled)

    _in_a_thread(work)
    return await outcome


def contained(error: BaseException) -> Exception:
    """The exception of somebody else's code as one that `except Exception` catches.

    `SystemExit`, `KeyboardInterrupt` and native panics would end the event loop of whoever waits, and a future takes no
    `StopIteration`.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def _in_a_thread(work: Callable[[], None]) -> None:
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.jobs.put(work)


class _Worker(threading.Thread):
    """A thread that makes one call after the other, and waits in between; one that hangs is not asked again."""

    def __init__(self) -> None:
        super().__init__(name="scrum-master-call", daemon=True)
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        """Work until there are enough others that are idle."""
        while True:
            self.jobs.get()()
            if len(_idle) >= _MOST_IDLE:
                return
            _idle.append(self)


_MOST_IDLE = 8
"""Threads that wait for the next call."""

_idle: list[_Worker] = []
# A forked child has none of its parent's threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def _own_home() -> _Home:
    global _home
    with _lock:
        # A forked child has the loop but not its thread.
        if _home is None or _home.process != os.getpid():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_run, args=(loop,), name="scrum-master", daemon=True)
            thread.start()
            _home = _Home(loop, thread, os.getpid())
        return _home


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop for ever: every later call in the process would wait for a loop that has ended."""
    while True:
        try:
            loop.run_forever()
        except BaseException as error:
            logger.error("event_loop.interrupted", error=f"{type(error).__name__}: {error}")
        else:
            return
