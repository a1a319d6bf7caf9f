"""The time of the query, for the spaces that compare times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import isfinite

_now: ContextVar[float | None] = ContextVar("scrum_master_query_time", default=None)


@contextmanager
def asked_at(now: float) -> Iterator[None]:
    """Set the time of all queries in this context, in seconds since the epoch."""
    token = _now.set(now if isfinite(now) else None)
    try:
        yield
    finally:
        _now.reset(token)


def query_time() -> float | None:
    """The time of the query in seconds since the epoch; None if it is unknown."""
    return _now.get()
