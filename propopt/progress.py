"""Bars for long work, on standard error."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)


def progress_bar(what: str, total: int, wanted: bool | None) -> Progress:
    """A bar with one task, named ``what``; None shows it only on a terminal."""
    terminal = sys.stderr.isatty()
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn())
    bar = Progress(
        *columns,
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=terminal,  # a log keeps the last state, a terminal none
        disable=not (terminal if wanted is None else wanted),
    )
    bar.add_task(what, total=total)
    return bar
