"""Long hostile texts take time in proportion to their length."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from langgraph_scrum_master.text.adr import parse_adr

SIZES = (25_000, 50_000, 100_000)
LIMIT = 1.0
"""Seconds for all sizes together, far above what linear time needs: a quadratic pattern takes minutes."""


def seconds(read: Callable[[str], object], before: str, unit: str) -> float:
    texts = [before + unit * (size // len(unit)) for size in SIZES]
    start = time.process_time()
    for text in texts:
        read(text)
    return time.process_time() - start


def read_adr(text: str) -> object:
    adr = parse_adr(text, text)
    return adr.in_force, adr.successor


ADR_UNITS = (
    *("superseded by ", "superseded ", "# ", "#", "#\n", "##\n", "## status ", "## status\n", "~~", "~~a", "* ", "*"),
    *("-\n", "status", "status*", "status:", "status:\n", "---\n", "--- ", "\n--- x", " ", "\n", "0", "ADR 0", "a"),
)


@pytest.mark.parametrize("before", ["", "# T\n\n## Status\n\n", "---\nstatus: ", "---\n"])
@pytest.mark.parametrize("unit", ADR_UNITS)
def test_an_adr_is_read_in_linear_time(before: str, unit: str) -> None:
    assert seconds(read_adr, before, unit) < LIMIT
