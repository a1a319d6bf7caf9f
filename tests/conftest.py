from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import LogCapture

# Set before anything is imported: tests neither trace to a service nor send telemetry.
os.environ["LANGSMITH_TRACING"] = "false"


@pytest.fixture
def logged() -> Iterator[list[dict[str, object]]]:
    """What was logged through structlog."""
    capture = LogCapture()
    before = structlog.get_config()
    structlog.configure(processors=[capture], cache_logger_on_first_use=False)
    yield capture.entries  # type: ignore[misc]
    structlog.configure(**before)
