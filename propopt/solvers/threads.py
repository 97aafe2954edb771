"""How many threads work at once: ours over columns, or those of BLAS, never both."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController


Result = TypeVar("Result")

SERIAL_BELOW = 20_000  # entries per column under which threads cost more than they save
ONE_THREAD = 1_500  # points up to which BLAS keeps to one thread


def few_threads(n_points: int) -> AbstractContextManager[object]:
    """One thread of BLAS for small matrices, which are used over and over.

    More gain little there, and lose much where the machine is busy: they wait for each
    other at every product (measured: 20 times slower).
    """
    if n_points > ONE_THREAD:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")


def for_each_column(
    work: Callable[[int], Result], n_columns: int, size: int
) -> list[Result]:
    """``[work(0), work(1), ...]``; NumPy releases the interpreter in long loops."""
    if n_columns == 1 or size < SERIAL_BELOW:
        return [work(j) for j in range(n_columns)]
    workers = min(n_columns, os.cpu_count() or 1)
    # one level of threads: BLAS would start its own under each of ours
    with (
        _controller().limit(limits=1, user_api="blas"),
        ThreadPoolExecutor(workers) as pool,
    ):
        return list(pool.map(work, range(n_columns)))


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
