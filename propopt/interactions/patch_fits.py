"""Fits of patches: running, kept in a folder, found again by content."""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import shutil
import sys
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import IO, Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import config_context

from propopt.base.arrays import Array, Truths
from propopt.base.errors import InvalidInput, Refused, Unwritten
from propopt.base.files import as_json, writable_folder, written_whole
from propopt.base.resources import (
    Budget,
    in_workers,
    one_thread,
    read_workers,
    require_memory,
    results_come_early,
    shown_bytes,
)
from propopt.base.terminal import progress_bar
from propopt.interactions.errors_of_rows import RowError
from propopt.interactions.learning import Predictor
from propopt.interactions.left_out import Refits
from propopt.interactions.patch_draws import Patches
from propopt.tables.frames import as_frame, rows_of


# ---- Fits of some patches, one after the other, in whatever process


CHUNKS: Final = Budget(2**25, n_rows=200)
"""Patches that one call of a worker fits at most, by the size of predictions."""

CALL_SECONDS: Final = 2.0
"""And so many as take that long: what a run that is killed loses of each worker."""


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """What comes of some patches."""

    # (b, N, R): of the predictions at rows out of each; zero at rows in it
    known: Array
    used: frozenset[int]  # suspects that one of the learners uses
    seconds: float  # that it took
    # the learners, or none where they are not kept
    predictors: tuple[Predictor, ...] = ()


def fit_patches(
    refits: Refits,
    patches: Patches,
    first: int,  # number of the first of these patches
    outputs: int,  # R
    keep: bool,  # send the learners back, too
    suspects: frozenset[int],  # features that no learner before was seen to use
) -> Fitted:
    """Fit each of some patches, and predict the rows out of it: a call of a worker.

    One thread of BLAS and OpenMP fits, whatever the number of workers, so that numbers
    do not depend on it.
    """
    known = np.zeros((len(patches), refits.n_rows, outputs))
    predictors, seen, left = [], False, set(suspects)
    start = perf_counter()
    with one_thread():
        for b, kept in enumerate(patches.features):
            # all have the parameters that scikit-learn has looked at once
            with config_context(skip_parameter_validation=seen):
                predictor = _fit_patch(refits, patches, b, first + b, known[b])
            seen = seen or bool(kept.any())
            left -= refits.used(predictor, left & set(np.flatnonzero(kept).tolist()))
            if keep:
                predictors.append(predictor)
    return Fitted(known, suspects - left, perf_counter() - start, tuple(predictors))


def _fit_patch(
    refits: Refits, patches: Patches, b: int, number: int, known: Array
) -> Predictor:
    """The predictor of one patch; what is known at rows out of it is written."""
    rows, kept = patches.rows[b], patches.features[b]
    out = np.delete(np.arange(refits.n_rows), rows)
    try:
        predict = refits.fitted(rows, kept, int(patches.seeds[b]))
        result = predict(rows_of(refits.seen, out))
    except Exception as error:
        error.add_note(
            f"while fitting patch {number}, of {len(rows)} rows and "
            f"{int(kept.sum())} features"
        )
        raise
    known[out] = refits.error.known(result, refits.y[out])
    return predict


def outputs_of(refits: Refits) -> int:
    """R, how many numbers are known of each prediction."""
    y = refits.y[:1]
    shape = (1,) if refits.classes is None else (1, len(refits.classes))
    return int(refits.error.known(np.zeros(shape), y).shape[1])


@dataclass
class Pace:
    """How many patches the next call fits: as many as take :data:`CALL_SECONDS`.

    It begins with one, and at most doubles, as nothing is known of the others. No
    number depends on it.
    """

    most: int  # patches of one call
    size: int = 1  # of the next

    @classmethod
    def of(cls, refits: Refits, outputs: int, *, streams: bool) -> Pace:
        """Of predictions of that size; where results come all at once, the most."""
        most = CHUNKS.rows(8 * refits.n_rows * outputs)
        return cls(most, 1 if streams else most)

    def saw(self, n_patches: int, seconds: float) -> None:
        """Learn from a call that has come back."""
        in_time = CALL_SECONDS * n_patches / max(seconds, 1e-9)
        size = min(in_time, max(self.size, 2 * n_patches), self.most)
        self.size = max(1, int(size))

    def chunks(self, missing: NDArray[np.bool_]) -> Iterator[slice]:
        """Patches that are missing, in order, cut when they are asked for."""
        ends = np.flatnonzero(np.diff(missing, prepend=False, append=False))
        for start, stop in ends.reshape(-1, 2).tolist():
            while start < stop:
                own = slice(start, min(start + self.size, stop))
                yield own
                start = own.stop


# ---- What tells one ensemble from another: table, target, learner, scheme and seed


Fingerprint: TypeAlias = Mapping[str, str]
"""By part, its text where that says all, or a digest of it."""

DIGEST: Final = "sha256:"
"""What digests begin with."""


def fingerprint(refits: Refits, drawn: Mapping[str, object]) -> Fingerprint:
    """What predictions of patches depend on, part by part.

    Two errors of which the same is kept of a prediction, such as the squared and the
    absolute one, make no difference.
    """
    packages = ("propopt", "numpy", "scikit-learn")
    python = f"python {sys.version_info.major}.{sys.version_info.minor}"
    classes = refits.classes
    weights, n_rows = refits.sample_weight, refits.n_rows
    # what the error keeps of predictions that differ everywhere
    shape = (n_rows,) if classes is None else (n_rows, len(classes))
    probe: Any = np.arange(np.prod(shape)).reshape(shape) + 0.5
    return {
        "table": _of_table(refits.table),
        "target": _of_arrays(refits.y)
        + ("" if classes is None else _digest(repr(classes.tolist()))),
        "sample_weight": "none" if weights is None else _of_arrays(weights),
        "features": _digest(repr(refits.features.columns)),
        "error": _of_arrays(refits.error.known(probe, refits.y)),
        "learner": _named(refits.estimator),
        "learner's parameters": of_learner(refits.estimator),
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


def _of_table(table: Any) -> str:
    frame = as_frame(table, "X")
    if frame is None:
        array = np.asarray(table)
        if not array.dtype.hasobject:
            return _of_arrays(array)
        columns = pd.DataFrame(array)
    else:
        columns = frame.table
    parts = [
        f"{name!r} {column.dtype} {_of_column(column)}"
        for name, column in columns.items()
    ]
    return _digest("\n".join(parts))


def _of_column(column: Any) -> str:
    try:
        hashes = pd.util.hash_pandas_object(column, index=False)
    except TypeError as error:
        raise InvalidInput(
            f"folder: the column {column.name!r} cannot be told from another: {error}"
        ) from None
    return _of_arrays(hashes.to_numpy())


def of_learner(learner: Any) -> str:
    """A digest of a learner, by what it is made of: see :func:`_content`."""
    return _digest("\n".join(_content(learner, ())))


def _content(value: Any, within: tuple[int, ...]) -> Iterator[str]:
    """What a parameter is made of, the same in every process.

    Estimators are their class and parameters, functions their name, code and what they
    have bound, arrays their numbers; all else is what a pickle of it would be made of.
    """
    if id(value) in within:
        yield f"the one {within[::-1].index(id(value))} levels above"
        return
    inner = (*within, id(value))
    kind = type(value)
    yield f"{kind.__module__}.{kind.__qualname__}"
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes():
            yield repr(value)
        case np.ndarray() if not value.dtype.hasobject:
            yield _of_arrays(value)
        case pd.DataFrame() | pd.Series():
            yield _of_table(pd.DataFrame(value))
        case list() | tuple() | np.ndarray():
            yield str(len(value))
            for own in value:
                yield from _content(own, inner)
        case dict():
            yield from _unordered(value.items(), inner)
        case set() | frozenset():
            yield from _unordered(value, inner)
        case CodeType():
            # line numbers and the place of the file say nothing of what it does
            yield _digest(value.co_code)
            yield from _content((value.co_names, value.co_varnames), inner)
            yield from _content(value.co_consts, inner)
        case FunctionType():
            yield _name_of(value)
            yield from _content((value.__code__, value.__defaults__), inner)
            yield from _content(value.__kwdefaults__, inner)
            cells = value.__closure__ or ()
            yield from _content([cell.cell_contents for cell in cells], inner)
        case MethodType():
            yield from _content((value.__self__, value.__func__), inner)
        case BuiltinFunctionType() | type() | np.ufunc():
            yield _name_of(value)
        case _ if hasattr(value, "get_params"):
            yield from _content(value.get_params(deep=False), inner)
        case _:
            yield from _content(_parts_of(value), inner)


def _unordered(values: Iterable[Any], within: tuple[int, ...]) -> list[str]:
    return sorted(_digest("\n".join(_content(own, within))) for own in values)


def _name_of(value: Any) -> str:
    module = getattr(value, "__module__", "")
    return f"{module}.{getattr(value, '__qualname__', value.__name__)}"


def _parts_of(value: Any) -> Any:
    """What a pickle would make it of: a function, arguments, and what is set then."""
    try:
        parts = value.__reduce_ex__(4)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"folder: the learner cannot be told from others ({error}); no pickle can "
            "be made of one of its parameters"
        ) from None
    if isinstance(parts, str):  # the name of a global
        return parts
    made, arguments, *rest = parts
    # items of lists and mappings come as iterators
    return made, arguments, [list(p) if isinstance(p, Iterator) else p for p in rest]


def _of_arrays(array: Any) -> str:
    plain = np.ascontiguousarray(array)
    return _digest(f"{plain.dtype.str} {plain.shape} ".encode() + plain.tobytes())


def _digest(text: str | bytes) -> str:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return DIGEST + sha256(data).hexdigest()


# ---- Predictions of all patches: in memory, or in a file above a stated size


Shape: TypeAlias = tuple[int, int, int]
"""(B, N, R): patches, rows, numbers that are known of each prediction."""

IN_MEMORY: Final = 2**30
"""Bytes, 8 B N R, of predictions that are held in memory; more are in a file.

It is 10,000 patches at 13,000 rows.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Store(ABC):
    """Where predictions go as soon as they are there."""

    shape: Shape  # (B, N, R): of all that it will hold
    finished: Truths  # (B,): which patches were there from the start
    used: frozenset[int] = frozenset()  # places of features that learners of these use

    @abstractmethod
    def write(self, first: int, known: Array, used: Collection[int] = ()) -> None:
        """Keep what is known of some patches; known (b, N, R)."""

    @abstractmethod
    def read(self, n_patches: int) -> Array:
        """What is known of the first patches, (n_patches, N, R)."""

    @abstractmethod
    def close(self) -> None:
        """Nothing more is written; what was read stays."""


@final
@dataclass(frozen=True, eq=False)
class MemoryStore(Store):
    """An array."""

    @cached_property
    def values(self) -> Array:
        """What is held, zero of what was not written."""
        return np.zeros(self.shape)

    def write(self, first: int, known: Array, used: Collection[int] = ()) -> None:
        del used
        self.values[first : first + len(known)] = known

    def read(self, n_patches: int) -> Array:
        return self.values[:n_patches]

    def close(self) -> None:
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class FileStore(Store):
    """A file of float64 numbers, patch after patch, mapped to memory when read."""

    file: IO[bytes]  # open for reading and writing

    def write(self, first: int, known: Array, used: Collection[int] = ()) -> None:
        del used
        # not through the map: a full disk is an error there that nobody can catch
        self.file.seek(first * self.patch_bytes)
        self.file.write(np.ascontiguousarray(known, dtype="<f8").tobytes())
        self.file.flush()

    def read(self, n_patches: int) -> Array:
        shape = (n_patches, *self.shape[1:])
        if n_bytes_of(shape) <= IN_MEMORY:
            return self.part(0, n_patches)
        return np.memmap(self.file, dtype="<f8", mode="r", shape=shape)

    def part(self, first: int, n_patches: int) -> Array:
        """Some patches, read into memory; fewer where the file ends before."""
        self.file.seek(first * self.patch_bytes)
        data = self.file.read(n_patches * self.patch_bytes)
        whole = len(data) // self.patch_bytes
        values = np.frombuffer(data[: whole * self.patch_bytes], dtype="<f8")
        return values.astype(np.float64, copy=False).reshape(whole, *self.shape[1:])

    def close(self) -> None:
        self.file.close()

    @property
    def patch_bytes(self) -> int:
        """Of one patch."""
        return 8 * self.shape[1] * self.shape[2]


def n_bytes_of(shape: Shape) -> int:
    """8 B N R."""
    return 8 * math.prod(shape)


def new_store(shape: Shape) -> Store:
    """In memory, or above :data:`IN_MEMORY` in a file that nobody sees."""
    n_bytes = n_bytes_of(shape)
    none, label = (
        np.zeros(shape[0], bool),
        f"{shape[0]} patches predict {shape[1]} rows, which",
    )
    if n_bytes <= IN_MEMORY:
        require_memory(n_bytes, label, "fewer patches need less")
        return MemoryStore(shape=shape, finished=none)
    require_disk(n_bytes, Path(tempfile.gettempdir()), label)
    return FileStore(shape=shape, finished=none, file=tempfile.TemporaryFile())


def require_disk(n_bytes: int, folder: Path, label: str) -> None:
    """Refuse what the disk has no room for."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise Refused(
            f"{label} needs about {shown_bytes(n_bytes)} in {folder} and "
            f"{shown_bytes(free)} are free; give Minipatches a folder on another "
            "disk, or fewer patches"
        )


# ---- Fitted learners of all patches, kept to predict new rows


@final
@dataclass(frozen=True, eq=False)
class Learners:
    """B fitted learners."""

    predictors: tuple[Predictor, ...]  # (B,): in the order of the patches
    error: RowError  # says what is kept of a prediction

    def mean(self, table: Any) -> Array:
        """The mean prediction of all learners: what the scores explain.

        table (n, D).
        """
        total = self.predictors[0](table)
        for predict in self.predictors[1:]:
            total = total + predict(table)
        return total / len(self.predictors)

    def known(self, table: Any, y: NDArray[Any]) -> Array:
        """What is known of each learner's predictions of new rows, (B, n, R).

        table (n, D), y (n,).
        """
        first = self.error.known(self.predictors[0](table), y)
        with closing(new_store((len(self.predictors), *first.shape))) as store:
            store.write(0, first[None])
            for b, predict in enumerate(self.predictors[1:], start=1):
                store.write(b, self.error.known(predict(table), y)[None])
            return store.read(len(self.predictors))


def kept(learners: Learners | None) -> Learners:
    """The learners, where they were kept."""
    if learners is None:
        raise InvalidInput(
            "the fitted learners are not there any more; fit with "
            "Minipatches(keep=True)"
        )
    return learners


# ---- All patches fitted by workers, as far as there is time


@final
@dataclass(frozen=True, eq=False)
class Ensemble:
    """What the patches that were fitted know."""

    patches: Patches  # B of them: the first of those that were drawn, or all
    # (B, N, R): what is known of each prediction, zero at rows in the patch
    predictions: Array
    used: frozenset[int]  # places of features that a learner uses
    learners: Learners | None  # where they are kept


def fitted_ensemble(
    refits: Refits,
    patches: Patches,
    store: Store,
    *,
    keep: bool,  # keep the learners
    n_jobs: int | None,
    progress: bool | None,
) -> Ensemble:
    """What the patches know; of those that were finished, after Ctrl-C."""
    done, used = store.finished.copy(), set(store.used)
    predictors: list[Predictor] = []
    with progress_bar("minipatches", len(patches), progress) as bar:
        task = bar.task_ids[0]
        bar.advance(task, int(done.sum()))
        try:
            results = _results(refits, patches, ~done, store.shape[2], keep, n_jobs)
            for own, fitted in results:
                store.write(own.start, fitted.known, fitted.used)
                predictors += fitted.predictors
                used |= fitted.used
                done[own] = True
                bar.advance(task, own.stop - own.start)
        except KeyboardInterrupt:
            if not done[0]:
                raise
    n_done = len(done) if done.all() else int(done.argmin())
    learners = Learners(tuple(predictors), refits.error) if keep else None
    finished = patches.part(slice(n_done))
    return Ensemble(finished, store.read(n_done), frozenset(used), learners)


def _results(
    refits: Refits,
    patches: Patches,
    missing: NDArray[np.bool_],
    outputs: int,
    keep: bool,
    n_jobs: int | None,
) -> Iterator[tuple[slice, Fitted]]:
    """What each call fits, in order; of one that is used no later call asks it."""
    n_workers = min(read_workers(n_jobs), int(missing.sum()))
    if not n_workers:
        return
    pace = Pace.of(refits, outputs, streams=results_come_early())
    used: set[int] = set()
    sent: deque[slice] = deque()

    def calls() -> Iterator[Callable[[], Fitted]]:
        for own in pace.chunks(missing):
            sent.append(own)
            suspects = frozenset(range(len(refits.features))) - used
            part = patches.part(own)
            yield partial(fit_patches, refits, part, own.start, outputs, keep, suspects)

    for fitted in in_workers(calls(), n_workers):
        own = sent.popleft()
        pace.saw(own.stop - own.start, fitted.seconds)
        used |= fitted.used
        yield own, fitted


# ---- Predictions in a folder: what was finished is there, whatever ended the run


PROBLEM: Final = "problem.json"
PREDICTIONS: Final = "predictions.bin"
FINISHED: Final = "finished.txt"

_KIND: Final = {"format": "propopt minipatches", "version": 1}
_LINE: Final = re.compile(r"(\d{1,12}) (\d{1,12}) (\d{1,10}) ([\d,]*)\n")
"""First patch, the one after the last, checksum, features that were seen to be used.

A line that was cut off has no end.
"""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FolderStore(FileStore):
    """A file of predictions, and a line for each part of it that is whole.

    Numbers come to the disk before the line that says so, so that a run that is killed,
    or a machine that stops, loses only what was on its way. A line with another
    checksum than the numbers is not believed.
    """

    folder: Path  # its own

    @classmethod
    def opened(
        cls, folder: str | Path, problem: Fingerprint, shape: Shape
    ) -> FolderStore:
        """The store of a problem, with what was finished of it."""
        place = writable_folder(folder)
        _claim(place, problem)
        path = place / PREDICTIONS
        there = path.stat().st_size if path.exists() else 0
        label = f"{shape[0]} patches predict {shape[1]} rows, which"
        require_disk(n_bytes_of(shape) - there, place, label)
        handle = os.open(
            path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666
        )
        file = os.fdopen(handle, "r+b")
        own = FileStore(shape=shape, finished=np.zeros(shape[0], bool), file=file)
        finished, used = _whole(place / FINISHED, own)
        return cls(shape=shape, finished=finished, used=used, file=file, folder=place)

    def write(self, first: int, known: Array, used: Collection[int] = ()) -> None:
        features = ",".join(map(str, sorted(used)))
        try:
            super().write(first, known)
            os.fsync(self.file.fileno())  # comes back when the disk has it
            checksum = _checksum(known, features)
            line = f"{first} {first + len(known)} {checksum} {features}\n"
            with (self.folder / FINISHED).open("a", encoding="ascii") as lines:
                lines.write(line)
        except OSError as error:
            raise Unwritten(
                f"cannot write to {self.folder}: {error.strerror or error}; what is "
                "finished stays there"
            ) from error


def _whole(path: Path, own: FileStore) -> tuple[Truths, frozenset[int]]:
    """Patches whose numbers are those that were written, and what they use."""
    finished, used = np.zeros(own.shape[0], bool), set[int]()
    if not path.exists():
        return finished, frozenset()
    text = path.read_text(encoding="ascii", errors="replace")
    if text and not text.endswith("\n"):  # the next line is one of its own
        path.write_text(f"{text}\n", encoding="ascii", errors="replace")
    for line in text.splitlines(keepends=True):
        if match := _LINE.fullmatch(line):
            first, stop, checksum = map(int, match.groups()[:3])
            if not first < stop <= len(finished):
                continue
            known = own.part(first, stop - first)
            if len(known) == stop - first and _checksum(known, match[4]) == checksum:
                finished[first:stop] = True
                used.update(int(place) for place in match[4].split(",") if place)
    return finished, frozenset(used)


def _checksum(known: Array, features: str) -> int:
    numbers = zlib.crc32(np.ascontiguousarray(known, dtype="<f8").tobytes())
    return zlib.crc32(features.encode("ascii"), numbers)


def _claim(folder: Path, problem: Fingerprint) -> None:
    """Write what the problem is, or refuse a folder that has another."""
    path = folder / PROBLEM
    if not path.exists():
        if any(not file.name.startswith(".") for file in folder.iterdir()):
            raise InvalidInput(
                f"folder: {folder} holds other files and no {PROBLEM}; give an empty "
                "one, or a new name"
            )
        with written_whole(path) as draft:
            draft.write_text(as_json({**_KIND, "problem": dict(problem)}), "utf-8")
        return
    changed = changed_parts(_problem_in(path), problem)
    if changed:
        raise InvalidInput(
            f"folder: {folder} holds another problem: {'; '.join(changed)}; give "
            "another folder, or delete this one"
        )


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
