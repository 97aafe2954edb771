"""Attributions from anywhere: tables, files, other packages, lists of pairs.

Whatever carries them, these come out: numbers W (N, D), in the order of the rows and
columns that are explained where these are known; the base that they are added to, where
the carrier knows it; their units; and where they come from, in words. Names are aligned
or refused. A class is chosen where there are several; nothing is guessed.
"""

from __future__ import annotations

import csv
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Final,
    NoReturn,
    Protocol,
    TypeAlias,
    final,
    runtime_checkable,
)

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import as_array, as_floats, read_array, read_only
from propopt.base.errors import InvalidInput
from propopt.base.files import unescape_cell
from propopt.base.text import Quantity
from propopt.tables.frames import (
    Frame,
    Labels,
    as_frame,
    listed,
    orders_of,
    plain_numbers,
)


AttributionsLike: TypeAlias = Any
"""What :func:`read_attributions` reads."""

_BASES: Final = (
    *("base_value", "base_values", "expected_value", "expected_values"),
    *("bias", "Bias", "BIAS"),
)
"""What the column of a base is called, where it is none that is explained."""

SUFFIXES: Final = (".csv", ".npz")
"""Of files that are read."""


class ExplanationFields:
    """An explanation of ours, by what is read of it."""

    attributions: Attributions
    contributions: Array | None
    base_value: Array | None
    labels: Labels
    units: Any
    quantity: Quantity | None
    method: str

    @property
    def units_in_words(self) -> str:
        """What attributions of numbers are, and of what."""
        raise NotImplementedError


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ImportedAttributions:
    """Attributions as they came, in the order of rows and columns that are known."""

    values: Attributions  # W (N, D)
    labels: Labels = Labels()
    base: Array | None = None  # (N,): what they are added to; None where nobody says
    source: str  # what carried them, in words
    units: Any = None  # None where nobody says
    quantity: Quantity | None = None
    # (N, D): the exact contributions that came with optimized ones, and the method
    exact: Attributions | None = None
    explanation: ExplanationFields | None = None  # the explanation itself, as it came


def read_attributions(
    carrier: AttributionsLike,
    label: str,
    names: Labels | None = None,
    shape: tuple[int, int] | None = None,
    *,
    whose: str = "X",
    position: int | None = None,
    saved: Callable[[Path], ExplanationFields] | None = None,
) -> ImportedAttributions:
    """Attributions of an array, a table, a file or what another package made.

    ============================== ===================================================
    array or DataFrame (N, D)      as they stand; a column ``base_value`` is the base
    array (N, D + 1)               the last column is the base, as ``pred_contrib`` has
    array (N, D, K), or K arrays   those of one class; also (N, K, D + 1), and
                                   (N, K (D + 1)), each class with its base
    ``shap.Explanation``           with its base values, and its axis of classes
    ``propopt.results.Explanation``        with its base; also what holds one, an audit
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
    label : str
        What messages call them.
    names : Labels, optional
        Of the rows and columns that are explained, in whose order they are put. By
        default those that they come with.
    shape : (int, int), optional
        N and D. Without it nothing is taken for a base or a class.
    whose : str
        What messages call that which has the names.
    position : int, optional
        Of the class that is explained, where there are several.
    saved : callable, optional
        Reads a saved explanation of ours from its path.

    Returns
    -------
    ImportedAttributions
        Another shape than N and D is refused by whoever asked.

    Raises
    ------
    InvalidInput
        If it is none of these, or has names that are not those of the table.

    Examples
    --------
    >>> from propopt.tables.frames import Labels
    >>> names = Labels(features=("Age", "Income"))
    >>> pairs = [[("1 < Age <= 4", 0.5), ("Income > 9", -0.25)]]
    >>> read_attributions(pairs, "W", names, (1, 2)).values
    array([[ 0.5 , -0.25]])
    """
    reader = _Reader(label, names or Labels(), shape, whose, position, saved)
    return reader.read(carrier)


def aligned(carrier: object, names: Labels, label: str, whose: str) -> Attributions:
    """W (N, D) of what :func:`read_attributions` takes, in the order of ``names``."""
    return read_attributions(carrier, label, names, whose=whose).values


def is_shap(carrier: Any) -> bool:
    """Whether it is a ``shap.Explanation``, by what it has: shap is not imported."""
    if isinstance(carrier, pd.DataFrame):  # columns are attributes too
        return False
    return isinstance(carrier, _OfShap)


def is_tensor(carrier: Any) -> bool:
    """Whether it is a tensor of torch, by what it has: torch is not imported."""
    return isinstance(carrier, _Tensor)


@runtime_checkable
class _OfShap(Protocol):
    values: Any
    feature_names: Any


@runtime_checkable
class _Tensor(Protocol):
    def detach(self) -> Any: ...
    def cpu(self) -> Any: ...


@runtime_checkable
class _OfLime(Protocol):
    intercept: Any

    def as_map(self) -> Any: ...
    def as_list(self) -> Any: ...


@final
@dataclass(frozen=True, eq=False)
class _Reader:
    """What is explained, as far as it is known, and how each carrier is read."""

    label: str
    names: Labels
    shape: tuple[int, int] | None
    whose: str
    position: int | None
    saved: Callable[[Path], ExplanationFields] | None

    def read(self, carrier: Any) -> ImportedAttributions:
        """Attributions of whatever it is."""
        if isinstance(carrier, np.ndarray):
            return self._array(carrier)
        if isinstance(carrier, str | Path):
            return self._file(Path(carrier))
        frame = as_frame(carrier, self.label)
        if frame is not None:
            return self._frame(frame)
        carrier = getattr(carrier, "explanation", carrier)  # which an audit holds
        if isinstance(carrier, ExplanationFields):
            return self._ours(carrier)
        if is_shap(carrier):
            return self._shap(carrier)
        if is_tensor(carrier):  # which may have a gradient
            found = self._array(as_array(carrier.detach().cpu(), self.label))
            return replace(found, source=found.source.replace("an array", "a tensor"))
        if isinstance(carrier, list | tuple) and carrier:
            known = self.shape is not None or self.names.features is not None
            if known and all(map(_is_row_of_pairs, carrier)):
                return self._pairs(carrier)
            if self.shape is not None and all(np.ndim(one) == 2 for one in carrier):
                classes = [as_floats(one, self.label) for one in carrier]
                carrier = np.stack(classes, axis=2)
        return self._array(carrier)

    def _refuse(self, words: str) -> NoReturn:
        raise InvalidInput(f"{self.label}: {words}")

    def _in_order(
        self, W: Attributions, base: Array | None, own: Labels, source: str
    ) -> ImportedAttributions:
        """Rows and columns where the table has them."""
        rows, columns = orders_of(own, self.names, self.label, self.whose, counted=True)
        if not (isinstance(rows, slice) and isinstance(columns, slice)):
            W, base = (
                read_only(W[:, columns][rows]),
                None if base is None else base[rows],
            )
        return ImportedAttributions(values=W, labels=own, base=base, source=source)

    # ---- arrays and tables

    def _array(self, values: Any) -> ImportedAttributions:
        """Numbers by position, with the bias column that boosters put behind them."""
        source, base = "an array, by position", None
        if self.shape is None:
            W = read_array(values, self.label, ndim=2)
            return ImportedAttributions(values=W, source=source)
        array, (N, D) = as_floats(values, self.label), self.shape
        if array.ndim == 2 and array.shape[1] > D + 1 and array.shape[1] % (D + 1) == 0:
            array = array.reshape(len(array), -1, D + 1)  # classes after each other
        if array.shape[1:] == (D, D + 1):
            self._refuse(
                f"shape {array.shape} has its outputs on the second axis or on the "
                f"last; choose one, as in {self.label}[:, 1] or {self.label}[..., 1]"
            )
        if array.ndim == 3 and array.shape[2] == D + 1:
            array = array.transpose(0, 2, 1)  # (N, K, D + 1)
        if array.ndim == 3:
            source += self._which(array.shape[2])
            array = self._of_class(array)
        array = read_array(array, self.label, ndim=2)
        if array.shape == (N, D + 1):
            array, base = array[:, :D], np.array(array[:, D])
            source += "; the last column is the base"
        return ImportedAttributions(values=array, base=base, source=source)

    def _which(self, count: int) -> str:
        """The class that is taken of several, in words."""
        return "" if count == 1 else f"; output {self.position} of 0 to {count - 1}"

    def _of_class(self, values: Array) -> Array:
        """One of K outputs (N, D, K)."""
        count = values.shape[2]
        if count == 1:
            return values[..., 0]
        if self.position is None or self.position >= count:
            self._refuse(
                f"there are {count} outputs, and it is not known which is explained; "
                f"choose one, as in {self.label}[..., 1]"
            )
        return values[..., self.position]

    def _frame(self, frame: Frame) -> ImportedAttributions:
        """A table of names; one column may be the base, one the index of another."""
        table, named, names = frame.table, frame.named_rows, self.names
        base, source = None, "a table, by names"
        if self.shape is not None:
            known = {*(names.features or ()), *map(str, names.columns or ())}
            if len(table.columns) and str(table.columns[0]) == _UNNAMED not in known:
                table, named = table.set_index(table.columns[0]), True
                table.index.name = None
            columns = {*map(str, table.columns)}
            counted = [*map(str, range(table.shape[1]))]
            if [*map(str, table.columns)] == counted and not known & columns:
                return self._array(plain_numbers(table))  # an array on its way
            found = [c for c in table if str(c) in _BASES and str(c) not in known]
            if len(found) > 1:
                self._refuse(
                    f"{listed(found)} are both columns of a base; leave one out"
                )
            base = base_values_of(table[found[0]], len(table)) if found else None
            named = named and not _counts(table, names)
            frame = Frame(table.drop(columns=found), frame.kind, named)
        W = read_array(plain_numbers(frame.table), self.label, ndim=2)
        return self._in_order(W, base, frame.labels, source)

    # ---- explanations of ours, of shap, and of lime

    def _ours(self, own: ExplanationFields) -> ImportedAttributions:
        told = f"an explanation, {own.method}"
        found = self._in_order(own.attributions, own.base_value, own.labels, told)
        found = replace(found, units=own.units, quantity=own.quantity, explanation=own)
        if own.method != "optimized" or own.contributions is None:
            return found
        exact = self._in_order(own.contributions, None, own.labels, told)
        return replace(found, exact=exact.values)

    def _shap(self, own: Any) -> ImportedAttributions:
        """Values, base values and names, without the package."""
        if np.ndim(own.values) == 3 and self.position is None:
            self._refuse(
                "expected the values of one output, got the shape "
                f"{np.shape(own.values)}; choose one, as in explanation[..., 1]"
            )
        values = as_floats(own.values, self.label)
        bases = getattr(own, "base_values", None)
        source, bases, values = self._one_output("shap.Explanation", bases, values)
        found = self._by_columns(values, bases, own.feature_names, source)
        return replace(found, units="output")

    def _one_output(
        self, source: str, bases: Any, values: Array
    ) -> tuple[str, Any, Any]:
        """Of K outputs one, and its base, (K,) or (N, K); another has no classes."""
        if values.ndim != 3:
            return source, bases, values
        count = values.shape[2]
        if bases is not None and np.shape(bases)[-1:] == (count,) and count > 1:
            bases = np.asarray(bases)[..., self.position]
        return source + self._which(count), bases, self._of_class(values)

    def _by_columns(
        self, values: Any, bases: Any, names: Any, source: str
    ) -> ImportedAttributions:
        """Rows by position, columns by names where there are some."""
        W = read_array(values, self.label, ndim=2)
        features = None if names is None else tuple(map(str, names))
        if features is not None and len(features) != W.shape[1]:
            self._refuse(
                f"expected a name for each of {W.shape[1]} features, got "
                f"{len(features)}"
            )
        own = Labels(features=features)
        return self._in_order(W, base_values_of(bases, len(W)), own, source)

    def _pairs(self, rows: Sequence[Any]) -> ImportedAttributions:
        """Names or conditions with weights; the first that are local intercepts."""
        D = len(self.names.features or ()) if self.shape is None else self.shape[1]
        names = self.names.feature_names(D)
        W, bases = np.zeros((len(rows), D)), []
        for n, row in enumerate(rows):
            pairs: Any = row
            if isinstance(row, _OfLime):
                by_class = row.as_map()
                output = self.position if self.position in by_class else min(by_class)
                pairs = by_class[output]
                bases.append(row.intercept[output])
            for name, weight in pairs:
                is_name = isinstance(name, str)
                W[n, self._column_of(name, names, n) if is_name else int(name)] += (
                    float(weight)
                )
        W = read_array(W, self.label, ndim=2)
        base = np.array(bases, dtype=float) if len(bases) == len(rows) else None
        return ImportedAttributions(values=W, base=base, source="lists of LIME")

    def _column_of(self, condition: str, names: Sequence[str], n: int) -> int:
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
            self._refuse(
                f"row {n}: {condition!r} names {came}; give as_map(), or pairs of "
                "names of columns"
            )
        return names.index(longest[0])

    # ---- files: CSV with a header, archives without pickles

    def _file(self, path: Path) -> ImportedAttributions:
        if not path.is_file():
            self._refuse(f"there is no file {path}")
        kind = path.suffix.lower()
        if kind == ".csv":
            table, named = self._csv(path)
            points = self.names.points
            counted = points is None or [*points] == [*range(len(points))]
            if named and counted and {*table.index} != {*range(len(table))}:
                named = False  # the rows of X have no names that could be meant
            found = self._frame(Frame(table, named_rows=named))
            return replace(found, source=_named(found.source, path))
        if kind == ".npz":
            return self._archive(path)
        raise InvalidInput(
            f"{self.label}: expected a .csv or .npz file, got {path.name}; "
            "DataFrame.to_csv and numpy.savez write these"
        )

    def _csv(self, path: Path) -> tuple[pd.DataFrame, bool]:
        """A table, and whether its first column, of no name, has those of rows."""
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                header = next(csv.reader(file), [])
            if len(set(header)) < len(header):
                self._refuse(f"{path.name}: two columns have one name")
            index = 0 if header and not header[0].strip() else None
            table = pd.read_csv(path, encoding="utf-8-sig", index_col=index)
        except (ValueError, OSError, csv.Error) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(
                f"{self.label}: {path} is no CSV table: {error}"
            ) from None
        text = [c for c in table if not pd.api.types.is_numeric_dtype(table[c])]
        if text and len(table):  # a single name may be the first line of any file
            name = f"column {text[0]!r}" if table.shape[1] > 1 else "its only column"
            self._refuse(
                f"{path.name}: {name} holds text, and attributions are numbers"
            )
        if index == 0:
            table = table.rename(
                lambda x: unescape_cell(x) if isinstance(x, str) else x
            )
        return table.rename(columns=unescape_cell), index == 0

    def _archive(self, path: Path) -> ImportedAttributions:
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
                f"{self.label}: {path} is no archive of arrays: {reason}; numpy.savez("
                "path, values=...) writes one"
            ) from None
        if "header" in members:
            if self.saved is None:
                self._refuse(
                    f"{path.name} is a saved result; give "
                    f"po.results.Explanation.load({path.name!r})"
                )
            return replace(self._ours(self.saved(path)), source=path.name)
        names = members.pop("feature_names", None)
        found = [name for name in _BASES if name in members]
        base = members.pop(found[0]) if found else None
        keys = [k for k in ("values", "shap_values", "attributions") if k in members]
        if len(keys) != 1:
            self._refuse(
                f"{path.name}: expected one array 'values', got {listed([*members])}"
            )
        values = as_floats(members[keys[0]], self.label)
        if base is None and names is None:
            own = self._array(values)
            return replace(own, source=_named(own.source, path))
        source, base, values = self._one_output(path.name, base, values)
        return self._by_columns(values, base, names, source)


_UNNAMED: Final = "Unnamed: 0"
"""What pandas calls the index of a table when it reads its file as a column."""


def _counts(table: pd.DataFrame, labels: Labels) -> bool:
    """Whether its index is the one that every table has, and X has names."""
    every = list(range(len(table)))
    own = labels.points is None or set(labels.points) != set(every)
    return own and table.index.tolist() == every


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


def _named(source: str, path: Path) -> str:
    """The same in words, of a file."""
    for told in ("a table, by names", "an array, by position"):
        source = source.replace(told, path.name)
    return source


# ---- Base values


@final
class NoBaseValue:
    """What slopes have in place of a base value: whoever adds to it is refused."""

    def __repr__(self) -> str:
        return "None: slopes add up to no output"

    def _refused(self) -> NoReturn:
        raise InvalidInput(
            "base_values: these are slopes, which add up to no output, so that there "
            "is no waterfall of them; parts that do are po.explain(model, X, data=X, "
            "kind='contributions').to_shap(X)"
        )

    def __float__(self) -> NoReturn:
        self._refused()

    def __array__(self, *_: object, **_named: object) -> NoReturn:
        self._refused()

    def __getitem__(self, _: object) -> NoReturn:
        self._refused()

    def __format__(self, _: str) -> NoReturn:
        self._refused()

    def __add__(self, _: object) -> NoReturn:
        self._refused()

    def __radd__(self, _: object) -> NoReturn:
        self._refused()

    shape: ClassVar[tuple[()]] = ()


def base_values_of(base: object, n_points: int) -> Array | None:
    """One number per row from what the package has: a number, a row or a column."""
    if base is None or isinstance(base, NoBaseValue):
        return None
    values = as_floats(base, "base_values")
    flat = values.reshape(-1) if values.size in (1, n_points) else None
    if flat is None or not np.isfinite(flat).all():
        raise InvalidInput(
            f"base_values: expected one finite number, or one for each of {n_points} "
            f"rows, got an array of shape {values.shape}"
        )
    return np.array(np.broadcast_to(flat, (n_points,)))
