"""How well a text serves a query."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Match(NamedTuple):
    """How well a text serves a query, and why."""

    score: float
    """Calibrated: at 0.7 it earns its tokens."""
    strengths: Mapping[str, float] = MappingProxyType({})
    """Its own likeness in each space that had something to say."""
    agreement: float = 0.0
    """Those together, each by the weight of its space, up to 8.5."""
