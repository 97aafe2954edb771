"""Attributions from anywhere: tables, files, other packages, lists of pairs.

Each is converted to attributions W (N, D), in the order of the explained rows and
columns; their base, if available; their units; and their source in words. Names are
aligned or refused. One of several classes must be selected; nothing is guessed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Final,
    NoReturn,
    TypeAlias,
    final,
)

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import as_array, as_floats, read_array, read_only
from propopt.base.errors import InvalidInput
from propopt.base.files import unescape_cell
from propopt.base.text import Quantity
from propopt.tables.arrow import ArrowTable
from propopt.tables.arrow_files import is_arrow
from propopt.tables.frames import (
    NO_NAMES,
    Frame,
    Labels,
    as_frame,
    listed,
    orders_of,
    plain_numbers,
    refuse_repeated,
)


AttributionsLike: TypeAlias = Any
"""Attributions in any form that :func:`read_attributions` accepts."""

_BASES: Final = (
    "base_value",
    "base_values",
    "expected_value",
    "expected_values",
    "bias",
    "Bias",
    "BIAS",
)
"""Names of a column with base values, unless a feature has the name."""

IMPORTED_FILES: Final = "a .csv, .npz or .parquet file"
"""Files with attributions, in words; Arrow and Feather files are read too."""


class ExplanationFields:
    """The fields of an :class:`propopt.results.Explanation` that are used here."""

    attributions: Attributions
    contributions: Array | None
    base_value: Array | None
    labels: Labels
    units: Any
    quantity: Quantity | None
    method: str

    @property
    def units_in_words(self) -> str:
        """The units of the attributions in words."""
        raise NotImplementedError


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ImportedAttributions:
    """Imported attributions, in the order of the explained rows and columns."""

    values: Attributions  # W (N, D)
    labels: Labels = NO_NAMES
    base: Array | None = None  # (N,): base values; None if unavailable
    source: str  # in words, such as "a table, by names"
    units: Any = None  # None if unavailable
    quantity: Quantity | None = None
    # (N, D): the exact contributions of an optimized explanation
    exact: Attributions | None = None
    explanation: ExplanationFields | None = None  # the explanation itself


def read_attributions(
    carrier: AttributionsLike,
    label: str,
    names: Labels = NO_NAMES,
    shape: tuple[int, int] | None = None,
    *,
    table_name: str = "X",
    position: int | None = None,
    n_outputs: int | None = None,
    saved: Callable[[Path], ExplanationFields] | None = None,
) -> ImportedAttributions:
    """Read attributions from an array, a table, a file or another package.

    ============================== ===================================================
    array or DataFrame (N, D)      unchanged; a column ``base_value`` is the base
    array (N, D + 1)               the last column is the base, as ``pred_contrib`` has
    array (N, D, K), or K arrays   one class is selected; also (N, K, D + 1) and
                                   (N, K (D + 1)), each class with its base
    ``shap.Explanation``           with its base values, and its axis of classes
    ``propopt.results.Explanation``        with its base; also an audit, which has one
    a tensor, of torch or captum   its numbers, detached
    a path of ``.csv``             a header of names; a first column without a name has
                                   names of rows, as ``DataFrame.to_csv`` writes
    a path of ``.parquet``         the same columns; an index of pandas has names of
                                   rows; also ``.feather``, ``.arrow`` and folders
    a path of ``.npz``             a saved explanation
    a list of N LIME explanations, ``(name, weight)`` each; a name may be a condition
    or of their lists of pairs     such as ``1 < Age <= 4``; 0 without a pair
    ============================== ===================================================

    Parameters
    ----------
    carrier : see above
        The attributions.
    label : str
        Their name in messages.
    names : Labels, optional
        The names of the explained rows and columns, which give the order. By default
        those of the attributions.
    shape : (int, int), optional
        N and D. Without it no column is taken as a base, and no axis as classes.
    table_name : str
        The name of the table with these names in messages.
    position : int, optional
        The index of the explained class, if there are several.
    n_outputs : int, optional
        The number K of classes, which tells (N, D, K) from (N, K, D + 1).
    saved : callable, optional
        Loads a saved explanation from its path.

    Returns
    -------
    ImportedAttributions
        Its shape may differ from N and D; callers check it.

    Raises
    ------
    InvalidInput
        If it has none of these forms, or other names than the table.

    Examples
    --------
    >>> from propopt.tables.frames import Labels
    >>> names = Labels(features=("Age", "Income"))
    >>> pairs = [[("1 < Age <= 4", 0.5), ("Income > 9", -0.25)]]
    >>> read_attributions(pairs, "W", names, (1, 2)).values
    array([[ 0.5 , -0.25]])
    """
    reader = _Reader(label, names, shape, table_name, position, n_outputs, saved)
    return reader.read(carrier)


def aligned(
    carrier: object, names: Labels, label: str, table_name: str
) -> Attributions:
    """Read attributions W (N, D) in any form, in the order of ``names``."""
    return read_attributions(carrier, label, names, table_name=table_name).values


def is_shap(carrier: Any) -> bool:
    """Whether it has the attributes of a ``shap.Explanation``; shap is not imported."""
    if isinstance(carrier, pd.DataFrame):  # columns are attributes too
        return False
    return hasattr(carrier, "values") and hasattr(carrier, "feature_names")


def is_tensor(carrier: Any) -> bool:
    """Whether it has the methods of a tensor of torch; torch is not imported."""
    return hasattr(carrier, "detach") and hasattr(carrier, "cpu")


def _is_lime(row: Any) -> bool:
    """Whether it is an explanation of the package lime, which is not imported."""
    return all(hasattr(row, name) for name in ("intercept", "as_map", "as_list"))


@final
@dataclass(frozen=True, eq=False)
class _Reader:
    """The explained table, as far as it is available, and a method for each form."""

    label: str
    names: Labels
    shape: tuple[int, int] | None
    table_name: str
    position: int | None
    n_outputs: int | None
    saved: Callable[[Path], ExplanationFields] | None

    def read(self, carrier: Any) -> ImportedAttributions:
        """Read attributions in any form."""
        if isinstance(carrier, np.ndarray):
            return self._array(carrier)
        if isinstance(carrier, str | Path):
            return self._file(Path(carrier))
        frame = as_frame(carrier, self.label)
        if frame is not None:
            return self._frame(frame)
        carrier = getattr(carrier, "explanation", carrier)  # an audit has one
        if isinstance(carrier, ExplanationFields):
            return self._explanation(carrier)
        if is_shap(carrier):
            return self._shap(carrier)
        if is_tensor(carrier):  # it may have a gradient
            result = self._array(as_array(carrier.detach().cpu(), self.label))
            return replace(result, source=result.source.replace("an array", "a tensor"))
        if isinstance(carrier, list | tuple) and carrier:
            has_columns = self.shape is not None or self.names.features is not None
            if has_columns and all(map(_is_row_of_pairs, carrier)):
                return self._pairs(carrier)
            if self.shape is not None and all(np.ndim(one) == 2 for one in carrier):
                classes = [as_floats(one, self.label) for one in carrier]
                carrier = np.stack(classes, axis=2)
        return self._array(carrier)

    def _refuse(self, words: str) -> NoReturn:
        raise InvalidInput(f"{self.label}: {words}")

    def _in_order(
        self, W: Attributions, base: Array | None, labels: Labels, source: str
    ) -> ImportedAttributions:
        """Put rows and columns in the order of the explained table."""
        rows, columns = orders_of(labels, self.names, self.label, self.table_name)
        if not (isinstance(rows, slice) and isinstance(columns, slice)):
            W = read_only(W[:, columns][rows])
            base = None if base is None else base[rows]
        return ImportedAttributions(values=W, labels=labels, base=base, source=source)

    # ---- arrays and tables

    def _array(self, values: Any) -> ImportedAttributions:
        """Numbers by position, perhaps with the bias column of boosters at the end."""
        source = "an array, by position"
        base = None
        if self.shape is None:
            W = read_array(values, self.label, ndim=2)
            return ImportedAttributions(values=W, source=source)
        array = as_floats(values, self.label)
        N, D = self.shape
        if array.ndim == 2 and array.shape[1] > D + 1 and array.shape[1] % (D + 1) == 0:
            array = array.reshape(len(array), -1, D + 1)  # classes after each other
            array = array.transpose(0, 2, 1)
        elif array.shape[1:] == (D, D + 1) and self.n_outputs not in (D, D + 1):
            self._refuse(
                f"shape {array.shape} has its outputs on the second axis or on the "
                f"last; select one, as in {self.label}[:, 1] or {self.label}[..., 1]"
            )
        elif array.ndim == 3 and array.shape[2] == D + 1 != self.n_outputs:
            array = array.transpose(0, 2, 1)  # (N, K, D + 1)
        if array.ndim == 3:
            source += self._which(array.shape[2])
            array = self._of_class(array)
        array = read_array(array, self.label, ndim=2)
        if array.shape == (N, D + 1):
            base = np.array(array[:, D])
            array = array[:, :D]
            source += "; the last column is the base"
        return ImportedAttributions(values=array, base=base, source=source)

    def _which(self, count: int) -> str:
        """The selected output in words; empty if there is one."""
        return "" if count == 1 else f"; output {self.position} of 0 to {count - 1}"

    def _of_class(self, values: Array) -> Array:
        """Select one of K outputs (N, D, K)."""
        count = values.shape[2]
        if count == 1:
            return values[..., 0]
        if self.position is None or self.position >= count:
            self._refuse(
                f"there are {count} outputs, and the explained one is unknown; select "
                f"one, as in {self.label}[..., 1]"
            )
        return values[..., self.position]

    def _frame(self, frame: Frame) -> ImportedAttributions:
        """A table with names; one column may be the base, and one the names of rows."""
        table = frame.table
        named = frame.named_rows
        names = self.names
        base = None
        source = "a table, by names"
        if self.shape is not None:
            features = {*(names.features or ()), *map(str, names.columns or ())}
            if len(table.columns) and str(table.columns[0]) == _UNNAMED not in features:
                table = table.set_index(table.columns[0])
                named = True
                table.index.name = None
            columns = {*map(str, table.columns)}
            counted = [*map(str, range(table.shape[1]))]
            if [*map(str, table.columns)] == counted and not features & columns:
                return self._array(plain_numbers(table))  # an array without names
            bases = [c for c in table if str(c) in _BASES and str(c) not in features]
            if len(bases) > 1:
                self._refuse(
                    f"{listed(bases)} are both columns of a base; leave one out"
                )
            base = base_values_of(table[bases[0]], len(table)) if bases else None
            named = named and not _counts(table, names)
            frame = Frame(table.drop(columns=bases), frame.kind, named)
        W = read_array(plain_numbers(frame.table), self.label, ndim=2)
        return self._in_order(W, base, frame.labels, source)

    # ---- explanations of propopt, shap and lime

    def _explanation(self, best: ExplanationFields) -> ImportedAttributions:
        source = f"explanation of propopt, {best.method}"
        result = self._in_order(best.attributions, best.base_value, best.labels, source)
        result = replace(
            result, units=best.units, quantity=best.quantity, explanation=best
        )
        if best.method != "optimized" or best.contributions is None:
            return result
        exact = self._in_order(best.contributions, None, best.labels, source)
        return replace(result, exact=exact.values)

    def _shap(self, explanation: Any) -> ImportedAttributions:
        """The values, base values and names of a ``shap.Explanation``."""
        if np.ndim(explanation.values) == 3 and self.position is None:
            self._refuse(
                "expected the values of one output, got the shape "
                f"{np.shape(explanation.values)}; select one, as in explanation[..., 1]"
            )
        values = as_floats(explanation.values, self.label)
        bases = getattr(explanation, "base_values", None)
        source = "shap.Explanation"
        if values.ndim == 3:
            count = values.shape[2]
            if bases is not None and np.shape(bases)[-1:] == (count,) and count > 1:
                bases = np.asarray(bases)[..., self.position]
            source += self._which(count)
            values = self._of_class(values)
        W = read_array(values, self.label, ndim=2)
        names = explanation.feature_names
        features = None if names is None else tuple(map(str, names))
        if features is not None and len(features) != W.shape[1]:
            self._refuse(
                f"expected a name for each of {W.shape[1]} features, got "
                f"{len(features)}"
            )
        base = base_values_of(bases, len(W))
        result = self._in_order(W, base, Labels(features=features), source)
        return replace(result, units="output")

    def _pairs(self, rows: Sequence[Any]) -> ImportedAttributions:
        """Lists of names or conditions with weights; LIME's have local intercepts."""
        D = len(self.names.features or ()) if self.shape is None else self.shape[1]
        names = self.names.feature_names(D)
        W = np.zeros((len(rows), D))
        bases = []
        for n, row in enumerate(rows):
            pairs: Any = row
            if _is_lime(row):
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
        """The column of a name or a condition; refused if it is ambiguous."""
        if condition in names:
            return names.index(condition)
        inside = [
            name
            for name in names
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", condition)
        ]
        # without names inside of others, such as "Use" in "Frequency of use"
        longest = [
            name
            for name in inside
            if not any(name != other and name in other for other in inside)
        ]
        if len(longest) != 1:
            columns = listed(longest) if longest else "no column of X"
            self._refuse(
                f"row {n}: {condition!r} names {columns}; give the explanations of "
                "lime themselves, or pairs with names of columns"
            )
        return names.index(longest[0])

    # ---- files: CSV with a header, Parquet, saved explanations

    def _file(self, path: Path) -> ImportedAttributions:
        if not (path.is_file() or path.is_dir()):
            self._refuse(f"there is no file {path}")
        kind = path.suffix.lower()
        if kind == ".csv" or is_arrow(path):
            table, named = self._csv(path) if kind == ".csv" else _parquet(path)
            text = [c for c in table if not pd.api.types.is_numeric_dtype(table[c])]
            if text and len(table):  # the first line of any file may be a single name
                name = (
                    f"column {text[0]!r}" if table.shape[1] > 1 else "its only column"
                )
                self._refuse(
                    f"{path.name}: {name} holds text, and attributions are numbers"
                )
            points = self.names.points
            counted = points is None or [*points] == [*range(len(points))]
            if named and counted and {*table.index} != {*range(len(table))}:
                named = False  # the rows of X have no such names
            result = self._frame(Frame(table, named_rows=named))
            source = result.source
            for words in ("a table, by names", "an array, by position"):
                source = source.replace(words, path.name)
            return replace(result, source=source)
        if kind == ".npz":
            if self.saved is None:
                self._refuse(
                    f"{path.name} is a saved result; give "
                    f"po.results.Explanation.load({path.name!r})"
                )
            return replace(self._explanation(self.saved(path)), source=path.name)
        raise InvalidInput(
            f"{self.label}: expected {IMPORTED_FILES}, got {path.name}; "
            "DataFrame.to_csv and DataFrame.to_parquet write tables"
        )

    def _csv(self, path: Path) -> tuple[pd.DataFrame, bool]:
        """The table of a file, and whether its first column has names of rows."""
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                header = next(csv.reader(file), [])
            index = 0 if header and not header[0].strip() else None
            table = pd.read_csv(path, encoding="utf-8-sig", index_col=index)
        except (ValueError, OSError, csv.Error) as error:
            raise InvalidInput(
                f"{self.label}: {path} is no CSV table: {error}"
            ) from None
        refuse_repeated(header, f"{self.label}: {path.name}")
        if index == 0:
            table = table.rename(
                lambda x: unescape_cell(x) if isinstance(x, str) else x
            )
        return table.rename(columns=unescape_cell), index == 0


def _parquet(path: Path) -> tuple[pd.DataFrame, bool]:
    """The table of a Parquet or Feather file, and whether its rows have names."""
    source = ArrowTable.of(path)
    table = source.read()
    index = source.files.index
    if index:
        table.index = pd.Index(source.read(index)[index[0]])
    return table, bool(index)


_UNNAMED: Final = "Unnamed: 0"
"""The name that pandas gives to an index that was read as a column."""


def _counts(table: pd.DataFrame, labels: Labels) -> bool:
    """Whether the index only counts rows, and X has other names of rows."""
    counted = list(range(len(table)))
    others = labels.points is None or set(labels.points) != set(counted)
    return others and table.index.tolist() == counted


def _is_row_of_pairs(row: Any) -> bool:
    """Whether it is a LIME explanation, or a list of its pairs."""
    return _is_lime(row) or (
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


# ---- Base values


@final
class NoBaseValue:
    """The base value of slopes: refuses to be added, since slopes have no base."""

    def __repr__(self) -> str:
        return "None: slopes add up to no output"

    def _refused(self, *_: object, **_named: object) -> NoReturn:
        raise InvalidInput(
            "base_values: slopes do not add up to an output, so they have no waterfall "
            "plot; contributions do, po.explain(model, X, data=X, "
            "kind='contributions').to_shap()"
        )

    __float__ = _refused
    __array__ = _refused
    __getitem__ = _refused
    __format__: Any = _refused
    __add__ = _refused
    __radd__ = _refused

    shape: ClassVar[tuple[()]] = ()


def base_values_of(base: object, n_points: int) -> Array | None:
    """Base values (n_points,) from one number or one for each row, or None."""
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
