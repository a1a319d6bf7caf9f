"""Calls recorders off the event loop, with a timeout. Exceptions are logged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.threads import off_loop

T = TypeVar("T")


async def record(value: T, recorder: Callable[[T], object] | None, seconds: float, **about: object) -> None:
    """Pass the value to the recorder, if there is one. A failure is logged with `about`."""
    if recorder is None:
        return
    try:
        await asyncio.wait_for(off_loop(recorder, value), seconds)
    except BaseException as raised:
        error = recordable(raised)
        logger.error("recorder.failed", **about, error=f"{type(error).__name__}: {error}")
