"""The log, without what must not leave: errors may quote what they met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

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


@cache
def _structlog() -> FilteringBoundLogger:
    # Not before something is logged: it takes longer to load than all of ours.
    import structlog

    logger: FilteringBoundLogger = structlog.get_logger("langgraph_scrum_master")
    return logger


class _Logger:
    """structlog's, with the redaction of the moment."""

    def info(self, event: str, **facts: Any) -> None:
        """Log that something happened."""
        _structlog().info(event, **cleaned(facts, _redact.get()))

    def warning(self, event: str, **facts: Any) -> None:
        """Log that something went on in another way than meant."""
        _structlog().warning(event, **cleaned(facts, _redact.get()))

    def error(self, event: str, **facts: Any) -> None:
        """Log that something failed."""
        _structlog().error(event, **cleaned(facts, _redact.get()))


logger = _Logger()


@cache
def _log_once(key: str, got: str, expected: str) -> None:
    logger.warning("state.not_understood", key=key, got=got, expected=expected)


def not_understood(key: str, value: object, expected: str) -> None:
    """Log, once per process, that a key of the state has a shape that is not read."""
    _log_once(key, type(value).__name__, expected)
