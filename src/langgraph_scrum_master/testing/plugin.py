"""The pytest plugin: fixtures for a clock and a memory, and snapshots as parametrised tests. Imports are lazy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from langgraph_scrum_master.memory.langgraph_store import StoreMemory
    from langgraph_scrum_master.testing.builders import FixedClock

MARKER = "scrum_master_snapshots"
CASE = "scrum_master_snapshot"
UPDATE = "--scrum-master-update"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that updates snapshots."""
    group = parser.getgroup("scrum-master")
    group.addoption(UPDATE, action="store_true", help="record the current results in replayed snapshots")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    description = f"{MARKER}(path): run the test for each snapshot in a file or folder beside it, as `{CASE}`"
    config.addinivalue_line("markers", description)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise a marked test with the snapshots in its file or folder."""
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        return
    if CASE not in metafunc.fixturenames:
        pytest.fail(f"{metafunc.definition.name} is marked {MARKER} and must take {CASE!r}", pytrace=False)
    from langgraph_scrum_master.testing.cases import cases

    place = metafunc.definition.path.parent / Path(*marker.args)
    snapshots = list(cases(place, update=metafunc.config.getoption(UPDATE)))
    # `empty_parameter_set_mark` decides what happens; the default is a skip, here with a reason.
    if not snapshots and metafunc.config.getini("empty_parameter_set_mark") in ("", "skip"):
        nothing = pytest.mark.skip(reason=f"there are no snapshots in {str(place)!r}")
        metafunc.parametrize(CASE, [pytest.param(None, marks=nothing, id="none")])
    else:
        metafunc.parametrize(CASE, snapshots, ids=[case.name for case in snapshots])


@pytest.fixture
def scrum_master_clock() -> FixedClock:
    """A clock that does not move until `advance` is called."""
    from langgraph_scrum_master.testing.builders import FixedClock

    return FixedClock()


@pytest.fixture
def scrum_master_memory() -> StoreMemory:
    """An empty in-process memory."""
    from langgraph_scrum_master.testing.builders import a_memory

    return a_memory()
