"""Seconds, peak memory and the rows of the tables."""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


OURS = "propopt"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method at one piece of work.

    ``solves`` is how many of the solves were really made: a peer that would take hours
    makes a few, and its time is scaled.
    """

    work: str
    method: str
    seconds: float
    solves: str = ""
    gap: float | None = None
    ratio: float | None = None
    peak_mib: float | None = None
    target: str = ""


def median_seconds(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The median of the wall-clock times of some runs, and what the last one gave."""
    times = []
    result = None
    for _ in range(repeats):
        began = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - began)
    return statistics.median(times), result


def in_a_process(run: Callable[[], Any]) -> tuple[Any, float]:
    """What ``run`` gives in a process of its own, and the peak memory of that in MiB.

    ``run`` must be a function of a module, and its result must be picklable.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_with_peak, (run,))


def _with_peak(run: Callable[[], Any]) -> tuple[Any, float]:
    result = run()
    return result, _peak_mib()


def _peak_mib() -> float:
    """The largest resident memory of this process.

    Linux's ``ru_maxrss`` would count that of the parent before the process was its own.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (line,) = (x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
    return float(line.split()[1]) / 1024


def with_ratios(rows: list[Row]) -> list[Row]:
    """Each row with its time as a multiple of ours."""
    reference = next(row.seconds for row in rows if row.method == OURS)
    return [Row(**{**vars(row), "ratio": row.seconds / reference}) for row in rows]
