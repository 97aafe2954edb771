"""Fits that a scheme plans: run by workers, kept in folders, found by content."""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import shutil
import sys
import tempfile
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
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
from numpy.typing import NDArray
from pandas.util import hash_pandas_object
from sklearn import config_context

from propopt.base import resources
from propopt.base.arrays import Array, Mask
from propopt.base.errors import InvalidInput, Refused, WriteFailure
from propopt.base.files import as_json, atomic_write, writable_folder
from propopt.base.terminal import LoggedProgress, progress_bar
from propopt.interactions.learning import Predictor
from propopt.interactions.refits import Refits
from propopt.structures.kinds import has_method
from propopt.tables.frames import as_frame


# ---- Planned fits, a part by each call of a worker, as many as take two seconds


CHUNKS: Final = resources.Budget(2**25, n_rows=200)
"""What one call of a worker makes at most, by the size of what is known of it."""

CALL_SECONDS: Final = 2.0
"""And so much as takes that long: what a run that is killed loses of each worker."""


Fit: TypeAlias = Callable[[NDArray[np.intp], NDArray[np.bool_], int], Predictor]
"""From rows (n,), features that are kept (M,) and a seed to a fitted predictor."""


class FitPlan(Protocol):
    """What is fitted, part by part: one learner for each patch, some for each set."""

    def __len__(self) -> int: ...

    def part(self, some: slice) -> FitPlan:
        """Some of it, which is sent to a worker."""

    def known(self, k: int, refits: Refits, fit: Fit) -> Array:
        """What is known of the predictions of all that number k fits."""


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """What comes of a part of a plan."""

    known: Array  # (b, ...)
    used: frozenset[int]  # suspects that one of the learners uses
    seconds: float = 0.0  # that it took
    # the learners, or none where they are not kept
    predictors: tuple[Predictor, ...] = ()


def fit_part(
    plan: FitPlan,
    refits: Refits,
    keep: bool,  # send the learners back, too
    suspects: frozenset[int],  # features that no learner before was seen to use
) -> Fitted:
    """Fit a part of a plan: a call of a worker, on one thread whatever their number."""
    known, kept, left, seen = [], [], set(suspects), False
    fresh: list[tuple[Predictor, NDArray[np.bool_]]] = []

    def fit(rows: NDArray[np.intp], own: NDArray[np.bool_], seed: int) -> Predictor:
        fresh.append((refits.fitted(rows, own, seed), own))
        return fresh[-1][0]

    start = perf_counter()
    with resources.one_thread():
        for k in range(len(plan)):
            # all have the parameters that scikit-learn has looked at once
            with config_context(skip_parameter_validation=seen):
                known.append(plan.known(k, refits, fit))
            for predict, own in fresh:
                seen = seen or bool(own.any())
                left -= refits.used(predict, left & set(np.flatnonzero(own).tolist()))
                if keep:
                    kept.append(predict)
            fresh.clear()
    return Fitted(np.stack(known), suspects - left, perf_counter() - start, tuple(kept))


def paced(size: int, most: int, count: int, seconds: float) -> int:
    """How much the next call fits, after one of ``count``: what takes CALL_SECONDS.

    It begins with one, and at most doubles. No number depends on it.
    """
    in_time = CALL_SECONDS * count / max(seconds, 1e-9)
    return max(1, int(min(in_time, max(size, 2 * count), most)))


def chunks(missing: Mask, size: Callable[[], int]) -> Iterator[slice]:
    """What is missing, in order, cut when it is asked for."""
    ends = np.flatnonzero(np.diff(missing, prepend=False, append=False))
    for start, stop in ends.reshape(-1, 2).tolist():
        while start < stop:
            own = slice(start, min(start + size(), stop))
            yield own
            start = own.stop


def fitted_parts(
    plan: FitPlan,
    refits: Refits,
    label: str,  # of the bar
    missing: Mask,  # what is to be fitted
    row_bytes: int,  # of what is known of one
    *,
    spread: bool = False,  # several calls for each worker, however few there are
    keep: bool = False,  # keep the learners
    used: frozenset[int] = frozenset(),  # features that learners before used
    n_jobs: int | None,
    progress: bool | None,
) -> Iterator[tuple[slice, Fitted]]:
    """What each call fits, in order; of a feature in use no later call asks it."""
    n_workers = min(resources.read_workers(n_jobs), int(missing.sum()))
    most = CHUNKS.rows(row_bytes)
    if spread:
        most = min(most, math.ceil(missing.sum() / (8 * max(n_workers, 1))))
    size = 1 if resources.yields_results_early() else most
    left = set(range(len(refits.features))) - used
    sent: deque[slice] = deque()

    def calls() -> Iterator[Callable[[], Fitted]]:
        for own in chunks(missing, lambda: size):
            sent.append(own)
            yield partial(fit_part, plan.part(own), refits, keep, frozenset(left))

    with progress_bar(label, len(missing), progress) as bar:
        task = bar.task_ids[0]
        n_done = len(missing) - int(missing.sum())
        bar.advance(task, n_done)
        log = LoggedProgress(label, n_done, len(missing), progress)
        for fitted in resources.in_workers(calls(), n_workers) if n_workers else ():
            own = sent.popleft()
            size = paced(size, most, own.stop - own.start, fitted.seconds)
            left -= fitted.used
            yield own, fitted
            bar.advance(task, own.stop - own.start)
            log.advance(own.stop - own.start)


# ---- What tells one ensemble from another: table, target, learner, scheme and seed


Fingerprint: TypeAlias = Mapping[str, str]
"""By part, its text where that says all, or a digest of it."""

DIGEST: Final = "sha256:"
"""What digests begin with."""


def fingerprint(refits: Refits, drawn: Mapping[str, object]) -> Fingerprint:
    """What predictions of patches depend on; of an error what it keeps."""
    packages = ("propopt", "numpy", "scikit-learn")
    python = f"python {sys.version_info.major}.{sys.version_info.minor}"
    classes, weights, n_rows = refits.classes, refits.sample_weight, refits.n_rows
    # what the error keeps of predictions that differ everywhere
    shape = (n_rows,) if classes is None else (n_rows, len(classes))
    probe: Any = np.arange(np.prod(shape)).reshape(shape) + 0.5
    frame = as_frame(refits.table, "X")
    return {
        "table": hash_of(refits.table if frame is None else frame.table),
        "target": hash_of((refits.y, None if classes is None else classes.tolist())),
        "sample_weight": "none" if weights is None else hash_of(weights),
        "features": hash_of(refits.features.columns),
        "error": hash_of(refits.error.known(probe, refits.y)),
        "learner": _named(refits.estimator),
        "learner's parameters": hash_of(refits.estimator),
        "versions": ", ".join((python, *(f"{p} {version(p)}" for p in packages))),
        **{part: str(value) for part, value in drawn.items()},
    }


def changed_parts(then: Mapping[str, Any], now: Fingerprint) -> list[str]:
    """In words, which parts are others now."""
    words = []
    own = "learner's parameters"  # its name is for readers: sets have no order in it
    same = own in now and then.get(own) == now[own]
    for part, value in now.items():
        old = then.get(part)
        if old == value or (part == "learner" and same):
            continue
        if value.startswith(DIGEST):
            words.append(f"the {part} is another")
        else:
            words.append(f"the {part} is {value} and was {old}")
    return words


def _named(learner: Any) -> str:
    """For messages: functions and objects without the address that they have here."""
    with config_context(print_changed_only=True):
        return re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(repr(learner).split()))


def hash_of(value: Any) -> str:
    """A digest of a table or learner, by what it is made of."""
    try:
        return DIGEST + str(_Hasher(hash_name="sha256").hash(value))
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(
            f"folder: {type(value).__name__} cannot be told from others ({error}); no "
            "pickle can be made of one of its parts"
        ) from None


@final
class _Hasher(NumpyHasher):  # type: ignore[misc]  # joblib has no types
    """What a value is made of, the same in every process.

    Of functions name, code and what they have bound; of others what a pickle would be.
    """

    def save(self, obj: Any) -> None:
        match obj:
            case CodeType():
                # line numbers and the place of the file say nothing of what it does
                obj = obj.co_code, obj.co_names, obj.co_varnames, obj.co_consts
            case FunctionType():
                bound = [cell.cell_contents for cell in obj.__closure__ or ()]
                bound = [own for own in bound if own is not obj]
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
                own = [hash_pandas_object(c, index=False) for _, c in obj.items()]
                obj = list(obj), list(map(str, obj.dtypes)), list(map(np.asarray, own))
            case _ if has_method(obj, "get_params") and not isinstance(obj, type):
                kind = type(obj)
                obj = kind.__module__, kind.__qualname__, obj.get_params(deep=False)
        super().save(obj)


# ---- Predictions of all patches: in memory, or in a file above a stated size


Shape: TypeAlias = tuple[int, int, int]
"""(B, N, R): patches, rows, numbers that are known of each prediction."""

IN_MEMORY: Final = 2**30
"""Bytes, 8 B N R, of predictions that are held in memory; more are in a file.

It is 10,000 patches at 13,000 rows.
"""


def allocate_predictions(shape: Shape, folder: Path | None = None) -> Array:
    """Zeros in memory, or above :data:`IN_MEMORY` in a mapped file that nobody sees."""
    n_bytes = 8 * math.prod(shape)
    if n_bytes <= IN_MEMORY:
        resources.require_memory(n_bytes, _label(shape), "fewer patches need less")
        return np.zeros(shape)
    require_disk(shape, Path(tempfile.gettempdir()) if folder is None else folder)
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):
            # a disk that is full later is an error of the map that nobody can catch
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        return np.memmap(file, dtype=np.float64, mode="w+", shape=shape)


def _label(shape: Shape) -> str:
    return f"{shape[0]} patches predict {shape[1]} rows, which"


def require_disk(shape: Shape, folder: Path) -> None:
    """Refuse what the disk has no room for; what is in the folder needs none."""
    there = sum(part.stat().st_size for part in folder.glob(_PARTS))
    free, n_bytes = shutil.disk_usage(folder).free, 8 * math.prod(shape) - there
    if n_bytes > free:
        raise Refused(
            f"{_label(shape)} needs about {resources.format_bytes(n_bytes)} in {folder} "
            f"and {resources.format_bytes(free)} are free; give Minipatches a folder on "
            "another disk, or fewer patches"
        )


# ---- Predictions in a folder: what was finished is there, whatever ended the run


PROBLEM: Final = "problem.json"

_PARTS: Final = "[0-9]*.npz"
"""Predictions of some patches, by the number of the first of them."""
_KIND: Final = {"format": "propopt minipatches", "version": 2}


def save_part(folder: Path, first: int, part: Fitted) -> None:
    """Write what is known of some patches: it is there whole, or not at all."""
    try:
        path, used = folder / f"{first:08d}.npz", np.array(sorted(part.used), int)
        with atomic_write(path) as draft, draft.open("wb") as file:
            np.savez(file, known=part.known, used=used)
            file.flush()
            os.fsync(file.fileno())  # comes back when the disk has it
    except WriteFailure as error:
        raise WriteFailure(f"{error}; what is finished stays there") from error


def saved_parts(folder: Path, shape: Shape) -> Iterator[tuple[slice, Fitted]]:
    """What is there of the patches, part by part, where its checksum is right."""
    for path in sorted(folder.glob(_PARTS)):
        try:
            with path.open("rb") as file, np.load(file) as part:
                first = int(path.stem)
                known = part["known"][: max(0, shape[0] - first)]
                used = frozenset(part["used"].tolist())
        except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile):
            continue
        except (RuntimeError, MemoryError):  # of a damaged header
            continue
        if known.shape[1:] == shape[1:]:
            yield slice(first, first + len(known)), Fitted(known, used)


def patch_folder(folder: str | Path, problem: Fingerprint, shape: Shape) -> Path:
    """A folder for a problem, which is written there; one of another is refused."""
    place = writable_folder(folder)
    path = place / PROBLEM
    if path.exists():
        changed = changed_parts(_problem_in(path), problem)
        if changed:
            raise InvalidInput(
                f"folder: {place} holds another problem: {'; '.join(changed)}; give "
                "another folder, or delete this one"
            )
    elif any(not file.name.startswith(".") for file in place.iterdir()):
        raise InvalidInput(
            f"folder: {place} holds other files and no {PROBLEM}; give an empty "
            "one, or a new name"
        )
    else:
        with atomic_write(path) as draft:
            draft.write_text(as_json({**_KIND, "problem": dict(problem)}), "utf-8")
    require_disk(shape, place)
    return place


def _problem_in(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):
        held = None
    if not isinstance(held, dict) or {key: held.get(key) for key in _KIND} != _KIND:
        raise InvalidInput(f"folder: {path} is not what minipatches write there")
    problem = held.get("problem")
    if not isinstance(problem, dict):
        raise InvalidInput(f"folder: {path} does not say whose predictions are there")
    return problem
