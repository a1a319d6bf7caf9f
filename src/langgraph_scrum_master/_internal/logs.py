"""Logging with redaction: errors can quote private data."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeAlias

Redact: TypeAlias = Callable[[str], str]
"""Redacts a text. If it raises, the whole text is redacted."""

TEXT_FIELDS = frozenset(("error", "query", "value"))
"""The fields that can contain words of messages, memories or errors. The others are names, ids and numbers."""

_redact: ContextVar[Redact | None] = ContextVar("scrum_master_redact", default=None)


@contextmanager
def redacting(redact: Redact | None) -> Iterator[None]:
    """Redact everything that is logged in the block."""
    token = _redact.set(redact)
    try:
        yield
    finally:
        _redact.reset(token)


def cleaned(facts: Mapping[str, Any], redact: Redact | None) -> dict[str, Any]:
    """The fields of an event, with texts redacted."""
    if redact is None:
        return dict(facts)
    return {name: redact(str(fact)) if name in TEXT_FIELDS else fact for name, fact in facts.items()}


def _log(level: int, event: str, facts: Mapping[str, Any]) -> None:
    """Log through structlog if the host has configured it, else through `logging`, which is silent by default."""
    facts = cleaned(facts, _redact.get())
    # If structlog is not imported, it is not configured. Importing it takes longer than importing this package.
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
    """Logs events with the current redaction."""

    def info(self, event: str, **facts: Any) -> None:
        """Log an event."""
        _log(logging.INFO, event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        """Log a problem that the package worked around."""
        _log(logging.WARNING, event, facts)

    def error(self, event: str, **facts: Any) -> None:
        """Log a failure."""
        _log(logging.ERROR, event, facts)


logger = _Logger()


@cache
def _log_once(key: str, got: str, expected: str) -> None:
    logger.warning("state.not_understood", key=key, got=got, expected=expected)


def not_understood(key: str, value: object, expected: str) -> None:
    """Log, once per process, that a key of the state has an unexpected type."""
    _log_once(key, type(value).__name__, expected)
