"""Calls recorders off the event loop, with a timeout. Exceptions are logged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from langgraph_scrum_master._internal.breakers import Breakers, current_breaker
from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.threads import within

T = TypeVar("T")

_BREAKERS = Breakers()


async def record(
    value: T, recorder: Callable[[T], object] | None, seconds: float, origin: object = None, **about: object
) -> None:
    """Pass the value to the recorder, if there is one. A failure is logged with `about`.

    Recorders with the same `origin` are suspended together if they do not answer.
    """
    if recorder is None:
        return
    breaker = _BREAKERS.of("recorder", origin or getattr(recorder, "__self__", recorder))
    if refusal := breaker.refusal():
        logger.error("recorder.failed", **about, error=refusal)
        return
    token, answered = current_breaker.set(breaker), None
    try:
        await within(seconds, recorder, value)
        answered = True
    except BaseException as raised:
        error = recordable(raised)
        answered = not isinstance(error, TimeoutError)
        logger.error("recorder.failed", **about, error=f"{type(error).__name__}: {error}")
    finally:
        current_breaker.reset(token)
        breaker.settle(answered, seconds)
