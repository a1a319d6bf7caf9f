"""The result of comparing a text with a query."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Match(NamedTuple):
    """How well a text serves a query, and why."""

    score: float
    """From 0 to 1, calibrated: from 0.7 on a text is worth its tokens."""
    strengths: Mapping[str, float] = MappingProxyType({})
    """The strength in each space that applies to the query, by code."""
    agreement: float = 0.0
    """The weighted sum of the strengths, at most 8.5 by default."""
