"""Planned fits: run by workers, saved in folders, identified by their content."""

from __future__ import annotations

import math
import os
import pickle
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any, Final, Protocol, TypeAlias, final

import numpy as np
import pandas as pd
from joblib.hashing import NumpyHasher
from pandas.util import hash_pandas_object
from sklearn import config_context

from propopt.base import resources
from propopt.base.arrays import Array, Mask
from propopt.base.checkpoints import read_checkpoint, write_checkpoint
from propopt.base.errors import InvalidInput, Refused
from propopt.base.files import writable_folder
from propopt.base.terminal import counting
from propopt.interactions.learning import Prediction
from propopt.interactions.refits import Refits
from propopt.structures.kinds import has_method
from propopt.tables.frames import as_frame


# ---- Planned fits, in calls of workers that take two seconds each


CHUNKS: Final = resources.Budget(2**25, n_rows=200)
"""The largest result of one call of a worker."""

CALL_SECONDS: Final = 2.0
"""Duration of one call: the work that a killed run loses for each worker."""


class FitPlan(Protocol):
    """A list of fits that can be split: one learner a patch, or one a fold and set."""

    def __len__(self) -> int: ...

    def part(self, some: slice) -> FitPlan:
        """A slice of the plan, which is sent to a worker."""

    def results(self, k: int, refits: Refits) -> tuple[Array, list[Prediction]]:
        """Outputs of the learner of entry k, or errors of its learners; and those."""


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """Results of the fits of a part of a plan."""

    results: Array  # (b, ...)
    used: frozenset[int]  # features to be tested that one of the learners uses
    seconds: float = 0.0
    # the learners, if they are retained
    predictors: tuple[Prediction, ...] = ()


def fit_part(
    plan: FitPlan,
    refits: Refits,
    keep: bool,  # return the learners too
    suspects: frozenset[int],  # features that no earlier learner used
) -> Fitted:
    """Fit a part of a plan in one call of a worker, on one thread."""
    results = []
    predictors: list[Prediction] = []
    unused = set(suspects)
    is_validated = False
    start = perf_counter()
    with resources.one_thread():
        for k in range(len(plan)):
            # scikit-learn has validated the parameters in the first fit
            with config_context(skip_parameter_validation=is_validated):
                result, learners = plan.results(k, refits)
            results.append(result)
            for predict in learners:
                is_validated = is_validated or len(predict.columns) > 0
                if unused:
                    unused -= refits.used_features(predict, unused)
            if keep:
                predictors += learners
    return Fitted(
        np.stack(results), suspects - unused, perf_counter() - start, tuple(predictors)
    )


def paced(size: int, most: int, count: int, seconds: float) -> int:
    """Number of fits of the next call, such that it takes CALL_SECONDS.

    The first call has one fit; each call at most doubles the last. Results do not
    depend on it.
    """
    in_time = CALL_SECONDS * count / max(seconds, 1e-9)
    return max(1, int(min(in_time, max(size, 2 * count), most)))


def chunks(missing: Mask, size: Callable[[], int]) -> Iterator[slice]:
    """Slices of the missing entries, each cut when it is requested."""
    ends = np.flatnonzero(np.diff(missing, prepend=False, append=False))
    for start, stop in ends.reshape(-1, 2).tolist():
        while start < stop:
            part = slice(start, min(start + size(), stop))
            yield part
            start = part.stop


def fitted_parts(
    plan: FitPlan,
    refits: Refits,
    label: str,  # of the progress bar
    missing: Mask,  # entries to fit
    row_bytes: int,  # of the result of one entry
    *,
    spread: bool = False,  # several calls for each worker, even for few entries
    keep: bool = False,  # return the learners
    used: AbstractSet[int],  # features that earlier learners used
    n_jobs: int | None,
    progress: bool | None,
) -> Iterator[tuple[slice, Fitted]]:
    """Results of each call, in order; features in use are not tested again."""
    n_workers = min(resources.read_workers(n_jobs), int(missing.sum()))
    most = CHUNKS.rows(row_bytes)
    if spread and n_workers > 1:
        most = min(most, math.ceil(missing.sum() / (8 * n_workers)))
    size = 1 if resources.yields_results_early() else most
    unused = set(range(len(refits.features))) - used
    sent: deque[slice] = deque()

    def calls() -> Iterator[Callable[[], Fitted]]:
        for part in chunks(missing, lambda: size):
            sent.append(part)
            yield partial(fit_part, plan.part(part), refits, keep, frozenset(unused))

    n_done = len(missing) - int(missing.sum())
    with counting(label, n_done, len(missing), progress) as advance:
        advance(0)
        for fitted in resources.in_workers(calls(), n_workers) if n_workers else ():
            part = sent.popleft()
            size = paced(size, most, part.stop - part.start, fitted.seconds)
            unused -= fitted.used
            yield part, fitted
            advance(part.stop - part.start)


# ---- The identity of an ensemble: table, target, learner, scheme and seed


def problem_digest(refits: Refits, drawn: Mapping[str, object]) -> str:
    """A digest of all that predictions of patches depend on; errors by their outputs.

    Parameters
    ----------
    refits : Refits
        The learner, the table (N, D), the target (N,) and the error.
    drawn : mapping
        The settings that patches are drawn by.

    Returns
    -------
    str
        The same digest in all processes.
    """
    packages = ("propopt", "numpy", "scikit-learn")
    classes = refits.classes
    n_rows = refits.n_rows
    # the outputs that the error uses, of predictions that differ everywhere
    shape = (n_rows,) if classes is None else (n_rows, len(classes))
    probe: Any = np.arange(np.prod(shape)).reshape(shape) + 0.5
    frame = as_frame(refits.table, "X")
    return hash_of(
        (
            [sys.version_info[:2], *map(version, packages)],
            refits.table if frame is None else frame.table,
            (refits.y, None if classes is None else classes.tolist()),
            refits.sample_weight,
            refits.features.columns,
            refits.error.relevant_outputs(probe, refits.y),
            refits.estimator,
            drawn,
        )
    )


def hash_of(value: Any) -> str:
    """A digest of the content of a table or learner."""
    try:
        return str(_Hasher(hash_name="sha256").hash(value))
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(
            f"folder: fits cannot be stored, as a part of the learner or the table "
            f"cannot be pickled ({error}); choose another learner, or no folder"
        ) from None


@final
class _Hasher(NumpyHasher):  # type: ignore[misc]  # joblib has no types
    """Digests of content that are equal in all processes.

    For functions: name, code and bound values; for other objects their pickle.
    """

    def save(self, obj: Any) -> None:
        match obj:
            case CodeType():
                # line numbers and the path of the file do not affect the result
                obj = obj.co_code, obj.co_names, obj.co_varnames, obj.co_consts
            case FunctionType():
                bound = [cell.cell_contents for cell in obj.__closure__ or ()]
                bound = [value for value in bound if value is not obj]
                given = obj.__defaults__, obj.__kwdefaults__
                obj = obj.__module__, obj.__qualname__, obj.__code__, given, bound
            case set() | frozenset():
                obj = "set", sorted(map(hash_of, obj))
            case dict():
                obj = (
                    "dict",
                    sorted((hash_of(k), hash_of(v)) for k, v in obj.items()),
                )
            case pd.DataFrame():
                hashes = [hash_pandas_object(c, index=False) for _, c in obj.items()]
                obj = (
                    list(obj),
                    list(map(str, obj.dtypes)),
                    list(map(np.asarray, hashes)),
                )
            case _ if has_method(obj, "get_params") and not isinstance(obj, type):
                kind = type(obj)
                obj = kind.__module__, kind.__qualname__, obj.get_params(deep=False)
        super().save(obj)


# ---- Predictions of all patches: in memory, or in a file if they are large


Shape: TypeAlias = tuple[int, int, int]
"""(B, N, R): patches, rows, outputs of each prediction."""

IN_MEMORY: Final = 2**30
"""Bytes 8 B N R of predictions up to which they are in memory, else in a file.

This is 10,000 patches at 13,000 rows.
"""


def allocate_predictions(shape: Shape, folder: Path | None = None) -> Array:
    """Zeros in memory, or above :data:`IN_MEMORY` in a mapped temporary file."""
    n_bytes = 8 * math.prod(shape)
    if n_bytes <= IN_MEMORY:
        resources.require_memory(n_bytes, _label(shape), "fewer patches need less")
        return np.zeros(shape)
    require_disk(shape, Path(tempfile.gettempdir()) if folder is None else folder)
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):
            # without it a full disk would later end the process
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        return np.memmap(file, dtype=np.float64, mode="w+", shape=shape)


def _label(shape: Shape) -> str:
    return f"{shape[0]} patches predict {shape[1]} rows, which"


def require_disk(shape: Shape, folder: Path) -> None:
    """Refuse predictions that exceed the free disk; saved ones need no room."""
    there = sum(part.stat().st_size for part in folder.glob(_PARTS))
    free = shutil.disk_usage(folder).free
    n_bytes = 8 * math.prod(shape) - there
    if n_bytes > free:
        raise Refused(
            f"{_label(shape)} needs about {resources.format_bytes(n_bytes)} in "
            f"{folder}, which has {resources.format_bytes(free)} free; give "
            "Minipatches a folder on another disk, or fewer patches"
        )


# ---- Predictions saved in a folder, from which an interrupted run continues


_PARTS: Final = "[0-9]*.npz"
"""Files of predictions, named by the number of the first patch."""


def patch_folder(folder: str | Path, problem: str, shape: Shape) -> Path:
    """The folder of the problem with this digest, created if needed."""
    path = writable_folder(writable_folder(folder) / problem[:16])
    require_disk(shape, path)
    return path


def save_part(folder: Path, first: int, part: Fitted) -> None:
    """Save the outputs of some patches; the file is complete, or it is not written."""
    used = np.array(sorted(part.used), np.int64)
    path = folder / f"{first:08d}.npz"
    write_checkpoint(path, math.inf, results=part.results, used=used)


def saved_parts(folder: Path, n_patches: int) -> Iterator[tuple[slice, Fitted]]:
    """Saved outputs of the first patches, part by part; damaged files are skipped."""
    for path in sorted(folder.glob(_PARTS)):
        saved = read_checkpoint(path)
        first = int(path.stem)
        if saved is not None and first < n_patches:
            results = saved["results"][: n_patches - first]
            used = frozenset(saved["used"].tolist())
            yield slice(first, first + len(results)), Fitted(results, used)
