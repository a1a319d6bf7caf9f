"""Bridges threads and event loops: runs coroutines from synchronous code, and blocking calls from coroutines."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from langgraph_scrum_master._internal.breakers import MOST_STUCK, Breaker, current_breaker
from langgraph_scrum_master._internal.foreign import contained
from langgraph_scrum_master._internal.logs import logger

T = TypeVar("T")


class _Background(NamedTuple):
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread
    process: int


_lock = threading.Lock()
_current: _Background | None = None


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from synchronous code and return its result. Inside a running event loop, it blocks that loop."""
    background = _background()
    if threading.current_thread() is background.thread:
        work.close()
        raise RuntimeError("wait_for was called on its own event loop, which would deadlock: use await instead")
    # Carries the caller's context variables, such as a graph's configuration, into the other thread.
    context = copy_context()

    async def run() -> T:
        return await asyncio.get_running_loop().create_task(work, context=context)

    return asyncio.run_coroutine_threadsafe(run(), background.loop).result()


async def off_loop(call: Callable[..., T], *args: Any) -> T:
    """Run a blocking call in a daemon thread of its own and return its result.

    Not in the loop's executor: hanging calls would exhaust it, and closing the loop would wait for them. Raises
    `TimeoutError` if too many calls of the same component hang already.
    """
    component = current_breaker.get()
    if component is not None and component.stuck >= MOST_STUCK:
        raise TimeoutError(f"{component.stuck} earlier calls have not returned")
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    context = copy_context()
    running = _RunningCall(component)

    def settle(setter: Callable[[Any], None], value: Any) -> None:
        if not outcome.done():
            setter(value)

    def work() -> None:
        # Nobody waits for it any more.
        if outcome.cancelled():
            running.ended()
            return
        try:
            settled = (outcome.set_result, context.run(call, *args))
        except BaseException as error:
            settled = (outcome.set_exception, contained(error))  # type: ignore[assignment]
        finally:
            running.ended()
        # The loop may be closed by now. Then nobody waits for the result.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, *settled)

    _run_in_thread(work)
    try:
        return await outcome
    except asyncio.CancelledError:
        running.abandoned()
        raise


async def within(seconds: float, call: Callable[..., T], *args: Any) -> T:
    """Like `off_loop`. Raises `TimeoutError` after these seconds."""
    return await asyncio.wait_for(off_loop(call, *args), seconds)


class _RunningCall:
    """A call in a thread, which counts as stuck from when nobody waits for it until it ends."""

    def __init__(self, component: Breaker | None) -> None:
        self._component = component
        self._lock = threading.Lock()
        self._has_ended = self._is_stuck = False

    def abandoned(self) -> None:
        with self._lock:
            if self._component is not None and not self._has_ended:
                self._is_stuck = True
                self._component.abandon()

    def ended(self) -> None:
        with self._lock:
            self._has_ended = True
            if self._component is not None and self._is_stuck:
                self._component.abandon(-1)


def _run_in_thread(work: Callable[[], None]) -> None:
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.jobs.put(work)


class _Worker(threading.Thread):
    """A thread that runs one call after another. A hanging one is not reused."""

    def __init__(self) -> None:
        super().__init__(name="scrum-master-call", daemon=True)
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._clock: int | None = None
        self.start()

    def run(self) -> None:
        """Run calls until there are enough idle workers."""
        with suppress(AttributeError):
            self._clock = time.pthread_getcpuclockid(threading.get_ident())
        while True:
            job = self.jobs.get()
            _busy.add(self)
            try:
                job()
            finally:
                _busy.discard(self)
            if len(_idle) >= _MAX_IDLE:
                return
            _idle.append(self)

    def cpu_seconds(self) -> float:
        """The CPU time of this thread; where it is not known, the wall time."""
        with suppress(OSError):
            return time.monotonic() if self._clock is None else time.clock_gettime(self._clock)
        return 0.0  # The thread has ended.


_MAX_IDLE = 8
"""The maximum number of idle threads."""

_idle: list[_Worker] = []
_busy: set[_Worker] = set()


def _forget_threads() -> None:
    """Forget all threads: a forked child has none of its parent's."""
    _idle.clear()
    _busy.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)

_EXIT_SECONDS = 10.0
"""The maximum time that an exit waits for calls that still compute."""

_EXIT_POLL = 0.1


@atexit.register
def _let_calls_end() -> None:
    """Wait at exit for calls that missed their deadline and still compute.

    Python before 3.14 ends daemon threads wherever they next take the interpreter lock. In C++, as in parts of NumPy,
    that aborts the process. Calls that use no CPU, such as those that wait for a server that hangs, are not waited for.
    """
    until = time.monotonic() + _EXIT_SECONDS
    computing = {worker: worker.cpu_seconds() for worker in tuple(_busy)}
    while computing and time.monotonic() < until:
        time.sleep(_EXIT_POLL)
        used = {worker: worker.cpu_seconds() for worker in computing if worker in _busy}
        computing = {worker: seconds for worker, seconds in used.items() if seconds > computing[worker]}


def _background() -> _Background:
    global _current
    with _lock:
        # A forked child has the loop but not its thread.
        if _current is None or _current.process != os.getpid():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_run, args=(loop,), name="scrum-master", daemon=True)
            thread.start()
            _current = _Background(loop, thread, os.getpid())
        return _current


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop forever: if it ended, every later call in the process would hang."""
    while True:
        try:
            loop.run_forever()
        except BaseException as error:
            logger.error("event_loop.interrupted", error=f"{type(error).__name__}: {error}")
        else:
            return
