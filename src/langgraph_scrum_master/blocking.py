"""Awaiting from code that cannot: one event loop in a thread of its own, for the whole process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar

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


def _own_home() -> _Home:
    global _home
    with _lock:
        # A forked child has the loop but not its thread.
        if _home is None or _home.process != os.getpid():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="scrum-master", daemon=True)
            thread.start()
            _home = _Home(loop, thread, os.getpid())
        return _home
