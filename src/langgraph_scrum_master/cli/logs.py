"""Logging of the command line: to standard error, since programs read standard output."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

from langgraph_scrum_master.text.sanitize import visible


def log_to_stderr() -> None:
    """Log to standard error, one JSON line per event."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.JSONRenderer(default=repr),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def show_warnings() -> None:
    """Print the library's warnings and errors to standard error, one line each."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_VisibleFormatter("%(levelname)s: %(message)s"))
    logging.getLogger("langgraph_scrum_master").addHandler(handler)


def visible_values(_logger: object, _method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """A structlog processor that removes control characters from the values of an event."""
    return {name: visible(value) if isinstance(value, str) else value for name, value in event.items()}


class _VisibleFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))
