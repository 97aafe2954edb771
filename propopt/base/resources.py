"""Resources of computations: threads, memory, batches, model calls, processes."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any, Final, TypeVar, final

import joblib
import psutil
from joblib.parallel import BACKENDS, get_active_backend
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from propopt.base.checkpoints import ACTIVE, checkpointed_array
from propopt.base.checks import read_count, read_positive
from propopt.base.errors import (
    ImpreciseWarning,
    InvalidInput,
    Refused,
    SolverFailure,
)


# ---- Threads: ours over columns or those of libraries, not both


_Result = TypeVar("_Result")

SERIAL_BELOW = 20_000  # entries per column under which threads cost more than they save
ONE_THREAD = 1_500  # points up to which BLAS and OpenMP keep to one thread
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def few_threads(n_points: int) -> AbstractContextManager[object]:
    """Limit BLAS and OpenMP to one thread for small tables and matrices.

    On a busy machine several threads wait for each other at every product and every
    call of a model (measured: 20 and 300 times slower).
    """
    if n_points > ONE_THREAD:
        return nullcontext()
    return _limited()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread; several threads may do so concurrently.

    BLAS has one limit for the process, which the last thread that leaves removes.
    OpenMP has one for each thread.
    """
    with _LOCK:
        if not _WITHIN:
            _BLAS.enter_context(_limited("blas"))
        _WITHIN.append(threading.get_ident())
    try:
        with _limited("openmp"):
            yield
    finally:
        with _LOCK:
            _WITHIN.pop()
            if not _WITHIN:
                _BLAS.close()


_LOCK = threading.Lock()
_BLAS = ExitStack()
_WITHIN: list[int] = []


def threads_of_run(n_points: int) -> AbstractContextManager[object]:
    """As :func:`few_threads`, unless the environment sets the number of threads."""
    if any(name in os.environ for name in THREAD_VARIABLES):
        return nullcontext()
    return few_threads(n_points)


@final
@dataclass(frozen=True)
class FewThreads:
    """A method of a model that is called with one thread if the table is small."""

    method: Callable[[Any], object]

    def __call__(self, table: Any) -> object:
        """Call the method."""
        with few_threads(len(table)):
            return self.method(table)


def for_each_column(
    work: Callable[[int], _Result], n_columns: int, size: int
) -> list[_Result]:
    """``[work(0), work(1), ...]``, by threads if columns are long enough."""
    if n_columns <= 1 or size < SERIAL_BELOW:
        return [work(j) for j in range(n_columns)]
    workers = min(n_columns, os.cpu_count() or 1)

    def by_threads() -> list[_Result]:
        # one level of threads: BLAS would start more in each of them
        with _limited("blas"), ThreadPoolExecutor(workers) as pool:
            return list(pool.map(work, range(n_columns)))

    return with_thread_fallback(by_threads, lambda: [work(j) for j in range(n_columns)])


def with_thread_fallback(
    parallel: Callable[[], _Result], serial: Callable[[], _Result]
) -> _Result:
    """Call the first function, or the second if the system starts no more threads."""
    try:
        return parallel()
    except RuntimeError as error:
        if not is_thread_limit(error):
            raise
    return serial()


def describe_resource_limit(error: BaseException) -> str:
    """Describe an error of a limit on memory or threads, and its remedy."""
    if is_thread_limit(error):
        return (
            "the system starts no more threads (ulimit -u, or the limit of a container)"
            "; set OMP_NUM_THREADS=1, and use one worker"
        )
    detail = f" ({error})" if str(error) else ""
    free = format_bytes(free_memory())
    return (
        f"there is not enough memory{detail}, and {free} are free; leave rows or "
        "columns out, use fewer workers, or raise the limit (ulimit -v)"
    )


def is_thread_limit(error: BaseException) -> bool:
    """Whether an error comes from a limit on the number of threads."""
    return isinstance(error, RuntimeError) and "start new thread" in str(error)


def _limited(api: str | None = None) -> AbstractContextManager[object]:
    """A context with one thread of BLAS, of OpenMP, or of both."""
    return _controller(len(sys.modules)).limit(limits=1, user_api=api)


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """The thread limits of the loaded libraries; new modules may load more."""
    del n_modules
    return ThreadpoolController()


# ---- Memory: estimated before it is allocated, and refused with the figure


CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def require_memory(n_bytes: float, label: str, instead: str) -> None:
    """Raise :class:`Refused` if ``label`` needs more than the free memory."""
    reason = memory_refusal(n_bytes, label, instead)
    if reason is not None:
        raise Refused(reason)


def memory_refusal(n_bytes: float, label: str, instead: str) -> str | None:
    """The reason why ``label`` does not fit into memory; None if it does."""
    free = free_memory()
    if n_bytes <= free:
        return None
    return (
        f"{label} needs about {format_bytes(n_bytes)} and {format_bytes(free)} are "
        f"free; {instead}"
    )


def format_bytes(n_bytes: float) -> str:
    """A number of bytes in the largest unit that gives at least 1."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def free_memory() -> float:
    """Bytes that this process may still allocate, by the machine and by all limits."""
    machine = float(psutil.virtual_memory().available)
    groups = map(_left_in, _limited_groups(MEMBERSHIP, CGROUPS))
    return max(0.0, min(machine, _below_address_limit(), *groups))


def _below_address_limit() -> float:
    """The bytes left by ``ulimit -v``; infinite without such a limit."""
    try:
        import resource
    except ImportError:  # Windows has none
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return math.inf
    return float(limit - psutil.Process().memory_info().vms)


@cache
def _limited_groups(membership: Path, cgroups: Path) -> tuple[Path, ...]:
    """The cgroups of this process that have a limit; read once."""
    groups = dict.fromkeys(_groups(membership, cgroups))
    return tuple(x for x in groups if _number(x / "memory.max") < math.inf)


def _groups(membership: Path, cgroups: Path) -> Iterator[Path]:
    """Folders of cgroups, version 2, from the group of this process upwards."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:  # not Linux, or no /proc
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            group = cgroups / path.lstrip("/")
            # limits of all parents apply; in a container the group may not be mounted
            yield from (
                x for x in (group, *group.parents) if cgroups in (x, *x.parents)
            )


def _left_in(group: Path) -> float:
    used = _number(group / "memory.current")
    limit = _number(group / "memory.max")
    return math.inf if used == math.inf else limit - used + _reclaimable(group)


def _number(path: Path) -> float:
    """The number in a file; infinite if there is none."""
    with suppress(OSError, ValueError):  # "max" is no number
        return float(path.read_text())
    return math.inf


def _reclaimable(group: Path) -> float:
    """Bytes of cached files, which count as used but are freed on demand."""
    try:
        lines = (group / "memory.stat").read_text().splitlines()
        entries = {name: float(count) for name, count in map(str.split, lines)}
    except (OSError, ValueError):
        return 0.0
    return entries.get("inactive_file", 0.0)


# ---- Batches: blocks of bounded size, which never change a result


@final
@dataclass(frozen=True)
class Budget:
    """The largest table that is built in one step."""

    n_bytes: int  # the largest table; a single row may take more
    n_rows: int = sys.maxsize  # the most rows of a table

    def rows(self, row_bytes: int, copies: int = 1) -> int:
        """How many rows of ``row_bytes`` each fit, ``copies`` of each; at least 1."""
        return max(1, min(self.n_rows, self.n_bytes // row_bytes) // copies)

    def blocks(self, n_rows: int, row_bytes: int, copies: int = 1) -> list[slice]:
        """Consecutive slices of ``range(n_rows)`` that fit into the budget."""
        starts = range(0, n_rows, self.rows(row_bytes, copies))
        return list(map(slice, starts, [*starts[1:], n_rows]))


BATCH_BUDGET: Final = Budget(2**25)
"""For arrays that are computed in blocks, if block size does not affect speed."""

MODEL_CALLS: Final = replace(BATCH_BUDGET, n_rows=2**14)
"""For one call of a model, which may need more memory for each row."""


def row_blocks(
    n_rows: int, n_columns: int, *, copies: int = 1, most: int = MODEL_CALLS.n_rows
) -> list[slice]:
    """Consecutive rows, ``copies`` of each, for calls of at most ``most`` rows."""
    calls = replace(MODEL_CALLS, n_rows=min(MODEL_CALLS.n_rows, most))
    return calls.blocks(n_rows, 8 * n_columns, copies)


# ---- Counts of model evaluations


@final
@dataclass
class EvaluationCounter:
    """Counts the evaluations of a model; inexact if several threads evaluate it.

    Functions that are evaluated together count as the one with the most evaluations.
    """

    rows: int = 0  # rows given to the model
    seconds: float = 0.0  # in calls with these rows
    trials: int = 0  # rows of trials, which are not among the others
    parts: tuple[EvaluationCounter, ...] = ()  # functions evaluated together
    is_trial: bool = field(default=False, init=False, repr=False, compare=False)
    """Whether current evaluations are a trial with a few rows."""

    _listener: Callable[[int], None] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def add(self, rows: int) -> None:
        """Count one call with this many rows, before it is made."""
        if self._listener is not None:
            self._listener(self.rows)
        self.rows += rows

    def counted(
        self, evaluate: Callable[[], NDArray[Any]], inputs: Any
    ) -> NDArray[Any]:
        """Outputs of a model for a table or texts, from a checkpoint if there is one.

        They are counted as one call. Trials have no checkpoints, because their number
        depends on time.
        """
        self.add(len(inputs))
        start = time.perf_counter()
        outputs = (
            evaluate()
            if self.is_trial or ACTIVE.get() is None
            else checkpointed_array("answers", evaluate, inputs)
        )
        self.seconds += time.perf_counter() - start
        return outputs

    @contextmanager
    def counting_parts(self) -> Iterator[None]:
        """Within, count evaluations of the parts as evaluations of this one."""
        if self._listener is not None:
            self._listener(self.rows)
        before = [replace(part) for part in self.parts]
        yield
        pairs = list(zip(self.parts, before, strict=True))
        self.rows += max(now.rows - then.rows for now, then in pairs)
        self.trials += max(now.trials - then.trials for now, then in pairs)

    @contextmanager
    def as_trial(self) -> Iterator[None]:
        """Within, count evaluations as a trial, also those of the parts."""
        before = self.rows
        seconds = self.seconds
        was_trial = self.is_trial
        self.is_trial = True
        try:
            with ExitStack() as stack:
                for part in self.parts:
                    stack.enter_context(part.as_trial())
                stack.enter_context(self.notifying(None))
                yield
        finally:
            self.is_trial = was_trial
            self.trials += self.rows - before
            self.rows = before
            self.seconds = seconds

    @contextmanager
    def notifying(self, listener: Callable[[int], None] | None) -> Iterator[None]:
        """Within, call the listener with the number of rows before each evaluation."""
        before = self._listener
        self._listener = listener
        try:
            yield
        finally:
            self._listener = before


# ---- Worker processes, which end with their parent


WATCH = 0.5  # seconds between two looks at the parent

_MOST_LOSSES: Final = 3
"""How often workers of dask may lose what calls need, before that is an error."""


def read_workers(n_jobs: int | None) -> int:
    """The number of workers for ``n_jobs``: one for None, unless joblib has another."""
    if n_jobs == 0 or not isinstance(n_jobs, Integral | None):
        raise InvalidInput(
            "n_jobs: expected a number of workers, -1 for all processors, or None, "
            f"got {n_jobs!r}"
        )
    return int(joblib.effective_n_jobs(n_jobs))


def in_workers(
    calls: Iterable[Callable[[], _Result]], n_workers: int
) -> Iterator[_Result]:
    """The results of calls in their order, each as soon as it is computed.

    An argument of several partial calls is sent to workers of dask only once, if it is
    large by ``sys.getsizeof``. If the worker that holds it is killed, dask cancels the
    calls, and those without a result are sent again, with the argument.
    """
    kind = "generator" if yields_results_early() else "list"
    initializer: dict[str, Any] = {}
    if isinstance(get_active_backend()[0], BACKENDS["loky"]):  # others have workers
        libraries = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
        one_thread = all(lib["num_threads"] == 1 for lib in libraries)
        initializer = {"initializer": _begin, "initargs": (os.getpid(), one_thread)}
    waiting = iter(calls)
    unfinished: deque[Callable[[], _Result]] = deque()

    def sent(again: Iterable[Callable[[], _Result]]) -> Iterator[Any]:
        for call in chain(again, waiting):
            unfinished.append(call)
            yield _delayed(call)

    for losses in range(_MOST_LOSSES + 1):
        again = list(unfinished)
        unfinished.clear()
        parallel = joblib.Parallel(n_workers, return_as=kind, **initializer)
        try:
            for result in parallel(sent(again)):
                unfinished.popleft()
                yield result
            return
        except (BrokenProcessPool, CancelledError) as error:
            if isinstance(error, CancelledError) and losses < _MOST_LOSSES:
                continue
            raise SolverFailure(
                "a worker process was killed, perhaps because memory ran out; fewer "
                "workers need less memory"
            ) from error


def _delayed(call: Callable[[], _Result]) -> Any:
    """A call for joblib, with its arguments apart from the function."""
    if isinstance(call, partial):
        return joblib.delayed(call.func)(*call.args, **call.keywords)
    return joblib.delayed(call)()


def yields_results_early() -> bool:
    """Whether the backend of joblib returns results one by one."""
    return bool(get_active_backend()[0].supports_return_generator)


def _begin(home: int, one_thread: bool) -> None:
    """Let a worker use the threads of its parent, ignore Ctrl-C, and end with it."""
    if one_thread:
        os.environ.update(
            dict.fromkeys(THREAD_VARIABLES, "1")
        )  # for libraries loaded later
        threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(home,), daemon=True).start()


def _end_with(home: int) -> None:
    """Wait until the parent has ended, then exit."""
    while os.getppid() == home:
        time.sleep(WATCH)
    os._exit(1)


# ---- Numbers of draws for sampled estimates


@final
@dataclass(frozen=True)
class DrawPlan:
    """The number of draws: fixed, or until a precision or a budget is reached.

    Without ``max_evaluations`` there are at most 1,000 times the first ones, because a
    value of zero has no relative error.
    """

    n_samples: int = 5000  # in the first batch
    seed: int = 0
    precision: float | None = None  # stop at this ‖standard errors‖ / ‖values‖
    max_evaluations: int | None = None  # the most evaluations of f

    def __post_init__(self) -> None:
        read_count(self.n_samples, "n_samples")
        if self.precision is not None:
            read_positive(self.precision, "precision")
        if self.max_evaluations is not None:
            read_count(self.max_evaluations, "max_evaluations")

    @property
    def first_batch(self) -> DrawPlan:
        """The same plan without further draws after the first batch."""
        return replace(self, precision=None, max_evaluations=None)

    def label(self, work: str) -> str:
        """The label of a progress bar: the whole work, or its first draws."""
        return work if self.precision is None else f"{work}: the first draws"

    def warn_if_larger(self, error: float, of: str = "") -> None:
        """Warn if a requested precision was not reached."""
        if self.precision is not None and not error <= self.precision:
            warnings.warn(
                f"precision: standard errors of {self.precision:.2g} of the "
                f"coefficients were requested{of}, and they are {error:.2g} of them; "
                "give more max_evaluations",
                ImpreciseWarning,
                stacklevel=4,
            )
