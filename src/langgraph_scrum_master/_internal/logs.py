"""The log, without what must not leave: errors may quote what they met."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeAlias

Redact: TypeAlias = Callable[[str], str]
"""Gives a text without what must not leave. If it fails, nothing of the text leaves."""

TEXT_FIELDS = frozenset(("error", "query", "value"))
"""Fields of an event that may hold words of messages, memories or errors; the others are names, ids and figures."""

_redact: ContextVar[Redact | None] = ContextVar("scrum_master_redact", default=None)


@contextmanager
def redacting(redact: Redact | None) -> Iterator[None]:
    """Have all that is logged within redacted."""
    token = _redact.set(redact)
    try:
        yield
    finally:
        _redact.reset(token)


def cleaned(facts: Mapping[str, Any], redact: Redact | None) -> dict[str, Any]:
    """The facts of an event with their words redacted."""
    if redact is None:
        return dict(facts)
    return {name: redact(str(fact)) if name in TEXT_FIELDS else fact for name, fact in facts.items()}


def _log(level: int, event: str, facts: Mapping[str, Any]) -> None:
    """Log through structlog where the host has configured it, else through `logging`, which is silent by default."""
    facts = cleaned(facts, _redact.get())
    # A host that never loaded structlog has not configured it, and loading it takes longer than all of ours.
    structlog = sys.modules.get("structlog")
    if structlog is not None and structlog.is_configured():
        structlog.get_logger(_NAME).log(level, event, **facts)
        return
    stdlib = logging.getLogger(_NAME)
    if stdlib.isEnabledFor(level):
        rendered = " ".join(f"{name}={fact!r}" for name, fact in facts.items())
        stdlib.log(level, "%s %s", event, rendered, extra={"event": event, "facts": facts})


_NAME = "langgraph_scrum_master"
# Without a handler of its own, `logging` would print warnings to standard error.
logging.getLogger(_NAME).addHandler(logging.NullHandler())


class _Logger:
    """Logs events with the redaction of the moment."""

    def info(self, event: str, **facts: Any) -> None:
        """Log that something happened."""
        _log(logging.INFO, event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        """Log that something went on in another way than meant."""
        _log(logging.WARNING, event, facts)

    def error(self, event: str, **facts: Any) -> None:
        """Log that something failed."""
        _log(logging.ERROR, event, facts)


logger = _Logger()


@cache
def _log_once(key: str, got: str, expected: str) -> None:
    logger.warning("state.not_understood", key=key, got=got, expected=expected)


def not_understood(key: str, value: object, expected: str) -> None:
    """Log, once per process, that a key of the state has a shape that is not read."""
    _log_once(key, type(value).__name__, expected)
