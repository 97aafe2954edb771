"""Methods side by side: each piece of work gives rows of the record.

Seconds are processor time of one thread, so that other programs on the machine count
little. Runs of the methods alternate, and a row has the median.
"""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from propopt.base.resources import one_thread


OURS = "propopt"
RUNS = 5

Role = Literal["propopt", "best", "general", "other"]
"""``best``: what a numerate user would write or install for exactly this work.
``general``: a tool that takes any such work. ``other``: another question, or setting.
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method at one piece of work, as the record has it.

    ``seconds`` are for the whole work. Where ``made`` is less than ``of``, only so many
    of its equal parts were timed, and their time was scaled. ``gap`` is certified by
    propopt; ``difference`` is the largest from our answer, as a share of the largest
    number in it.
    """

    work: str
    method: str
    role: Role
    seconds: float
    ratio: float
    runs: int
    made: int = 1
    of: int = 1
    gap: float | None = None
    difference: float | None = None
    peak_mib: float | None = None
    note: str = ""


class Timed(NamedTuple):
    """What a run clocked by itself: seconds for the whole work, and its result."""

    seconds: float
    result: Any


@dataclass(frozen=True, kw_only=True)
class Method:
    """One way to do a piece of work.

    Parameters
    ----------
    name : str
        What it is.
    run : callable
        Does it, or ``made`` of its ``of`` equal parts; or gives a :class:`Timed`.
    role : Role
        What it stands for.
    made, of : int
        How many parts are done, and how many the work has.
    runs : int
        How often; the record has the median.
    gap : callable, optional
        From the result to its certified gap.
    answer : callable, optional
        From the result to numbers, which are compared with ours.
    same : array, optional
        Our answer to what is done, where that is a part that has values of its own.
    apart : callable, optional
        A function of a module that does the same in a process of its own, once more:
        the record has the peak memory of that.
    note : str
        What it lacks, or what else it does.
    """

    name: str
    run: Callable[[], Any]
    role: Role = "best"
    made: int = 1
    of: int = 1
    runs: int = RUNS
    gap: Callable[[Any], float | None] | None = None
    answer: Callable[[Any], Any] | None = None
    same: Any = None
    apart: Callable[[], Any] | None = None
    note: str = ""

    def timed(self) -> Timed:
        """One run, scaled to the whole work."""
        with one_thread():
            began = time.process_time()
            result = self.run()
            seconds = time.process_time() - began
        if isinstance(result, Timed):
            return result
        return Timed(seconds * self.of / self.made, result)


class Clocked(NamedTuple):
    """Seconds of all runs of one method, and what the last one gave."""

    seconds: list[float]
    result: Any


def alternate(methods: list[Method]) -> list[Clocked]:
    """Run k of every method comes before run k + 1 of any."""
    clocked = [Clocked([], None) for _ in methods]
    for k in range(max(method.runs for method in methods)):
        for place, method in enumerate(methods):
            if k < method.runs:
                seconds, result = method.timed()
                clocked[place] = Clocked([*clocked[place].seconds, seconds], result)
    return clocked


def race(work: str, ours: Method, *others: Method) -> list[Row]:
    """The rows of one piece of work; ratios are multiples of our time."""
    methods = [ours, *others]
    clocked = alternate(methods)
    reference = statistics.median(clocked[0].seconds)
    same = None if ours.answer is None else ours.answer(clocked[0].result)
    rows = []
    for method, (times, result) in zip(methods, clocked, strict=True):
        seconds = statistics.median(times)
        rows.append(
            Row(
                work=work,
                method=method.name,
                role=method.role,
                seconds=seconds,
                ratio=seconds / reference,
                runs=len(times),
                made=method.made,
                of=method.of,
                gap=None if method.gap is None else method.gap(result),
                difference=_difference(method, ours, result, same),
                peak_mib=None if method.apart is None else peak_mib(method.apart),
                note=method.note,
            )
        )
    return rows


def _difference(method: Method, ours: Method, result: Any, same: Any) -> float | None:
    same = same if method.same is None else method.same
    if method is ours or same is None or method.answer is None:
        return None
    answer = np.asarray(method.answer(result))
    return float(np.abs(answer - same).max() / np.abs(same).max())


def peak_mib(run: Callable[[], Any]) -> float:
    """The peak memory in MiB of ``run`` in a process of its own.

    ``run`` must be a function of a module; Python and its modules are part of it.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_peak_of, (run,))


def _peak_of(run: Callable[[], Any]) -> float:
    with one_thread():
        run()
    return _peak_mib()


def _peak_mib() -> float:
    """The largest resident memory of this process.

    Linux's ``ru_maxrss`` would count that of the parent before the process was its own.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (line,) = (x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
    return float(line.split()[1]) / 1024
