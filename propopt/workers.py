"""Work in other processes, which end with the one that gave it to them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from numbers import Integral
from typing import Any, TypeVar

import joblib
from joblib.parallel import BACKENDS, get_active_backend
from threadpoolctl import threadpool_info, threadpool_limits

from propopt.errors import InvalidInput, SolverFailure
from propopt.threads import CHOSEN_BY


_Result = TypeVar("_Result")

WATCH = 0.5  # seconds between two looks at the parent


def read_workers(n_jobs: int | None) -> int:
    """How many workers are meant: one for None, unless joblib is told otherwise.

    Raises
    ------
    InvalidInput
        For zero, and what is no number of workers.
    """
    if n_jobs == 0 or not isinstance(n_jobs, Integral | None):
        raise InvalidInput(
            "n_jobs: expected a number of workers, -1 for all processors, or None, "
            f"got {n_jobs!r}"
        )
    return int(joblib.effective_n_jobs(n_jobs))


def in_workers(
    calls: Iterable[Callable[[], _Result]], n_workers: int
) -> Iterator[_Result]:
    """The results of the calls in their order, each as soon as it is there.

    Parameters
    ----------
    calls : iterable of callable
        Sent to the workers by pickling.
    n_workers : int
        Processes; another backend of joblib is respected.

    Raises
    ------
    SolverFailure
        If a worker is killed.
    """
    backend, _ = get_active_backend()
    kind = "generator" if results_come_early() else "list"
    parallel = joblib.Parallel(n_workers, return_as=kind, **_settings(backend))
    try:
        yield from parallel(joblib.delayed(call)() for call in calls)
    except BrokenProcessPool as error:
        raise SolverFailure(
            "a worker was killed before its end, perhaps for want of memory; fewer "
            "workers need less"
        ) from error


def results_come_early() -> bool:
    """Whether results are handed over one by one; not every backend of joblib can."""
    return bool(get_active_backend()[0].supports_return_generator)


def _settings(backend: object) -> dict[str, Any]:
    """How joblib's own processes begin; those of other backends are not ours."""
    if not isinstance(backend, BACKENDS["loky"]):
        return {}
    return {"initializer": _begin, "initargs": (os.getpid(), _one_thread())}


def _one_thread() -> bool:
    """Whether BLAS is held to one thread here."""
    libraries = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return all(lib["num_threads"] == 1 for lib in libraries)


def _begin(home: int, one_thread: bool) -> None:
    """Make a worker end with its parent, which alone hears Ctrl-C.

    It has as many threads of BLAS as the parent where these are one, so that both
    round alike.
    """
    if one_thread:
        os.environ.update(dict.fromkeys(CHOSEN_BY, "1"))  # for what is loaded later
        threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(home,), daemon=True).start()


def _end_with(home: int) -> None:
    """Wait until another process has adopted this one, and end at once."""
    while os.getppid() == home:
        time.sleep(WATCH)
    os._exit(1)
