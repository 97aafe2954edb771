"""What work may take, and keep: threads, memory, calls, other processes, parts."""

from __future__ import annotations

import hashlib
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
    suppress,
)
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from numbers import Integral
from pathlib import Path
from time import perf_counter
from typing import Any, Final, TypeAlias, TypeVar, final

import joblib
import numpy as np
import psutil
from joblib.parallel import BACKENDS, get_active_backend
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from propopt.base.checks import read_count, read_positive
from propopt.base.declared import Declared
from propopt.base.errors import (
    ImpreciseWarning,
    InvalidInput,
    Refused,
    SolverFailure,
)
from propopt.base.files import Format, as_json, writable_folder


# ---- How many threads work at once: ours over columns or those of libraries, not both


_Result = TypeVar("_Result")

SERIAL_BELOW = 20_000  # entries per column under which threads cost more than they save
ONE_THREAD = 1_500  # points up to which BLAS and OpenMP keep to one thread
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def few_threads(n_points: int) -> AbstractContextManager[object]:
    """One thread of BLAS and OpenMP for small tables and matrices.

    On a busy machine more wait for each other at every product, and at every call of a
    model (measured: 20 and 300 times slower).
    """
    if n_points > ONE_THREAD:
        return nullcontext()
    return _controller().limit(limits=1)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of BLAS and OpenMP within, also where several threads are within.

    The limit of BLAS is of the whole process: the last that leaves takes it away. That
    of OpenMP each thread has for itself.
    """
    with _LOCK:
        if not _WITHIN:
            _BLAS.enter_context(_controller().limit(limits=1, user_api="blas"))
        _WITHIN.append(threading.get_ident())
    try:
        with _controller().limit(limits=1, user_api="openmp"):
            yield
    finally:
        with _LOCK:
            _WITHIN.pop()
            if not _WITHIN:
                _BLAS.close()


_LOCK, _BLAS = threading.Lock(), ExitStack()
_WITHIN: list[int] = []


def threads_of_run(n_points: int) -> AbstractContextManager[object]:
    """:func:`few_threads`, unless the user says by the environment how many."""
    if any(name in os.environ for name in THREAD_VARIABLES):
        return nullcontext()
    return few_threads(n_points)


@final
@dataclass(frozen=True)
class FewThreads:
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

    def by_threads() -> list[_Result]:
        # one level of threads: BLAS would start its own under each of ours
        with (
            _controller().limit(limits=1, user_api="blas"),
            ThreadPoolExecutor(workers) as pool,
        ):
            return list(pool.map(work, range(n_columns)))

    return with_thread_fallback(by_threads, lambda: [work(j) for j in range(n_columns)])


def with_thread_fallback(
    several: Callable[[], _Result], alone: Callable[[], _Result]
) -> _Result:
    """What several threads do, or one where the system starts no more of them."""
    try:
        return several()
    except RuntimeError as error:
        if not is_thread_limit(error):
            raise
    return alone()


def describe_resource_limit(error: BaseException) -> str:
    """What an error of a limit on memory or threads means, and what would do."""
    if is_thread_limit(error):
        return (
            "the system starts no more threads (ulimit -u, or the limit of a container)"
            "; set OMP_NUM_THREADS=1, and ask for one worker"
        )
    what = f" ({error})" if str(error) else ""
    free = format_bytes(free_memory())
    return (
        f"there is not enough memory{what}, and {free} are free; leave rows or columns "
        "out, ask for fewer workers, or raise the limit (ulimit -v)"
    )


def is_thread_limit(error: BaseException) -> bool:
    """Whether a limit on threads is the cause."""
    return isinstance(error, RuntimeError) and "start new thread" in str(error)


def _controller() -> ThreadpoolController:
    """Of the libraries that are there; more of them may come with more modules."""
    return _controller_of(len(sys.modules))


@lru_cache(maxsize=1)
def _controller_of(_: int) -> ThreadpoolController:
    return ThreadpoolController()


# ---- Memory is estimated before it is taken, and refused with the figure


CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
UNLIMITED = 2.0**60
"""Version 1 has no word for it, but a number of about 2^63."""


def require_memory(n_bytes: float, label: str, instead: str) -> None:
    """Raise :class:`Refused` if ``label`` needs more memory than is free."""
    reason = memory_refusal(n_bytes, label, instead)
    if reason is not None:
        raise Refused(reason)


def memory_refusal(n_bytes: float, label: str, instead: str) -> str | None:
    """Why ``label`` does not fit into memory; None if it does."""
    free = free_memory()
    if n_bytes <= free:
        return None
    return (
        f"{label} needs about {format_bytes(n_bytes)} and {format_bytes(free)} are free; "
        f"{instead}"
    )


def format_bytes(n_bytes: float) -> str:
    """A number of bytes in the largest unit of which there is one."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def free_memory() -> float:
    """Bytes that this process may still take, of the machine and by its own limits."""
    machine = float(psutil.virtual_memory().available)
    groups = map(_left_in, _limited_groups(MEMBERSHIP, CGROUPS))
    return max(0.0, min(machine, _below_address_limit(), *groups))


def _below_address_limit() -> float:
    """What ``ulimit -v`` leaves; infinite where there is no such limit."""
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
    """Those of our groups that have a limit; read once."""
    groups = dict.fromkeys(_groups(membership, cgroups))
    return tuple(group for group in groups if _limit(group) < UNLIMITED)


def _groups(membership: Path, cgroups: Path) -> Iterator[Path]:
    """Folders of the memory controller, of version 1 or 2, from our group upwards."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:  # not Linux, or no /proc
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = cgroups / "memory" if controllers else cgroups
        group = root / path.lstrip("/")
        # the whole hierarchy binds; in a container our own path may not be mounted
        own = (group, *group.parents)
        yield from (folder for folder in own if root in (folder, *folder.parents))


def _limit(group: Path) -> float:
    return _number(group, "memory.max", "memory.limit_in_bytes")


def _left_in(group: Path) -> float:
    used = _number(group, "memory.current", "memory.usage_in_bytes")
    return math.inf if used == math.inf else _limit(group) - used + _reclaimable(group)


def _number(group: Path, *names: str) -> float:
    """The number in the first of these files that has one; infinite if none has."""
    for name in names:
        with suppress(OSError, ValueError):  # "max" is no number
            return float((group / name).read_text())
    return math.inf


def _reclaimable(group: Path) -> float:
    """Bytes of files that are only cached: they are counted as used, and given back."""
    try:
        lines = (group / "memory.stat").read_text().splitlines()
        entries = {name: float(count) for name, count in map(str.split, lines)}
    except (OSError, ValueError):
        return 0.0
    # version 1 counts the groups within only in its totals
    return entries.get("total_inactive_file", entries.get("inactive_file", 0.0))


# ---- Batches: work in parts of bounded size, which never changes a result


@final
@dataclass(frozen=True)
class Budget:
    """How much is built at once."""

    n_bytes: int  # the largest table; a single row may take more
    n_rows: int = sys.maxsize  # the most rows of a table, however small they are

    def rows(self, row_bytes: int, copies: int = 1) -> int:
        """How many rows of so many bytes, ``copies`` of each; one at least."""
        return max(1, min(self.n_rows, self.n_bytes // row_bytes) // copies)

    def blocks(self, n_rows: int, row_bytes: int, copies: int = 1) -> Iterator[slice]:
        """Consecutive slices of ``range(n_rows)`` that keep to the budget."""
        size = self.rows(row_bytes, copies)
        for start in range(0, n_rows, size):
            yield slice(start, min(start + size, n_rows))


BATCH_BUDGET: Final = Budget(2**25)
"""Of arrays that are made in parts, wherever their size is no matter of speed."""

MODEL_CALLS: Final = replace(BATCH_BUDGET, n_rows=2**14)
"""One call of a model, which may need memory per row that we cannot see."""


def row_blocks(
    n_rows: int, n_columns: int, *, copies: int = 1, most: int = MODEL_CALLS.n_rows
) -> Iterator[slice]:
    """Consecutive rows of which ``copies`` each go into one call, of ``most`` rows."""
    calls = replace(MODEL_CALLS, n_rows=min(MODEL_CALLS.n_rows, most))
    return calls.blocks(n_rows, 8 * n_columns, copies)


# ---- How often a model was asked


ProgressListener: TypeAlias = Callable[[int], None]


@final
@dataclass
class EvaluationCounter:
    """How often a model was asked; not exact if several threads ask at once.

    Functions that are asked together were asked as often as the one asked most.
    """

    rows: int = 0  # rows given to the model
    batches: int = 0  # tables that they were given in
    trials: int = 0  # rows that it was given besides
    parts: tuple[EvaluationCounter, ...] = ()  # of functions that are asked together
    is_trial: bool = field(default=False, init=False, repr=False, compare=False)
    """Whether what is asked now is a trial, of a few rows."""

    _hearer: ProgressListener | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def add(self, rows: int) -> None:
        """Count one table of so many rows, which the model is given next."""
        if self._hearer is not None:
            self._hearer(self.rows)
        self.rows += rows
        self.batches += 1

    def checkpointed(self, ask: Callable[[], NDArray[Any]], of: Any) -> NDArray[Any]:
        """What a model says of a table or texts, kept where a run keeps its parts.

        Trials are not: how many there are, time decides.
        """
        return ask() if self.is_trial else checkpointed_array("answers", ask, of)

    @contextmanager
    def counting_parts(self) -> Iterator[None]:
        """Count what the parts are asked within."""
        if self._hearer is not None:
            self._hearer(self.rows)
        before = [replace(part) for part in self.parts]
        yield
        pairs = list(zip(self.parts, before, strict=True))
        self.rows += max(now.rows - then.rows for now, then in pairs)
        self.batches += max(now.batches - then.batches for now, then in pairs)
        self.trials += max(now.trials - then.trials for now, then in pairs)

    @contextmanager
    def as_trial(self) -> Iterator[None]:
        """Count what is asked meanwhile as a trial, of the parts too."""
        before, was_trial = (self.rows, self.batches), self.is_trial
        self.is_trial = True
        try:
            with ExitStack() as stack:
                for part in self.parts:
                    stack.enter_context(part.as_trial())
                stack.enter_context(self.notifying(None))
                yield
        finally:
            self.is_trial = was_trial
            self.trials += self.rows - before[0]
            self.rows, self.batches = before

    @contextmanager
    def notifying(self, hearer: ProgressListener | None) -> Iterator[None]:
        """Within, tell before each call how many rows the model was given."""
        before, self._hearer = self._hearer, hearer
        try:
            yield
        finally:
            self._hearer = before


# ---- Work in other processes, which end with the one that gave it to them


WATCH = 0.5  # seconds between two looks at the parent


def read_workers(n_jobs: int | None) -> int:
    """How many workers are meant: one for None, unless joblib is told otherwise."""
    if n_jobs == 0 or not isinstance(n_jobs, Integral | None):
        raise InvalidInput(
            "n_jobs: expected a number of workers, -1 for all processors, or None, "
            f"got {n_jobs!r}"
        )
    return int(joblib.effective_n_jobs(n_jobs))


def in_workers(
    calls: Iterable[Callable[[], _Result]], n_workers: int
) -> Iterator[_Result]:
    """The results of the calls in their order, each as soon as it is there."""
    kind = "generator" if yields_results_early() else "list"
    own: dict[str, Any] = {}
    if isinstance(get_active_backend()[0], BACKENDS["loky"]):  # others are not ours
        libraries = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
        one_thread = all(lib["num_threads"] == 1 for lib in libraries)
        own = {"initializer": _begin, "initargs": (os.getpid(), one_thread)}
    parallel = joblib.Parallel(n_workers, return_as=kind, **own)
    try:
        yield from parallel(joblib.delayed(call)() for call in calls)
    except BrokenProcessPool as error:
        raise SolverFailure(
            "a worker was killed before its end, perhaps for want of memory; fewer "
            "workers need less"
        ) from error


def yields_results_early() -> bool:
    """Whether results are handed over one by one; not every backend of joblib can."""
    return bool(get_active_backend()[0].supports_return_generator)


def _begin(home: int, one_thread: bool) -> None:
    """Make a worker round as its parent, which alone hears Ctrl-C, and end with it."""
    if one_thread:
        os.environ.update(
            dict.fromkeys(THREAD_VARIABLES, "1")
        )  # for what is loaded later
        threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(home,), daemon=True).start()


def _end_with(home: int) -> None:
    """Wait until another process has adopted this one, and end at once."""
    while os.getppid() == home:
        time.sleep(WATCH)
    os._exit(1)


# ---- How much is drawn, where something is estimated


@final
@dataclass(frozen=True)
class DrawPlan:
    """So many draws, or until they are precise, or cost too much.

    Without ``max_evaluations`` there are at most 1,000 times the first ones, since what
    is zero has no relative error.
    """

    n_samples: int = 5000  # to begin with
    seed: int = 0
    precision: float | None = None  # ‖standard errors‖ / ‖values‖ to stop at
    max_evaluations: int | None = None  # of f, the most

    def __post_init__(self) -> None:
        read_count(self.n_samples, "n_samples")
        if self.precision is not None:
            read_positive(self.precision, "precision")
        if self.max_evaluations is not None:
            read_count(self.max_evaluations, "max_evaluations")

    @property
    def first_batch(self) -> DrawPlan:
        """As many to begin with, and no more."""
        return replace(self, precision=None, max_evaluations=None)

    def label(self, work: str) -> str:
        """What is announced: all of some work, or what it begins with."""
        return work if self.precision is None else f"{work}: the first draws"

    def warn_if_larger(self, error: float, of: str = "") -> None:
        """Warn that a precision was wanted, and not reached by an error."""
        if self.precision is not None and not error <= self.precision:
            warnings.warn(
                f"precision: standard errors of {self.precision:.2g} of the "
                f"coefficients were wanted{of}, and they are {error:.2g} of them; give "
                "more max_evaluations",
                ImpreciseWarning,
                stacklevel=4,
            )


# ---- Parts of a run that are kept while it goes on, so that a killed one continues
#
# A run does the same things in the same order, whenever it is done. So a part is told
# by its number among those of the part around it, by what it is, and by a digest of
# what it is made from; the folder is that of one problem. A part is there whole or not
# at all, with a digest of its own, and what is read back is what was made, to the last
# bit. What took less than MIN_CHECKPOINT_SECONDS is made again. Outside of ``keeping``, in other
# threads and in workers, nothing is kept.


MIN_CHECKPOINT_SECONDS: Final = 0.02
"""Seconds: writing a part takes a few thousandths."""

_FORM: Final = Format("propopt part", "a part that was kept", 1)
_NAMES: Final = "[0-9a-f]" * 32 + ".npz"
_DRAFTS: Final = ".draft-*.npz"

_Some = TypeVar("_Some", bound=Declared)


@final
@dataclass(eq=False)
class Checkpoint:
    """The folder of one problem, and how far the run is."""

    folder: Path
    scope: str = ""  # the part that is being made
    counts: dict[str, int] = field(default_factory=dict)  # parts asked for, by scope

    def path(self, label: str, *of: Any) -> Path:
        """Where the next part of the scope stands, made of these arrays or texts."""
        number = self.counts[self.scope] = self.counts.get(self.scope, 0) + 1
        digest = hashlib.sha256(f"{self.scope} {number} {label}".encode())
        for one in of:
            array = np.ascontiguousarray(one)
            digest.update(f" {array.dtype.str} {array.shape} ".encode())
            digest.update(array.tobytes())
        return self.folder / f"{digest.hexdigest()[:32]}.npz"

    @contextmanager
    def within(self, path: Path) -> Iterator[None]:
        """Parts that are asked for meanwhile are parts of this one."""
        outer, self.scope = self.scope, path.stem
        try:
            yield
        finally:
            self.scope = outer

    def forget(self) -> None:
        """Remove all parts, whole or not, and the folder if nothing else is there."""
        for name in (_NAMES, _DRAFTS):
            for path in self.folder.glob(name):
                path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()
            self.folder.parent.rmdir()


_NOW: ContextVar[Checkpoint | None] = ContextVar("kept", default=None)


@contextmanager
def checkpointing(folder: Path | None) -> Iterator[Checkpoint | None]:
    """Keep parts in a folder meanwhile, and take those that are there; None: nothing.

    The folder is made with the first part.
    """
    token = _NOW.set(None if folder is None else Checkpoint(folder))
    try:
        yield _NOW.get()
    finally:
        _NOW.reset(token)


def checkpointed_array(
    label: str, make: Callable[[], NDArray[Any]], *of: Any
) -> NDArray[Any]:
    """An array that is kept, or made and kept."""
    now = _NOW.get()
    if now is None:
        return make()
    path = now.path(label, *of)
    found = read_checkpoint(path)
    if found is not None:
        return found["part"]
    began = perf_counter()
    with now.within(path):
        made = make()
    write_checkpoint(path, perf_counter() - began, part=np.asarray(made))
    return made


def checkpointed_result(
    label: str, make: Callable[[], _Some], kind: type[_Some]
) -> _Some:
    """An object that is kept, or made and kept; what files leave out is lost."""
    now = _NOW.get()
    if now is None:
        return make()
    path = now.path(label)
    with suppress(InvalidInput, OSError):
        return kind.load(path)
    began = perf_counter()
    with now.within(path):
        made = make()
    if perf_counter() - began >= MIN_CHECKPOINT_SECONDS:
        writable_folder(path.parent)
        made.save(path)
    return made


def checkpoint_path(label: str, *of: Any) -> Path | None:
    """Where a part stands that is made in pieces; None where nothing is kept."""
    now = _NOW.get()
    return None if now is None else now.path(label, *of)


def read_checkpoint(path: Path | None) -> dict[str, NDArray[Any]] | None:
    """The arrays of a part, if it is there and whole."""
    if path is None:
        return None
    try:
        return {name: np.array(x) for name, x in _FORM.read(path)[1].items()}
    except (InvalidInput, OSError):
        return None


def write_checkpoint(path: Path | None, seconds: float, **arrays: NDArray[Any]) -> None:
    """Write the arrays of a part that took so long."""
    if path is not None and seconds >= MIN_CHECKPOINT_SECONDS:
        writable_folder(path.parent)
        text = as_json({"format": _FORM.name, "version": _FORM.version})
        _FORM.write(path, text, arrays)
