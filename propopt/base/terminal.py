"""What a terminal shows while work goes on, and tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from rich.console import Console
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.status import Status
from rich.table import Table
from rich.text import Text

from propopt.base.streams import PatientStream
from propopt.base.text import printable, printable_lines


# ---- What runs print: a console on which names are text, and bars for long work


class PlainConsole(Console):
    """A console on which text is text: no markup, no emoji, no control characters.

    It goes silent, and lets work go on, when nobody reads any more.
    """

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        super().__init__(
            file=PatientStream(sys.stderr if stderr else sys.stdout),  # type: ignore[arg-type]  # rich asks for all that IO has
            quiet=quiet,
            markup=False,
            emoji=False,
            highlight=False,
            soft_wrap=True,
        )

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(printable_lines(text), **settings)

    def status(self, status: object, **settings: Any) -> Status:
        return super().status(Text(printable(status)), **settings)


_SILENT: Final = ContextVar("silent", default=False)


@contextmanager
def silent(wanted: bool = True) -> Iterator[None]:
    """Within, nothing is said of work unless it is asked for: no costs, no bars."""
    token = _SILENT.set(wanted or _SILENT.get())
    try:
        yield
    finally:
        _SILENT.reset(token)


def is_silent() -> bool:
    """Whether work is done in silence, see :func:`silent`."""
    return _SILENT.get()


def progress_bar(label: str, total: int, wanted: bool | None) -> Progress:
    """A bar with one task, named ``label``; None shows it only on a terminal."""
    console = PlainConsole(stderr=True)
    terminal = console.file.isatty()
    shown = terminal and not is_silent() if wanted is None else wanted
    console.quiet = not shown  # a bar that is not shown ends with a blank line else
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=terminal,  # a log keeps the last state, a terminal none
        disable=not shown,
    )
    bar.add_task(printable(label), total=total)
    return bar


# ---- Tables on terminals: no digit is cut off


def print_table(
    console: Console, title: str, head: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a title and a table, whose first column has names and the others numbers.

    A table that is too wide runs over the edge. Names of columns are broken at
    underscores.
    """
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
    unlimited = console.options.update(width=10_000)
    table.width = Measurement.get(console, unlimited, table).maximum
    console.print()
    console.print(title, style="italic")
    console.print(table)
