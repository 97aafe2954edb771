"""What a terminal shows while work goes on: lines, bars, silence."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import perf_counter
from typing import Any, Final, final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.status import Status
from rich.text import Text

from propopt.base.streams import PatientStream
from propopt.base.text import printable, printable_lines


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


def progress_bar(label: str, total: int | None, wanted: bool | None) -> Progress:
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


_LOOKED_AT, _FIRST_SAID, _SAID_EVERY = 2.0, 10.0, 60.0
"""Seconds of work that tell its speed; seconds in all from which a log has its cost;
seconds between its lines."""


@final
class LoggedProgress:
    """Lines on standard error where no bar is shown, as in a pipe or a log.

    The first, after two seconds of work, has what all will take; one a minute has what
    is done and left. Of work of less than ten seconds nothing is said.
    """

    label: str
    first: int
    done: int
    total: int
    console: PlainConsole
    is_shown: bool
    start: float
    said: float | None

    def __init__(self, label: str, done: int, total: int, wanted: bool | None) -> None:
        self.label, self.first, self.done, self.total = label, done, done, total
        self.console = PlainConsole(stderr=True)
        is_log = wanted is None and not is_silent() and not self.console.file.isatty()
        self.is_shown = is_log
        self.start, self.said = perf_counter(), None if is_log else inf

    def advance(self, count: int) -> None:
        """So many more are done."""
        self.done += count
        if not self.is_shown:
            return
        now = perf_counter()
        spent = now - self.start
        left = spent * (self.total - self.done) / (self.done - self.first)
        due = self.said is not None and now - self.said >= _SAID_EVERY
        if self.done < self.total and (
            due
            or (
                self.said is None
                and spent >= _LOOKED_AT
                and spent + left >= _FIRST_SAID
            )
        ):
            self.said = now
            self.console.print(
                f"{self.label}: {self.done:,} of {self.total:,} done in {spent:.0f} s, "
                f"about {max(left, 1.0) / 60.0:.1f} min left"
            )
