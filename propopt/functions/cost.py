"""What evaluating a function will cost, said before the work begins."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Points
from propopt.functions.base import Function
from propopt.output.progress import PlainConsole, is_silent
from propopt.tables.names import Labels


WORTH_SAYING: Final = 2.0
"""Seconds; of shorter work nothing is said."""

TIMED_ROWS, MORE_ROWS = 3, 256
"""Rows that are timed; more, of a model that answers the first of them at once."""

AT_ONCE: Final = 0.1
"""Seconds."""


@final
@dataclass(frozen=True)
class Cost:
    """A number of evaluations, and how long they take.

    Parameters
    ----------
    evaluations : int
        Rows that the function is given.
    rate : float
        Rows per second, as measured.

    Examples
    --------
    >>> Cost(evaluations=3_150_000, rate=131_250.0).in_words()
    '3,150,000 evaluations, about 24 s at the measured speed'
    """

    evaluations: int
    rate: float

    @property
    def seconds(self) -> float:
        """How long they take."""
        return self.evaluations / self.rate

    def in_words(self) -> str:
        """Both, in one line."""
        duration = in_time(self.seconds)
        return (
            f"{self.evaluations:,} evaluations, about {duration} at the measured speed"
        )

    def announce(
        self, what: str, wanted: bool | None = None, least: float = WORTH_SAYING
    ) -> None:
        """Say on standard error what work will cost, where it is long.

        Parameters
        ----------
        what : str
            The work.
        wanted : bool, optional
            Whether to say it whatever it costs, or not at all; by default where it
            takes longer than ``least``, and nothing is done in silence.
        least : float
            Seconds.
        """
        said = self.seconds > least and not is_silent()
        if said if wanted is None else wanted:
            PlainConsole(stderr=True).print(f"{what}: {self.in_words()}")


def cost_of(
    function: Function, points: Points, labels: Labels, evaluations: int
) -> Cost:
    """What so many evaluations of a function cost, by timing a few.

    At most 262 rows and those of the first trial are evaluated, fewer where that takes
    long; they are counted as ``calls.trials``.

    Parameters
    ----------
    function : Function
        f.
    points : array (N, D)
        Rows of the kind that it will be given.
    labels : Labels
        Their names.
    evaluations : int
        How many there will be.
    """
    names = labels.of_columns()
    with function.calls.trying_out():
        few = _repeated(points, TIMED_ROWS)
        function.value_at(few, names)  # what is done once is no part of the speed
        seconds = _seconds(function, few, names)
        if seconds < AT_ONCE and evaluations * seconds > WORTH_SAYING * TIMED_ROWS:
            more = _repeated(points, MORE_ROWS)
            return Cost(evaluations, MORE_ROWS / _seconds(function, more, names))
    return Cost(evaluations, TIMED_ROWS / seconds)


def in_time(seconds: float) -> str:
    """A length of time in words.

    Examples
    --------
    >>> [in_time(t) for t in (0.3, 24.4, 200.0, 10_000.0, 400_000.0)]
    ['0.3 s', '24 s', '3 min', '2.8 h', '4.6 days']
    """
    if seconds < 10.0:
        return f"{seconds:.1f} s"
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    if seconds < 7_200.0:
        return f"{seconds / 60.0:.0f} min"
    if seconds < 172_800.0:
        return f"{seconds / 3_600.0:.1f} h"
    return f"{seconds / 86_400.0:.1f} days"


def _repeated(points: Points, n_rows: int) -> Points:
    """So many rows, the first ones again where there are fewer."""
    return points[np.arange(n_rows) % len(points)]


def _seconds(function: Function, points: Points, labels: Labels) -> float:
    start = time.perf_counter()
    function.value_at(points, labels)
    return max(time.perf_counter() - start, 1e-9)
