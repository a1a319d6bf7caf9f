"""Logging for commands whose standard output is read by programs."""

from __future__ import annotations

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
