"""The time of the query, for the spaces that compare times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import isfinite

_now: ContextVar[float | None] = ContextVar("scrum_master_query_time", default=None)


@contextmanager
def asked_at(now: float) -> Iterator[None]:
    """Searches in this context are made at this time, in seconds since the epoch, whatever memory is searched."""
    token = _now.set(now if isfinite(now) else None)
    try:
        yield
    finally:
        _now.reset(token)


def query_time() -> float | None:
    """Seconds since the epoch at which the query is made; None if nobody said."""
    return _now.get()
