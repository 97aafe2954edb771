"""Bars for long work, on standard error; and a console that outlives its reader."""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)


class PatientConsole(Console):
    """A console that goes silent, and lets work go on, when nobody reads any more."""

    def on_broken_pipe(self) -> None:
        """Print nothing from now on: ``propopt sweep FILE | head`` writes its files."""
        self.quiet = True
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


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
