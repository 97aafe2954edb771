"""Output in a terminal during work: a console, progress bars and log lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Timer
from time import perf_counter
from typing import Any, Final, TypeVar, final

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


_Item = TypeVar("_Item")


class PlainConsole(Console):
    """A console for plain text, without markup, emoji and control characters.

    If the reader closes the stream, the console becomes silent and work continues.
    """

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        if not isinstance(stream, PatientStream):  # that of a command already is
            stream = PatientStream(stream)
        super().__init__(
            file=stream,  # type: ignore[arg-type]  # rich declares all methods of IO
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
    """Suppress progress bars and log lines in a block, unless they are requested."""
    token = _SILENT.set(wanted or _SILENT.get())
    try:
        yield
    finally:
        _SILENT.reset(token)


def is_silent() -> bool:
    """Whether output during work is suppressed by :func:`silent`."""
    return _SILENT.get()


_SOON: Final = 1.0
"""Seconds of work before a bar appears that was not requested."""


_SPEED_OVER: Final = 600.0
"""Seconds of which speed is a mean: several items, even if each takes a minute."""


@final
class _LateProgress(Progress):
    """A progress bar that does not flash on a terminal: short work shows none."""

    def start(self) -> None:
        """Show the bar in a second, unless work has ended by then."""
        self._timer = Timer(_SOON, super().start)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        self._timer.cancel()
        self._timer.join()  # now the bar is shown, or never will be
        if self.live.is_started:
            super().stop()


@contextmanager
def progress_bar(
    label: str, total: int | None, wanted: bool | None, done: int = 0
) -> Iterator[Callable[..., None]]:
    """A progress bar, as a function that counts one more item, or some.

    ``wanted=None`` shows it only on a terminal, and only after a second of work.
    """
    terminal = _has_terminal()
    if terminal and not is_silent() if wanted is None else wanted:
        bar = (_LateProgress if wanted is None else Progress)(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=PlainConsole(stderr=True),
            transient=terminal,  # only logs keep the last state
            speed_estimate_period=_SPEED_OVER,
        )
    else:  # a hidden bar ends with a blank line unless its console is quiet
        bar = Progress(console=Console(quiet=True), disable=True)
    task = bar.add_task(printable(label), total=total, completed=done)
    with bar:
        yield partial(bar.advance, task)


def tracked(label: str, items: Sequence[_Item], wanted: bool | None) -> Iterator[_Item]:
    """Iterate with a progress bar."""
    with progress_bar(label, len(items), wanted) as advance:
        for item in items:
            yield item
            advance()


def _has_terminal() -> bool:
    """Whether standard error is a terminal; it may be missing."""
    return sys.stderr is not None and sys.stderr.isatty()


_MEASURED_SECONDS = 2.0
_MIN_LOGGED_SECONDS = 10.0
_LOG_INTERVAL = 60.0
"""Seconds to measure the speed; the least seconds of work that is logged; seconds
between log lines."""


@final
class LoggedProgress:
    """Log lines on standard error in place of a progress bar, for pipes and logs.

    The first line, after two seconds of work, has the estimated total; later ones,
    every minute, have the progress. Work of less than ten seconds is not logged.
    """

    def __init__(self, label: str, done: int, total: int, wanted: bool | None) -> None:
        self.label = label
        self.first = done
        self.done: int = done
        self.total = total
        self.is_shown: bool = wanted is None and not is_silent() and not _has_terminal()
        self.start: float = perf_counter()
        self.logged_at: float | None = None

    def advance(self, count: int) -> None:
        """Count more finished items, and log a line if it is due."""
        self.done += count
        if not self.is_shown:
            return
        now = perf_counter()
        spent = now - self.start
        left = spent * (self.total - self.done) / (self.done - self.first)
        if self.logged_at is None:
            due = spent >= _MEASURED_SECONDS and spent + left >= _MIN_LOGGED_SECONDS
        else:
            due = now - self.logged_at >= _LOG_INTERVAL
        if due and self.done < self.total:
            self.logged_at = now
            PlainConsole(stderr=True).print(
                f"{self.label}: {self.done:,} of {self.total:,} done in {spent:.0f} s, "
                f"about {max(left, 1.0) / 60.0:.1f} min left"
            )


@contextmanager
def counting(
    label: str, done: int, total: int, wanted: bool | None
) -> Iterator[Callable[[int], None]]:
    """Show how many items are done, and how long the rest will take.

    The time up to the first call of ``advance`` is not counted, because it includes
    preparations. ``advance(0)`` ends them without an item.
    """
    log: LoggedProgress | None = None
    with progress_bar(label, total, wanted, done) as count_on_bar:

        def advance(count: int) -> None:
            nonlocal done, log
            done += count
            count_on_bar(count)
            if log is None:
                log = LoggedProgress(label, done, total, wanted)
            else:
                log.advance(count)

        yield advance
