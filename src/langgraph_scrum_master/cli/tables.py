"""Tables on the terminal."""

from __future__ import annotations

from rich.table import Column, Table


def folding_table(*names: str) -> Table:
    """A table without borders whose columns fold long values, because a truncated name is useless."""
    return Table(*(Column(name, overflow="fold") for name in names), box=None)
