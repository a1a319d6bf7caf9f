"""Limits how many tasks run at once. The others wait in the order in which they came, on any thread and event loop."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class OverloadedError(TimeoutError):
    """A task had no turn in time."""


class Admission:
    """A queue in front of the tasks of a process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all tasks, as in a forked process, which has none of them."""
        self._lock = threading.Lock()
        self._running = 0
        self._waiting: deque[_Waiter] = deque()

    @asynccontextmanager
    async def turn(self, most: int, seconds: float) -> AsyncIterator[None]:
        """Run the block when fewer than `most` tasks run. Raises `OverloadedError` after these seconds in the queue."""
        await self._enter(most, seconds)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, most: int, seconds: float) -> None:
        with self._lock:
            if self._running < most and not self._waiting:
                self._running += 1
                return
            waiter = _Waiter(seconds)
            self._waiting.append(waiter)
        try:
            await asyncio.wait_for(waiter.admitted, seconds)
        except BaseException as error:
            self._give_up(waiter)
            if isinstance(error, TimeoutError):
                message = f"overloaded: {most} tasks run already, no turn within {seconds:g} s"
                raise OverloadedError(message) from None
            raise

    def _give_up(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                return
        # Admitted at the same moment, or dropped by `_leave`.
        if waiter.runs:
            self._leave()

    def _leave(self) -> None:
        """Give the turn to the first task that still wants it."""
        with self._lock:
            self._running -= 1
            while self._waiting:
                if self._waiting.popleft().admit():
                    self._running += 1
                    return


class _Waiter:
    """A task in the queue."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = time.monotonic() + seconds
        self.admitted: asyncio.Future[None] = self._loop.create_future()
        self.runs = False

    def admit(self) -> bool:
        """Start the task, unless it is too late for it or its event loop has ended."""
        if time.monotonic() >= self._until:
            return False
        try:
            self._loop.call_soon_threadsafe(self._start)
        except RuntimeError:
            return False
        self.runs = True
        return True

    def _start(self) -> None:
        if not self.admitted.done():
            self.admitted.set_result(None)


ADMISSION = Admission()
"""The queue of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ADMISSION.reset)
