"""Circuit breakers: what does not answer is not called for a while, and its hung calls are limited in number."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from contextvars import ContextVar
from typing import Literal

from langgraph_scrum_master._internal import telemetry
from langgraph_scrum_master._internal.logs import logger

TIMEOUTS = 3
"""Timeouts in a row after which a breaker opens, by hand."""

COOL_DOWN = 15
"""The time until an open breaker lets one call through, as a multiple of the deadline, by hand."""

MOST_STUCK = 8
"""Maximum number of threads that hang in calls of one component."""

_MOST_KNOWN = 256
"""Maximum number of components that are remembered."""


class Breaker:
    """Whether a component may be called.

    Closed, it may. After `TIMEOUTS` timeouts in a row the breaker opens. After the cool-down it is half-open: one call
    is let through, and its outcome closes or opens it again.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: Literal["closed", "open", "half_open"] = "closed"
        self.opened: Literal["never", "late", "yes"] = "never"
        """Whether the component's own `open` has returned, or once did not return in time."""
        self.stuck = 0
        """Threads that hang in its calls."""
        self._timeouts = 0
        self._until = 0.0
        self._lock = threading.Lock()

    def refusal(self) -> str:
        """Why it must not be called now; empty if it may. Then the caller reports the outcome with `settle`."""
        with self._lock:
            if self.state == "closed":
                return ""
            left = self._until - time.monotonic()
            if self.state == "half_open" or left > 0 or self.stuck >= MOST_STUCK:
                return f"suspended: no answer {self._timeouts} times in a row, next attempt in {max(left, 0.0):.1f} s"
            self.state = "half_open"
            return ""

    def settle(self, answered: bool | None, deadline: float) -> None:
        """Report the outcome of a call; None if it was cancelled."""
        with self._lock:
            before = self.state
            if answered:
                self.state, self._timeouts = "closed", 0
            elif answered is None:
                self.state = "open" if before == "half_open" else before
            else:
                self._timeouts += 1
                if before == "half_open" or self._timeouts >= TIMEOUTS:
                    self.state, self._until = "open", time.monotonic() + COOL_DOWN * deadline
            after = self.state
        if after == "open" and before != "open" and answered is not None:
            logger.warning("breaker.opened", source=self.name, timeouts=self._timeouts, seconds=COOL_DOWN * deadline)
            telemetry.count("breakers", source=self.name, state=after)
        elif after == "closed" and before != "closed":
            logger.info("breaker.closed", source=self.name)
            telemetry.count("breakers", source=self.name, state=after)

    def abandon(self, by: int = 1) -> None:
        """Count a thread that hangs in a call, or with -1 one that has returned."""
        with self._lock:
            self.stuck += by


class Breakers:
    """The breakers of components, by name and by what their calls go to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, object], tuple[object, Breaker]] = OrderedDict()

    def of(self, name: str, component: object) -> Breaker:
        """The breaker of a component. Components with the same `origin` share one."""
        origin = origin_of(component)
        # By id, because components need not be hashable. The reference keeps the id from being reused.
        key = (name, origin if isinstance(origin, str) else id(origin))
        with self._lock:
            _, breaker = self._known.setdefault(key, (origin, Breaker(name)))
            self._known.move_to_end(key)
            if len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        return breaker


def origin_of(component: object) -> object:
    """What the calls of a component go to, such as a database: its `origin`, else the component itself."""
    return getattr(component, "origin", component)


current_breaker: ContextVar[Breaker | None] = ContextVar("scrum_master_breaker", default=None)
"""The breaker of the component that is being called."""
