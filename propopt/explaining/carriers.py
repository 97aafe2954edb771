"""Attributions from anywhere: tables, files, other packages, lists of pairs.

Whatever carries them, three things come out: numbers W (N, D) in the order of the rows
and columns that are explained, the base that they are added to, where the carrier knows
it, and where they come from, in words. Names are aligned or refused. A class is chosen
where there are several; nothing is guessed.
"""

from __future__ import annotations

import csv
import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, final, runtime_checkable

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import as_array, as_floats, read_array, sealed
from propopt.base.errors import InvalidInput
from propopt.base.files import name_of_cell
from propopt.results.explanation import Explanation, base_values_of
from propopt.tables.frames import (
    Frame,
    Labels,
    as_frame,
    is_shap,
    listed,
    orders_of,
    plain_numbers,
)


CarrierLike: TypeAlias = Any
"""What :func:`carried` reads."""

_BASES: Final = (
    *("base_value", "base_values", "expected_value", "expected_values"),
    *("bias", "Bias", "BIAS"),
)
"""What the column of a base is called, where it is none that is explained."""

SUFFIXES: Final = (".csv", ".npz")
"""Of files that are read."""

_LABEL: Final = "attributions"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Carried:
    """Attributions as they came, in the order of rows and columns that are known."""

    values: Attributions  # W (N, D)
    base: Array | None  # (N,): what they are added to; None where nobody says
    source: str  # what carried them, in words
    # (N, D): the exact contributions that came with optimized ones, and the method
    exact: Attributions | None = None


def carried(
    carrier: CarrierLike,
    labels: Labels,
    shape: tuple[int, int],
    *,
    position: int | None = None,
) -> Carried:
    """Attributions of an array, a table, a file or what another package made.

    ============================== ===================================================
    array or DataFrame (N, D)      as they stand; a column ``base_value`` is the base
    array (N, D + 1)               the last column is the base, as ``pred_contrib`` has
    array (N, D, K), or K arrays   those of one class; also (N, K, D + 1), and
                                   (N, K (D + 1)), each class with its base
    ``shap.Explanation``           with its base values, and its axis of classes
    ``propopt.results.Explanation``        in units of the output, with its base
    a tensor, of torch or captum   its numbers, detached
    a path of ``.csv``             a header of names; a first column without a name has
                                   those of rows, as ``DataFrame.to_csv`` writes
    a path of ``.npz``             a saved explanation of ours, or arrays ``values``,
                                   ``base_values`` and ``feature_names``
    a list of N LIME explanations, ``(name, weight)`` each; a name may be one of a bin,
    or of their lists of pairs     such as ``1 < Age <= 4``; 0 without a pair
    ============================== ===================================================

    Parameters
    ----------
    carrier : see above
        The attributions.
    labels : Labels
        Names of the N rows and D columns that are explained.
    shape : (int, int)
        N and D.
    position : int, optional
        Of the class that is explained, where there are several.

    Raises
    ------
    InvalidInput
        If it is none of these, of another shape, or has names that are not those of
        the table.

    Examples
    --------
    >>> from propopt.tables.frames import Labels
    >>> names = Labels(features=("Age", "Income"))
    >>> pairs = [[("1 < Age <= 4", 0.5), ("Income > 9", -0.25)]]
    >>> carried(pairs, names, (1, 2)).values
    array([[ 0.5 , -0.25]])
    """
    found = _read(carrier, labels, shape, position)
    if found.values.shape != shape:
        rows, columns = shape
        raise InvalidInput(
            f"{_LABEL}: expected {rows} rows × {columns} columns, as X has, got "
            f"{' × '.join(map(str, found.values.shape))}"
        )
    return replace(found, values=sealed(np.array(found.values)))


def _read(
    carrier: Any, labels: Labels, shape: tuple[int, int], position: int | None
) -> Carried:
    if isinstance(carrier, str | Path):
        return _of_file(Path(carrier), labels, shape, position)
    if isinstance(carrier, Explanation):
        return _of_ours(carrier, labels)
    if is_shap(carrier):
        return _of_shap(carrier, labels, shape, position)
    # a tensor, which may have a gradient
    if isinstance(carrier, _Tensor):
        tensor = as_array(carrier.detach().cpu(), _LABEL)
        found = _of_array(tensor, shape, position)
        return replace(found, source=found.source.replace("an array", "a tensor"))
    frame = as_frame(carrier, _LABEL)
    if frame is not None:
        return _of_frame(frame.table, labels, shape, position, named=frame.named_rows)
    if isinstance(carrier, list | tuple) and carrier:
        if all(map(_is_row_of_pairs, carrier)):
            return _of_pairs(carrier, labels, shape, position)
        if all(np.ndim(one) == 2 for one in carrier):
            carrier = np.stack([as_floats(one, _LABEL) for one in carrier], axis=2)
    return _of_array(carrier, shape, position)


# ---- Arrays and tables


def _of_array(values: Any, shape: tuple[int, int], position: int | None) -> Carried:
    """Numbers by position, with the bias column that boosters put behind them."""
    array, source = as_floats(values, _LABEL), "an array, by position"
    (N, D), base = shape, None
    if array.ndim == 2 and array.shape[1] > D + 1 and array.shape[1] % (D + 1) == 0:
        array = array.reshape(len(array), -1, D + 1)  # classes after each other
    if array.shape[1:] == (D, D + 1):
        raise InvalidInput(
            f"{_LABEL}: shape {array.shape} has its outputs on the second axis or on "
            "the last; choose one, as in attributions[:, 1] or attributions[..., 1]"
        )
    if array.ndim == 3 and array.shape[2] == D + 1:
        array = array.transpose(0, 2, 1)  # (N, K, D + 1)
    if array.ndim == 3:
        source += _which(array.shape[2], position)
        array = _of_class(array, position)
    array = read_array(array, _LABEL, ndim=2)
    if array.shape == (N, D + 1):
        array, base = array[:, :D], np.array(array[:, D])
        source += "; the last column is the base"
    return Carried(values=array, base=base, source=source)


def _which(count: int, position: int | None) -> str:
    """The class that is taken of several, in words."""
    return "" if count == 1 else f"; output {position} of 0 to {count - 1}"


def _of_class(values: Array, position: int | None) -> Array:
    """One of K outputs (N, D, K)."""
    count = values.shape[2]
    if count == 1:
        return values[..., 0]
    if position is None or position >= count:
        raise InvalidInput(
            f"{_LABEL}: there are {count} outputs, and it is not known which is "
            "explained; choose one, as in attributions[..., 1]"
        )
    return values[..., position]


def _of_frame(
    table: pd.DataFrame,
    labels: Labels,
    shape: tuple[int, int],
    position: int | None,
    *,
    named: bool,
) -> Carried:
    """A table of names; one column may be the base, one the index of another table."""
    known = {*(labels.features or ()), *map(str, labels.columns or ())}
    if len(table.columns) and str(table.columns[0]) == _UNNAMED not in known:
        table, named = table.set_index(table.columns[0]), True
        table.index.name = None
    if [*map(str, table.columns)] == [*map(str, range(table.shape[1]))] and not (
        known & {*map(str, table.columns)}
    ):  # an array that became a table on its way
        return _of_array(plain_numbers(table), shape, position)
    found = [c for c in table if str(c) in _BASES and str(c) not in known]
    if len(found) > 1:
        raise InvalidInput(
            f"{_LABEL}: {listed(found)} are both columns of a base; leave one out"
        )
    base = base_values_of(table[found[0]], len(table)) if found else None
    rest = Frame(
        table.drop(columns=found), named_rows=named and not _counts(table, labels)
    )
    W = read_array(plain_numbers(rest.table), _LABEL, ndim=2)
    return _in_order(W, base, rest.labels, labels, "a table, by names")


_UNNAMED: Final = "Unnamed: 0"
"""What pandas calls the index of a table when it reads its file as a column."""


def _counts(table: pd.DataFrame, labels: Labels) -> bool:
    """Whether its index is the one that every table has, and X has names."""
    every = list(range(len(table)))
    own = labels.points is None or set(labels.points) != set(every)
    return own and table.index.tolist() == every


def _in_order(
    W: Attributions, base: Array | None, own: Labels, labels: Labels, source: str
) -> Carried:
    """Rows and columns where X has them."""
    rows, columns = orders_of(own, labels, _LABEL, "X", counted=True)
    moved = None if base is None else base[rows]
    return Carried(values=W[:, columns][rows], base=moved, source=source)


# ---- Explanations of ours, of shap, and of lime


def _of_ours(known: Explanation, labels: Labels) -> Carried:
    if known.units != "output":
        raise InvalidInput(
            f"{_LABEL}: expected parts of the output, got {known.units_in_words}; "
            "po.explain(model, X, kind='contributions') has parts"
        )
    told = f"an explanation, {known.method}"
    own = known.attributions, known.base_value, known.labels
    found = _in_order(*own, labels, told)
    if known.method != "optimized" or known.contributions is None:
        return found
    target = _in_order(known.contributions, None, known.labels, labels, told)
    return replace(found, exact=target.values)


def _of_shap(
    known: Any, labels: Labels, shape: tuple[int, int], position: int | None
) -> Carried:
    """Values, base values and names, without the package."""
    values, bases = as_floats(known.values, _LABEL), known.base_values
    source = "shap.Explanation"
    if values.ndim == 3:
        source += _which(values.shape[2], position)
        bases = _base_of_class(bases, values.shape[2], position)
        values = _of_class(values, position)
    base = base_values_of(bases, shape[0])
    names = known.feature_names
    return _by_columns(values, base, names, labels, source)


def _by_columns(
    values: Any, base: Array | None, names: Any, labels: Labels, source: str
) -> Carried:
    """Rows by position, columns by names where there are some."""
    W = read_array(values, _LABEL, ndim=2)
    own = Labels(features=None if names is None else tuple(map(str, names)))
    own.check(W.shape, _LABEL)
    return _in_order(W, base, own, labels, source)


@runtime_checkable
class _Tensor(Protocol):
    def detach(self) -> Any: ...
    def cpu(self) -> Any: ...


@runtime_checkable
class _OfLime(Protocol):
    intercept: Any

    def as_map(self) -> Any: ...
    def as_list(self) -> Any: ...


def _is_row_of_pairs(row: Any) -> bool:
    """Whether it is a LIME explanation, or a list of its pairs."""
    if isinstance(row, _OfLime):
        return True
    return (
        isinstance(row, list | tuple)
        and all(
            isinstance(pair, list | tuple)
            and len(pair) == 2
            and isinstance(pair[0], str | int | np.integer)
            and not isinstance(pair[1], str)
            for pair in row
        )
        and any(isinstance(pair[0], str) for pair in row)
    )


def _of_pairs(
    rows: Sequence[Any], labels: Labels, shape: tuple[int, int], position: int | None
) -> Carried:
    """Names or conditions with their weights; the first that are local intercepts."""
    names = labels.feature_names(shape[1])
    W, bases = np.zeros((len(rows), len(names))), []
    for n, row in enumerate(rows):
        pairs: Any = row
        if isinstance(row, _OfLime):
            by_class = row.as_map()
            label = position if position in by_class else min(by_class)
            pairs = by_class[label]
            bases.append(row.intercept[label])
        for name, weight in pairs:
            j = int(name) if not isinstance(name, str) else _column_of(name, names, n)
            W[n, j] += float(weight)
    W = read_array(W, _LABEL, ndim=2)
    base = np.array(bases, dtype=float) if len(bases) == len(rows) else None
    return Carried(values=W, base=base, source="lists of LIME")


def _column_of(condition: str, names: Sequence[str], n: int) -> int:
    """The column that a name or a condition is of; refused where two could be."""
    if condition in names:
        return names.index(condition)
    inside = [
        name
        for name in names
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", condition)
    ]
    # a name inside of another, such as "Use" in "Frequency of use", is not meant
    longest = [
        name
        for name in inside
        if not any(name != other and name in other for other in inside)
    ]
    if len(longest) != 1:
        came = listed(longest) if longest else "no column of X"
        raise InvalidInput(
            f"{_LABEL}: row {n}: {condition!r} names {came}; give as_map(), or pairs "
            "of names of columns"
        )
    return names.index(longest[0])


# ---- Files: CSV with a header, archives without pickles


def _of_file(
    path: Path, labels: Labels, shape: tuple[int, int], position: int | None
) -> Carried:
    if not path.is_file():
        raise InvalidInput(f"{_LABEL}: there is no file {path}")
    kind = path.suffix.lower()
    if kind == ".csv":
        table, named = _of_csv(path)
        counted = labels.points is None or [*labels.points] == [*range(shape[0])]
        if named and counted and {*table.index} != {*range(len(table))}:
            named = False  # the rows of X have no names that could be meant
        found = _of_frame(table, labels, shape, position, named=named)
        return replace(found, source=_named(found.source, path))
    if kind == ".npz":
        return _of_archive(path, labels, shape, position)
    raise InvalidInput(
        f"{_LABEL}: expected a .csv or .npz file, got {path.name}; "
        "DataFrame.to_csv and numpy.savez write these"
    )


def _named(source: str, path: Path) -> str:
    """The same in words, of a file."""
    for told in ("a table, by names", "an array, by position"):
        source = source.replace(told, path.name)
    return source


def _of_csv(path: Path) -> tuple[pd.DataFrame, bool]:
    """A table, and whether its first column, of no name, has those of rows."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), [])
        if len(set(header)) < len(header):
            raise InvalidInput(f"{_LABEL}: {path.name}: two columns have one name")
        index = 0 if header and not header[0].strip() else None
        table = pd.read_csv(path, encoding="utf-8-sig", index_col=index)
    except (ValueError, OSError, csv.Error) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{_LABEL}: {path} is no CSV table: {error}") from None
    text = [c for c in table if not pd.api.types.is_numeric_dtype(table[c])]
    if text and len(table):  # a single name may be the first line of any file
        name = f"column {text[0]!r}" if table.shape[1] > 1 else "its only column"
        raise InvalidInput(
            f"{_LABEL}: {path.name}: {name} holds text, and attributions are numbers"
        )
    if index == 0:
        table = table.rename(lambda x: name_of_cell(x) if isinstance(x, str) else x)
    return table.rename(columns=name_of_cell), index == 0


def _of_archive(
    path: Path, labels: Labels, shape: tuple[int, int], position: int | None
) -> Carried:
    """An explanation of ours, or plain arrays; nothing is unpickled."""
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise ValueError("it is a single array, as numpy.save writes")
            members = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason: object = error
        if "pickle" in str(error):  # NumPy advises to trust the file
            reason = "it holds Python objects, or nothing of NumPy"
        raise InvalidInput(
            f"{_LABEL}: {path} is no archive of arrays: {reason}; numpy.savez("
            "path, values=...) writes one"
        ) from None
    if "header" in members:
        return replace(_of_ours(Explanation.load(path), labels), source=path.name)
    names = members.pop("feature_names", None)
    found = [name for name in _BASES if name in members]
    base = members.pop(found[0]) if found else None
    keys = [
        name for name in ("values", "shap_values", "attributions") if name in members
    ]
    if len(keys) != 1:
        raise InvalidInput(
            f"{_LABEL}: {path.name}: expected one array 'values', got "
            f"{listed([*members])}"
        )
    values, source = as_floats(members[keys[0]], _LABEL), path.name
    if base is None and names is None:
        own = _of_array(values, shape, position)
        return replace(own, source=_named(own.source, path))
    if values.ndim == 3:
        source += _which(values.shape[2], position)
        base = _base_of_class(base, values.shape[2], position)
        values = _of_class(values, position)
    bases = None if base is None else base_values_of(base, len(values))
    return _by_columns(values, bases, names, labels, source)


def _base_of_class(bases: Any, count: int, position: int | None) -> Any:
    """The base of one of K outputs, (K,) or (N, K); another shape has no classes."""
    one_each = bases is not None and np.shape(bases)[-1:] == (count,) and count > 1
    return np.asarray(bases)[..., position] if one_each else bases
