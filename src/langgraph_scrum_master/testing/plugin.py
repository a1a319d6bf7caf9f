"""The pytest plugin: fixed clocks, memories, and snapshots as parametrised tests. Loads nothing heavy by itself."""

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
    """Add the option that stores results."""
    group = parser.getgroup("scrum-master")
    group.addoption(UPDATE, action="store_true", help="store what replayed snapshots give now as their results")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    told = f"{MARKER}(path): run the test for each snapshot of a file or folder beside it, given as `{CASE}`"
    config.addinivalue_line("markers", told)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a marked test each snapshot of its file or folder."""
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        return
    if CASE not in metafunc.fixturenames:
        pytest.fail(f"{metafunc.definition.name} is marked {MARKER}, and must take {CASE!r}", pytrace=False)
    from langgraph_scrum_master.testing.cases import cases

    place = metafunc.definition.path.parent / Path(*marker.args)
    found = list(cases(place, update=metafunc.config.getoption(UPDATE)))
    # As with any empty parametrisation, the setting of that name decides; by default it is skipped, and here says why.
    if not found and metafunc.config.getini("empty_parameter_set_mark") in ("", "skip"):
        nothing = pytest.mark.skip(reason=f"there are no snapshots in {str(place)!r}")
        metafunc.parametrize(CASE, [pytest.param(None, marks=nothing, id="none")])
    else:
        metafunc.parametrize(CASE, found, ids=[case.name for case in found])


@pytest.fixture
def scrum_master_clock() -> FixedClock:
    """A clock that stands still until it is told to go on."""
    from langgraph_scrum_master.testing.builders import FixedClock

    return FixedClock()


@pytest.fixture
def scrum_master_memory() -> StoreMemory:
    """An empty memory that lives in the process."""
    from langgraph_scrum_master.testing.builders import a_memory

    return a_memory()
