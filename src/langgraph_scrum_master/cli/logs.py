"""Where commands that others read from their standard output log to."""

from __future__ import annotations

import sys


def log_to_stderr() -> None:
    """Have what is logged stand on standard error, one line an event."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.JSONRenderer(default=repr),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
