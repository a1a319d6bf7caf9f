"""Tables on the terminal."""

from __future__ import annotations

from rich.table import Column, Table


def folding(*names: str) -> Table:
    """A table of these columns without lines, which fold what is too long for them: a name that is cut is of no use."""
    return Table(*(Column(name, overflow="fold") for name in names), box=None)
