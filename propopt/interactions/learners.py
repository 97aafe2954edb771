"""Learners whose parameters speak of columns, and their targets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from propopt.base.arrays import Values
from propopt.base.checks import read_array, refuse_overflow, refuse_underflow
from propopt.base.errors import InvalidInput
from propopt.tables.frames import listed


# ---- Parameters of learners that speak of columns, when some of these are left out


def read_target(
    y: object, n_rows: int, of_classes: bool
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Numbers (N,) and None; of a classifier places of classes, and these (K,)."""
    if not of_classes:
        values = read_regression_target(y, n_rows)
        if n_rows > 1 and (values == values[0]).all():
            raise InvalidInput(
                f"y: all {n_rows} values are {values[0]:g}, so that there is nothing "
                "that features could explain"
            )
        return values, None
    labels = _one_column(y, n_rows)
    kinds = sorted({type(label).__name__ for label in labels.tolist()})
    if len(kinds) > 1 and "str" in kinds:
        raise InvalidInput(
            f"y: expected labels of one type, got {listed(kinds)}; make all of them "
            "text by astype(str)"
        )
    if "bytes" in kinds:
        raise InvalidInput("y: expected numbers or text, got bytes; decode them")
    kind = type_of_target(labels, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise InvalidInput(
            f"y: Unknown label type: {kind}; a classifier needs classes, such as "
            "integers or text, and for numbers there are regressors"
        )
    classes, indices = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInput(
            f"y: expected two classes or more, got 1 class, {listed(classes.tolist())}"
        )
    return indices, classes


def read_regression_target(y: object, n_rows: int) -> Values:
    """The target of a regressor, (N,)."""
    column = _one_column(y, n_rows)
    if column.dtype.kind in "OUST":
        _refuse_text(column)
    values = read_array(column, "y", ndim=1)
    refuse_overflow(values, "y")
    refuse_underflow(float(np.abs(values).max(initial=0.0)), "y")
    return values


def _refuse_text(column: NDArray[Any]) -> None:
    """Of a regressor, text that is no number."""
    for own in column.tolist():
        try:
            float(own)
        except ValueError:
            raise InvalidInput(
                f"y: expected numbers for a regressor, got {own!r}; of classes take a "
                "classifier"
            ) from None
        except TypeError:
            return  # of other things the next check tells


def class_indices(y: object, classes: NDArray[Any], n_rows: int) -> NDArray[np.intp]:
    """The places of labels of other rows among known classes, (n,)."""
    labels = _one_column(y, n_rows)
    known = np.isin(labels, classes)
    if not known.all():
        new = np.unique(labels[~known]).tolist()
        raise InvalidInput(
            f"y: {listed(new)}: not among the classes of fit, "
            f"{listed(classes.tolist())}"
        )
    return np.searchsorted(classes, labels)


def read_sample_weight(weights: object, n_rows: int) -> Values | None:
    """Weights of rows, (N,), two or more above zero; None where there are none."""
    if weights is None:
        return None
    read = read_array(weights, "sample_weight", ndim=1)
    if len(read) != n_rows:
        raise InvalidInput(
            f"sample_weight: expected one for each of {n_rows} rows, got {len(read)}"
        )
    if (read < 0).any():
        raise InvalidInput(
            f"sample_weight: expected numbers >= 0, got {read[read < 0][0]:g}"
        )
    n_counted = np.count_nonzero(read)
    if n_counted < 2:
        some = "all but one" if n_counted else "all"
        raise InvalidInput(
            f"sample_weight: {some} are zero; two rows at least have to count"
        )
    return read


def _one_column(y: object, n_rows: int) -> NDArray[Any]:
    if y is None:
        raise InvalidInput(
            "y: this estimator requires y to be passed, but the target y is None"
        )
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] != 1:
        raise InvalidInput(
            f"y: expected one target, got {values.shape[1]} columns; fit once for each"
        )
    if values.ndim not in (1, 2):
        raise InvalidInput(f"y: expected one dimension, got shape {values.shape}")
    column: NDArray[Any] = column_or_1d(values, warn=True)
    if len(column) != n_rows:
        raise InvalidInput(
            f"y: expected one value for each of the {n_rows} rows of X, got "
            f"{len(column)}"
        )
    missing = np.asarray(pd.isna(column))
    if missing.any():
        raise InvalidInput(
            f"y: Input y contains NaN: {int(missing.sum())} of {n_rows} values are "
            f"missing, the first in row {int(missing.argmax())}; leave these rows out"
        )
    return column


# ---- Columns of a table of which some are left out, and what speaks of them


ColumnChoice: TypeAlias = Any
"""As scikit-learn has it: a name or number, a slice, or a list or mask of many."""


@final
@dataclass(frozen=True, eq=False)
class SomeColumns:
    """The D columns that an estimator was written for, and which of them it sees."""

    names: tuple[Hashable, ...] | None  # (D,): none of an array
    kept: NDArray[np.bool_]  # (D,): which are left
    # those that are left, where it is known: callables choose from it
    table: Any = None
    counted: bool = True  # whether numbers mean these columns

    @cached_property
    def dropped(self) -> frozenset[Hashable]:
        """The names of columns that are not there."""
        if self.names is None:
            return frozenset()
        pairs = zip(self.names, self.kept, strict=True)
        return frozenset(name for name, keep in pairs if not keep)

    def beyond(self) -> SomeColumns:
        """The same behind a step that may make other columns of them."""
        return replace(self, table=None, counted=False)

    def among(self, choice: ColumnChoice) -> SomeColumns:
        """Those of a choice, in its order, as a transformer of them sees them."""
        if callable(choice):
            return self.beyond()
        many = self.listed(choice)
        kept = np.array([self.is_kept(column) for column in many], dtype=bool)
        names = None if self.names is None else tuple(map(self._name, many))
        return SomeColumns(names, kept)

    def listed(self, choice: ColumnChoice) -> list[Any]:
        """A choice of columns as a list of names or numbers."""
        if isinstance(choice, slice):
            return self._sliced(choice)
        if isinstance(choice, str) or not isinstance(choice, _LISTS):
            return [choice]
        many = choice.tolist() if hasattr(choice, "tolist") else list(choice)
        if many and all(isinstance(entry, bool | np.bool_) for entry in many):
            return np.flatnonzero(many).tolist()
        return many

    def is_kept(self, column: Any) -> bool:
        """Whether a column is left; a name that is unknown here is not ours to drop."""
        if isinstance(column, str) or not isinstance(column, int | np.integer):
            return column not in self.dropped
        return bool(self.kept[self._place(int(column))])

    def left_of(self, choice: ColumnChoice) -> ColumnChoice:
        """A choice of columns without those that are left out, or an empty list."""
        if callable(choice):
            return choice if self.table is None or self.members(choice) else []
        many = [
            self.renamed(column)
            for column in self.listed(choice)
            if self.is_kept(column)
        ]
        alone = isinstance(choice, str | int | np.integer)
        return many[0] if alone and many else many

    def members(self, choice: ColumnChoice) -> set[Hashable]:
        """The columns of a choice that are left, each by its name if it has one."""
        if callable(choice):
            return set() if self.table is None else set(choice(self.table))
        return {self._name(own) for own in self.listed(choice) if self.is_kept(own)}

    @property
    def left(self) -> set[Hashable]:
        """All columns that are left, each by its name if it has one."""
        names = range(len(self.kept)) if self.names is None else self.names
        return {name for name, keep in zip(names, self.kept, strict=True) if keep}

    def renamed(self, column: Any) -> Any:
        """A name as it is, a number as its new place."""
        if isinstance(column, str) or not isinstance(column, int | np.integer):
            return column
        return int(np.count_nonzero(self.kept[: self._place(int(column))]))

    def _name(self, column: Any) -> Hashable:
        if not isinstance(column, int | np.integer):
            return column
        place = self._place(int(column))
        return place if self.names is None else self.names[place]

    def _place(self, number: int) -> int:
        if not self.counted:
            raise InvalidInput(
                f"estimator: column {number} is counted behind a step that makes other "
                "columns, so that it is not known which to leave out; name columns, or "
                "choose by dtype"
            )
        if not -len(self.kept) <= number < len(self.kept):
            raise InvalidInput(
                f"estimator: there is no column {number}; there are {len(self.kept)}"
            )
        return number % len(self.kept)

    def _sliced(self, choice: slice) -> list[Any]:
        ends = [choice.start, choice.stop]
        if not any(isinstance(end, str) for end in ends):
            self._place(0)
            return list(range(len(self.kept)))[choice]
        if self.names is None:
            return []
        first, last = (None if e is None else self.names.index(e) for e in ends)
        # as scikit-learn has it, the last name belongs to the slice
        stop = None if last is None else last + 1
        return list(self.names[slice(first, stop, choice.step)])


_LISTS = Sequence, np.ndarray, pd.Index, pd.Series, set, frozenset


Shorten: TypeAlias = Callable[[Any, SomeColumns], Any]
"""From the value of a parameter to what it is without some columns."""


def _columns(value: Any, columns: SomeColumns) -> Any:
    """A list, mask or name of columns."""
    is_bool = (isinstance(own, bool | np.bool_) for own in value)
    if not isinstance(value, str) and all(is_bool):
        return _entries(value, columns)
    return [
        columns.renamed(own) for own in columns.listed(value) if columns.is_kept(own)
    ]


def _entries(value: Any, columns: SomeColumns) -> Any:
    """An entry for each column, or a mapping from some of them."""
    if isinstance(value, Mapping):
        return {
            columns.renamed(key): entry
            for key, entry in value.items()
            if columns.is_kept(key)
        }
    if len(value) != len(columns.kept) or not columns.counted:
        raise InvalidInput(
            f"estimator: expected an entry for each of {len(columns.kept)} columns, "
            f"got {len(value)}, so that it is not known which to leave out"
        )
    if isinstance(value, np.ndarray):
        return value[columns.kept]
    left = [entry for entry, keep in zip(value, columns.kept, strict=True) if keep]
    return tuple(left) if isinstance(value, tuple) else left


def _sets(value: Any, columns: SomeColumns) -> Any:
    """Sets of columns that may interact; those of one column alone are of no use."""
    left = [_columns(list(own), columns) for own in value]
    return [
        type(own)(rest) for own, rest in zip(value, left, strict=True) if rest
    ] or None


SHORTEN: Final[Mapping[str, Shorten]] = {
    "cat_features": _columns,
    "categorical_feature": _columns,
    "categorical_features": _columns,
    "cols": _columns,
    "embedding_features": _columns,
    "ignored_features": _columns,
    "text_features": _columns,
    "variables": _columns,
    "categories": _entries,
    "drop": _entries,
    "feature_types": _entries,
    "feature_weights": _entries,
    "length_scale": _entries,
    "monotone_constraints": _entries,
    "monotonic_cst": _entries,
    "interaction_constraints": _sets,
    "interaction_cst": _sets,
}
"""By parameter: of scikit-learn, LightGBM, XGBoost, CatBoost, of encoders."""

OWN_WORDS: Final = frozenset(
    ["auto", "from_dtype", "first", "if_binary", "pairwise", "no_interactions"]
)
"""Values of these that speak of no column."""


def speaks_of_columns(name: str, value: Any) -> bool:
    """Whether a parameter names or counts columns."""
    if name not in SHORTEN or value is None or np.isscalar(value):
        return isinstance(value, str) and name in SHORTEN and value not in OWN_WORDS
    return len(value) > 0


def parameter_without(name: str, value: Any, columns: SomeColumns) -> Any:
    """What a parameter is without the columns that are left out."""
    if isinstance(value, str):
        raise InvalidInput(
            f"estimator: {name}={value!r} speaks of columns in the learner's own "
            "words, and columns are left out; give a list or a mapping"
        )
    try:
        return SHORTEN[name](value, columns)
    except InvalidInput as error:
        raise InvalidInput(f"{error} ({name})") from None


def refuse_unknown(name: str, value: Any, columns: SomeColumns) -> None:
    """Refuse a list of columns in a parameter that we do not know."""
    if not isinstance(value, list | tuple | set | frozenset | dict) or not value:
        return
    if columns.names is None or not all(isinstance(own, str) for own in value):
        return
    if set(value) <= set(columns.names) and not columns.dropped.isdisjoint(value):
        raise InvalidInput(
            f"estimator: {name} names the columns {listed(list(value))}, and how it is "
            "written without one of them is not known; choose columns by dtype, or by "
            "a ColumnTransformer"
        )
