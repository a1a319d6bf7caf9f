"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich import console as rich_console
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

LONGEST_WORD = 24
"""The longest word that a table makes room for. Longer ones fold."""


class FittingTable(Table):
    """A table that becomes a list of records where the terminal is too narrow for its columns."""

    def __rich_console__(
        self, console: rich_console.Console, options: rich_console.ConsoleOptions
    ) -> rich_console.RenderResult:
        """The table, or its rows one below the other, each cell after the name of its column."""
        if not self.columns or self._least_width(console, options) <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        if self.title:
            yield Text(str(self.title), style="bold")
        for row in self._records():
            yield row
            yield ""

    def _least_width(self, console: rich_console.Console, options: rich_console.ConsoleOptions) -> int:
        widths = [
            max(
                min(Measurement.get(console, options, cell.renderable).minimum, LONGEST_WORD)
                for cell in self._get_cells(console, column._index, column)
            )
            for column in self.columns
        ]
        return sum(widths) + 2 * len(widths)

    def _records(self) -> Iterator[Table]:
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            record = Table.grid(Column(style="dim", no_wrap=True), Column(overflow="fold"), padding=(0, 1))
            for column, cell in zip(self.columns, cells, strict=True):
                if str(cell).strip():
                    record.add_row(column.header, cell)
            yield record


def folding_table(*names: str) -> Table:
    """A table without borders whose columns fold long values, because a truncated name is useless."""
    return FittingTable(*(Column(name, overflow="fold") for name in names), box=None)
