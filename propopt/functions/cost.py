"""What evaluating a function will cost, said before the work begins."""

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
"""Seconds; of shorter work nothing is said."""

WORTH_TIMING: Final = 1.0
"""Seconds; of shorter work no more than a few rows are timed."""

TIMED_ROWS: Final = 3
"""Rows of the shortest call that is timed."""

GROWTH: Final = 8
"""Each longer call has at most so many times the rows of the last."""

APART: Final = 3.0
"""A call that takes so many times the shortest tells what a row takes beside a call."""

TRIAL_PATIENCE: Final = 30.0
"""Seconds that all timed calls take at most, if rows take them and calls nothing."""

TIMED_FOR, REPEATS = 0.5, 3
"""Calls are timed so often, as far as that takes no more than so many seconds."""

MOVED: Final = 2.0
"""A factor; an estimate that has moved by more is said again."""

FIRST_LOOK: Final = 2.0
"""Seconds of work, before which nothing is corrected."""


@final
@dataclass(frozen=True)
class Cost:
    """A number of evaluations, and how long they take."""

    evaluations: int  # rows that the function is given
    rate: float  # rows per second, as measured, within a call
    overhead: float = 0.0  # seconds that each call takes besides
    calls: int = 1  # tables that the rows are given in

    @property
    def seconds(self) -> float:
        """How long they take."""
        return self.calls * self.overhead + self.evaluations / self.rate

    def in_words(self) -> str:
        """Both, in one line."""
        about = f"about {in_time(self.seconds)} at the measured speed"
        return f"{self.evaluations:,} evaluations, {about}"

    def announce(self, label: str, wanted: bool | None = None) -> bool:
        """Say on standard error what work will cost, where it is long."""
        said = self.seconds > WORTH_SAYING and not is_silent()
        if self.seconds > 0.0 and (said if wanted is None else wanted):
            _say(f"{label}: {self.in_words()}")
            return True
        return False

    @contextmanager
    def announced(
        self, label: str, calls: EvaluationCounter, wanted: bool | None = None
    ) -> Iterator[None]:
        """Announce work that is done within; say again what is left if it was wrong."""
        said = self.seconds if self.announce(label, wanted) else None
        if wanted is False or (wanted is None and is_silent()):
            yield
            return
        start, before = time.perf_counter(), calls.rows

        def heard(rows: int) -> None:
            """What is left, before another call, if that is not what was said."""
            nonlocal said
            done, seconds = rows - before, time.perf_counter() - start
            if not 0 < done < self.evaluations or seconds < FIRST_LOOK:
                return
            total = seconds * self.evaluations / done
            left = total - seconds
            if said is None:
                moved = total > WORTH_SAYING
            else:
                moved = not total / MOVED <= said <= total * MOVED
            if moved and left > WORTH_TIMING:
                said = total
                _say(
                    f"{label}: {done:,} of {self.evaluations:,} evaluations took "
                    f"{in_time(seconds)}, about {in_time(left)} are left"
                )

        with calls.notifying(heard):
            yield


def cost_of(
    function: Function,  # f
    points: Points,  # (N, D): rows of the kind that it will be given
    labels: Labels,
    evaluations: int,  # how many there will be
    calls: int = 1,  # in how many tables they will come, at least
) -> Cost:
    """What so many evaluations of a function cost, by timing calls of two lengths.

    The first call is not timed. Then a few rows are, and where all rows at that speed
    take long, eight times as many, and so on until a row can be told from a call, or a
    call is as long as calls will be. All are counted as ``calls.trials``.
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
        n, seconds = few, _seconds(function, _repeated(points, few), names)
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
    if n == few:  # short work, or calls that are no longer; else rows that are slow
        overhead = seconds if n == longest else 0.0
        return Cost(evaluations, _rate(seconds - overhead, n), overhead, calls)
    rate = _rate(seconds - least, n - few)
    return Cost(evaluations, rate, max(seconds - n / rate, 0.0), calls)


def _rate(seconds: float, n_rows: int) -> float:
    """Rows per second, infinite where they take no time that can be seen."""
    return n_rows / seconds if seconds > 0.0 else math.inf


def in_time(seconds: float) -> str:
    """A length of time in words."""
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
    """The shortest of some calls: whatever else is done makes them longer."""
    taken: list[float] = []
    while len(taken) < REPEATS and sum(taken) < TIMED_FOR:
        start = time.perf_counter()
        function.value_at(points, labels)
        taken.append(time.perf_counter() - start)
    return min(taken)


def _say(line: str) -> None:
    PlainConsole(stderr=True).print(line)
