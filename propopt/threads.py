"""How many threads work at once: ours over columns or those of libraries, not both."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, TypeVar, final

from threadpoolctl import ThreadpoolController


_Result = TypeVar("_Result")

SERIAL_BELOW = 20_000  # entries per column under which threads cost more than they save
ONE_THREAD = 1_500  # points up to which BLAS and OpenMP keep to one thread
CHOSEN_BY = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def few_threads(n_points: int) -> AbstractContextManager[object]:
    """One thread of BLAS and OpenMP for small tables and matrices.

    More gain little there, and lose much where the machine is busy: they wait for each
    other at every product, and at every call of a model (measured: 20 and 300 times
    slower).
    """
    if n_points > ONE_THREAD:
        return nullcontext()
    return _controller(len(sys.modules)).limit(limits=1)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of BLAS and OpenMP within, also where several threads are within.

    The limit of BLAS is of the whole process: the last that leaves takes it away. That
    of OpenMP each thread has for itself.
    """
    with (
        _BLAS.held(),
        _controller(len(sys.modules)).limit(limits=1, user_api="openmp"),
    ):
        yield


class _SharedLimit:
    """The limit of BLAS, and how many threads want it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.wanted = 0
        self.own = ExitStack()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Take the limit, and leave it to others."""
        with self.lock:
            self.wanted += 1
            if self.wanted == 1:
                controller = _controller(len(sys.modules))
                self.own.enter_context(controller.limit(limits=1, user_api="blas"))
        try:
            yield
        finally:
            with self.lock:
                self.wanted -= 1
                if not self.wanted:
                    self.own.close()


_BLAS = _SharedLimit()


def threads_of_run(n_points: int) -> AbstractContextManager[object]:
    """:func:`few_threads`, unless the user says by the environment how many."""
    if any(name in os.environ for name in CHOSEN_BY):
        return nullcontext()
    return few_threads(n_points)


@final
@dataclass(frozen=True)
class Sparing:
    """A method of a model, called with few threads where the table has few rows."""

    method: Callable[[Any], object]

    def __call__(self, table: Any) -> object:
        """What the method returns."""
        with few_threads(len(table)):
            return self.method(table)


def for_each_column(
    work: Callable[[int], _Result], n_columns: int, size: int
) -> list[_Result]:
    """``[work(0), work(1), ...]``; NumPy releases the interpreter in long loops."""
    if n_columns <= 1 or size < SERIAL_BELOW:
        return [work(j) for j in range(n_columns)]
    workers = min(n_columns, os.cpu_count() or 1)
    # one level of threads: BLAS would start its own under each of ours
    with (
        _controller(len(sys.modules)).limit(limits=1, user_api="blas"),
        ThreadPoolExecutor(workers) as pool,
    ):
        return list(pool.map(work, range(n_columns)))


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Of the libraries that are there; more of them may come with more modules."""
    del n_modules
    return ThreadpoolController()
