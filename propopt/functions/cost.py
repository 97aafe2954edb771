"""Estimated costs of evaluating a function, announced before the work begins."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt.base.arrays import Points
from propopt.base.resources import MODEL_CALLS, EvaluationCounter
from propopt.base.terminal import PlainConsole, is_silent
from propopt.functions.function import Function
from propopt.tables.frames import Labels


WORTH_SAYING: Final = 10.0
"""Seconds; shorter work is not announced."""

WORTH_TIMING: Final = 1.0
"""Seconds; for shorter work only a few rows are timed."""

TIMED_ROWS: Final = 3
"""Rows of the shortest timed call."""

GROWTH: Final = 8
"""The largest growth of rows from one timed call to the next."""

APART: Final = 3.0
"""A call this many times as long as the shortest separates rows from calls in cost."""

TRIAL_PATIENCE: Final = 30.0
"""The most seconds for all timed calls, if their cost is proportional to rows."""

TIMED_FOR = 0.5
REPEATS = 3
"""Calls are repeated up to three times, within half a second."""

MOVED: Final = 2.0
"""A factor; an estimate that is off by more is announced again."""

FIRST_LOOK: Final = 2.0
"""Seconds of work before an estimate is corrected."""


@final
@dataclass(frozen=True)
class Cost:
    """A number of evaluations of a function, and their estimated time."""

    evaluations: int  # rows to evaluate
    rate: float  # measured rows per second within a call
    overhead: float = 0.0  # additional seconds for each call
    calls: int = 1  # the number of calls

    @property
    def seconds(self) -> float:
        """The estimated time in seconds."""
        return self.calls * self.overhead + self.evaluations / self.rate

    def in_words(self) -> str:
        """The number of evaluations and the time, in one line."""
        about = f"about {in_time(self.seconds)} at the measured speed"
        return f"{self.evaluations:,} evaluations, {about}"

    def announce(self, label: str, wanted: bool | None = None) -> bool:
        """Print the cost of work on standard error, if it is long; returns if so."""
        is_long = self.seconds > WORTH_SAYING and not is_silent()
        if self.seconds > 0.0 and (is_long if wanted is None else wanted):
            _say(f"{label}: {self.in_words()}")
            return True
        return False

    @contextmanager
    def announced(
        self, label: str, calls: EvaluationCounter, wanted: bool | None = None
    ) -> Iterator[None]:
        """A context that announces work, and corrects the estimate while it runs."""
        announced = self.seconds if self.announce(label, wanted) else None
        if wanted is False or (wanted is None and is_silent()):
            yield
            return
        start = time.perf_counter()
        before = calls.rows

        def correct(rows: int) -> None:
            """Print the remaining time before a call if the estimate was wrong."""
            nonlocal announced
            done = rows - before
            seconds = time.perf_counter() - start
            if not 0 < done < self.evaluations or seconds < FIRST_LOOK:
                return
            total = seconds * self.evaluations / done
            left = total - seconds
            if announced is None:
                moved = total > WORTH_SAYING
            else:
                moved = not total / MOVED <= announced <= total * MOVED
            if moved and left > WORTH_TIMING:
                announced = total
                _say(
                    f"{label}: {done:,} of {self.evaluations:,} evaluations took "
                    f"{in_time(seconds)}, about {in_time(left)} are left"
                )

        with calls.notifying(correct):
            yield


def cost_of(
    function: Function,  # f
    points: Points,  # (N, D): typical rows
    labels: Labels,
    evaluations: int,  # the number of evaluations
    calls: int = 1,  # the least number of calls
) -> Cost:
    """Estimate the cost of evaluations of a function by timing calls of two lengths.

    The first call is not timed. Then a few rows are timed, and if all rows at that
    speed take long, eight times as many, and so on until the costs of rows and of calls
    can be separated, or a call has its final length. All count as ``calls.trials``.
    """
    largest = MODEL_CALLS.rows(8 * max(points.shape[1], 1))
    rows = min(largest, getattr(function, "batch_rows", largest))
    calls = max(calls, math.ceil(evaluations / rows))
    longest = max(math.ceil(evaluations / calls), 1)
    names = labels.of_columns()
    few = min(TIMED_ROWS, longest)
    with function.calls.as_trial():
        function.value_at(_repeated(points, few), names)
        start = time.perf_counter()
        n = few
        seconds = _seconds(function, _repeated(points, few), names)
        least = seconds
        while (
            n < longest
            and seconds * evaluations / n > WORTH_TIMING
            and (n == few or seconds < APART * least)
        ):
            left = TRIAL_PATIENCE - (time.perf_counter() - start)
            affordable = min(max(2 * n, evaluations // 10), int(n * left / seconds))
            more = min(GROWTH * n, affordable)
            if more < 2 * n:
                break
            n = min(more, longest)
            seconds = _seconds(function, _repeated(points, n), names)
    if n == few:  # short work or calls; otherwise slow rows
        overhead = seconds if n == longest else 0.0
        return Cost(evaluations, _rate(seconds - overhead, n), overhead, calls)
    rate = _rate(seconds - least, n - few)
    return Cost(evaluations, rate, max(seconds - n / rate, 0.0), calls)


def _rate(seconds: float, n_rows: int) -> float:
    """Rows per second; infinite if the time is not measurable."""
    return n_rows / seconds if seconds > 0.0 else math.inf


def in_time(seconds: float) -> str:
    """A duration in words, such as "5 min"."""
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
    """The given number of rows, repeated from the first if there are fewer."""
    return points[np.arange(n_rows) % len(points)]


def _seconds(function: Function, points: Points, labels: Labels) -> float:
    """The shortest time of several calls; other load only makes calls longer."""
    taken: list[float] = []
    while len(taken) < REPEATS and sum(taken) < TIMED_FOR:
        start = time.perf_counter()
        function.value_at(points, labels)
        taken.append(time.perf_counter() - start)
    return min(taken)


def _say(line: str) -> None:
    PlainConsole(stderr=True).print(line)
