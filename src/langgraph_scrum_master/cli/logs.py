"""Logging of the command line: to standard error, since programs read standard output."""

from __future__ import annotations

import logging
import sys


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
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logging.getLogger("langgraph_scrum_master").addHandler(handler)
