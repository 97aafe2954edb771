"""Tables on terminals: no digit is cut off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from propopt.output.text import printable


def print_table(
    console: Console, title: str, head: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a title and a table, whose first column has names and the others numbers.

    A table that is too wide runs over the edge. Names of columns are broken at
    underscores.
    """
    table = _table(head, rows)
    unlimited = console.options.update(width=10_000)
    table.width = Measurement.get(console, unlimited, table).maximum
    console.print()
    console.print(title, style="italic")
    console.print(table)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(head):
        table.add_column(
            printable(name).replace("_", "\n"),
            justify="right" if place else "left",
            no_wrap=True,
            vertical="bottom",
        )
    for row in rows:
        table.add_row(*map(printable, row))
    return table
