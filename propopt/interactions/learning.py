"""Learners that are fitted without some columns, and their tables and targets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from itertools import chain
from numbers import Number
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import OneToOneFeatureMixin, clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_array
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from propopt.base.arrays import Array, Values
from propopt.base.checks import (
    as_array,
    read_array,
    refuse_overflow,
    refuse_sparse,
    refuse_underflow,
)
from propopt.base.errors import InvalidInput, PropoptError, WrongType
from propopt.structures.kinds import fitted_value, has_method, is_passthrough
from propopt.tables.frames import (
    as_frame,
    column_names,
    listed,
    select_columns,
    select_rows,
)


# ---- The table and the target that a learner is fitted to


def read_learning_table(X: Any) -> tuple[Any, tuple[Hashable, ...]]:
    """A validated table with its dtypes and missing values, and names of its columns.

    A table that is not a DataFrame becomes an array with columns 0, 1, ...
    """
    refuse_sparse(X, "X")
    names = column_names(X)
    table = as_array(X, "X") if names is None else X
    shape = tuple(table.shape)
    if len(shape) != 2:
        raise InvalidInput(
            f"X: Expected 2D array, got shape {shape}; Reshape your data, a row for "
            "each point"
        )
    if shape[0] == 0:
        raise InvalidInput(f"X: 0 sample(s) (shape={shape}) while some are required.")
    if shape[1] == 0:
        raise InvalidInput(
            f"X: 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )
    if names is None:
        if table.dtype.kind == "c":
            raise InvalidInput("X: Complex data not supported; give real numbers")
        return table, tuple(range(shape[1]))
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InvalidInput(f"X: columns appear more than once: {listed(twice)}")
    return table, names


def table_part(
    table: Any, rows: NDArray[np.intp] | None, columns: NDArray[np.intp]
) -> Any:
    """Some rows, or all, and some columns of a table, in its type.

    Without columns it is an array (n, 0), as polars would lose the rows.
    """
    if not len(columns):
        return np.empty((table.shape[0] if rows is None else len(rows), 0))
    if isinstance(table, np.ndarray):
        return table[:, columns] if rows is None else table[rows[:, None], columns]
    part = select_columns(table, columns.tolist())
    return part if rows is None else select_rows(part, rows.tolist())


def read_target(
    y: object, n_rows: int, of_classes: bool
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Numbers (N,) and None; for a classifier indices of classes, and labels (K,)."""
    if not of_classes:
        values = read_regression_target(y, n_rows)
        if n_rows > 1 and (values == values[0]).all():
            raise InvalidInput(
                f"y: all {n_rows} values are {values[0]:g}; expected at least two "
                "different values"
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
    """The validated target (N,) of a regressor."""
    column = _one_column(y, n_rows)
    if column.dtype.kind in "OUST":
        _refuse_text(column)
    values = read_array(column, "y", ndim=1)
    refuse_overflow(values, "y")
    refuse_underflow(float(np.abs(values).max(initial=0.0)), "y")
    return values


def _refuse_text(column: NDArray[Any]) -> None:
    """Refuse a target of a regressor that is text."""
    for value in column.tolist():
        try:
            float(value)
        except ValueError:
            raise InvalidInput(
                f"y: expected numbers for a regressor, got {value!r}; for classes "
                "take a classifier"
            ) from None
        except TypeError:
            return  # the next check refuses other types


def class_indices(y: object, classes: NDArray[Any], n_rows: int) -> NDArray[np.intp]:
    """Indices (n,) of labels of new rows among the classes of fit."""
    labels = _one_column(y, n_rows)
    in_fit = np.isin(labels, classes)
    if not in_fit.all():
        unseen = np.unique(labels[~in_fit]).tolist()
        raise InvalidInput(
            f"y: {listed(unseen)}: not among the classes of fit, "
            f"{listed(classes.tolist())}"
        )
    return np.searchsorted(classes, labels)


def read_sample_weight(weights: object, n_rows: int) -> Values | None:
    """Validated weights of rows (N,), at least two positive; None without weights."""
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
            f"sample_weight: {some} are zero; at least two rows need a positive weight"
        )
    return read


def _one_column(y: object, n_rows: int) -> NDArray[Any]:
    if y is None:
        raise InvalidInput(
            "y: this estimator requires y to be passed, but the target y is None"
        )
    values = as_array(y, "y")
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


# ---- Columns of which some are left out, and parameters that refer to columns


ColumnChoice: TypeAlias = Any
"""Columns as in ColumnTransformer: a name, number, slice, list, mask or callable."""


@final
@dataclass(frozen=True, eq=False)
class ColumnSubset:
    """The D columns that an estimator was written for, and those that remain."""

    names: tuple[Hashable, ...] | None  # (D,): None for an array
    mask: NDArray[np.bool_]  # (D,): whether a column remains
    # the remaining columns if available: callables choose from it
    table: Any = None
    counted: bool = True  # whether integers are positions of these columns

    @cached_property
    def dropped(self) -> frozenset[Hashable]:
        """The columns that are left out, by name or position."""
        return frozenset(self._all) - self.remaining

    @cached_property
    def remaining(self) -> frozenset[Hashable]:
        """The columns that remain, by name or position."""
        pairs = zip(self._all, self.mask, strict=True)
        return frozenset(name for name, is_left in pairs if is_left)

    @property
    def _all(self) -> Sequence[Hashable]:
        return range(len(self.mask)) if self.names is None else self.names

    def after_step(self) -> ColumnSubset:
        """The same columns after a step that may replace them."""
        return replace(self, table=None, counted=False)

    def select(self, choice: ColumnChoice) -> ColumnSubset:
        """The columns of a choice, in its order, as its transformer sees them."""
        if callable(choice):
            return self.after_step()
        many = self.listed(choice)
        mask = np.array([self.includes(column) for column in many], dtype=bool)
        names = None if self.names is None else tuple(map(self._name, many))
        return ColumnSubset(names, mask)

    def listed(self, choice: ColumnChoice) -> list[Any]:
        """A choice of columns as a list of names or positions."""
        if isinstance(choice, slice):
            return self._sliced(choice)
        if isinstance(choice, str) or not isinstance(choice, _LISTS):
            return [choice]
        if isinstance(choice, np.ndarray | pd.Index | pd.Series):
            many = choice.tolist()
        else:
            many = list(choice)
        if many and all(isinstance(entry, bool | np.bool_) for entry in many):
            return np.flatnonzero(many).tolist()
        return many

    def includes(self, column: Any) -> bool:
        """Whether a column remains; unknown names count as remaining."""
        return self._name(column) not in self.dropped

    def shortened(self, choice: ColumnChoice) -> ColumnChoice:
        """A choice without the columns that are left out; it may be an empty list."""
        if callable(choice):
            return choice if self.table is None or self.members(choice) else []
        many = self.remaining_in(choice)
        alone = isinstance(choice, str | int | np.integer)
        return many[0] if alone and many else many

    def remaining_in(self, choice: ColumnChoice) -> list[Any]:
        """The remaining columns of a choice, with positions renumbered."""
        return [
            self.relabelled(column)
            for column in self.listed(choice)
            if self.includes(column)
        ]

    def members(self, choice: ColumnChoice) -> set[Hashable]:
        """The remaining columns of a choice, by name or original position."""
        if callable(choice):
            return set() if self.table is None else set(choice(self.table))
        return {
            self._name(column)
            for column in self.listed(choice)
            if self.includes(column)
        }

    def lists_missing(self, value: Any) -> bool:
        """Whether a list has names of columns, one of which is left out."""
        if self.names is None or not isinstance(value, _NAMING):
            return False
        named = all(isinstance(column, str) for column in value)
        are_columns = named and set(value) <= set(self.names)
        return are_columns and not self.dropped.isdisjoint(value)

    def relabelled(self, column: Any) -> Any:
        """The name of a column, or its position among the remaining columns."""
        if not isinstance(column, int | np.integer):
            return column
        return int(np.count_nonzero(self.mask[: self._position(int(column))]))

    def _name(self, column: Any) -> Hashable:
        if not isinstance(column, int | np.integer):
            return column
        return self._all[self._position(int(column))]

    def _position(self, number: int) -> int:
        if not self.counted:
            raise InvalidInput(
                f"estimator: column {number} is selected by position after a step "
                "that may change the columns; select columns by name or dtype instead"
            )
        if not -len(self.mask) <= number < len(self.mask):
            raise InvalidInput(
                f"estimator: there is no column {number}; there are {len(self.mask)}"
            )
        return number % len(self.mask)

    def _sliced(self, choice: slice) -> list[Any]:
        ends = [choice.start, choice.stop]
        if not any(isinstance(end, str) for end in ends):
            self._position(0)
            return list(range(len(self.mask)))[choice]
        if self.names is None:
            return []
        first, last = (None if e is None else self.names.index(e) for e in ends)
        # as in scikit-learn, a slice includes its last name
        stop = None if last is None else last + 1
        return list(self.names[slice(first, stop, choice.step)])


_NAMING = list, tuple, set, frozenset, dict
_LISTS = Sequence, np.ndarray, pd.Index, pd.Series, set, frozenset


Shorten: TypeAlias = Callable[[Any, ColumnSubset], Any]
"""From the value of a parameter to its value without some columns."""


def _columns(value: Any, columns: ColumnSubset) -> Any:
    """Shorten a list, mask or name of columns."""
    is_bool = (isinstance(entry, bool | np.bool_) for entry in value)
    if not isinstance(value, str) and all(is_bool):
        return _entries(value, columns)
    return columns.remaining_in(value)


def _entries(value: Any, columns: ColumnSubset) -> Any:
    """Shorten a list with an entry for each column, or a mapping from columns."""
    if isinstance(value, Mapping):
        return {
            columns.relabelled(key): entry
            for key, entry in value.items()
            if columns.includes(key)
        }
    if len(value) != len(columns.mask) or not columns.counted:
        raise InvalidInput(
            "estimator: a parameter with one entry per column needs "
            f"{len(columns.mask)} entries, got {len(value)}"
        )
    if isinstance(value, np.ndarray):
        return value[columns.mask]
    left = [
        entry for entry, is_left in zip(value, columns.mask, strict=True) if is_left
    ]
    return tuple(left) if isinstance(value, tuple) else left


def _sets(value: Any, columns: ColumnSubset) -> Any:
    """Shorten sets of columns that may interact."""
    shortened_sets = [_columns(list(members), columns) for members in value]
    return [
        type(members)(rest)
        for members, rest in zip(value, shortened_sets, strict=True)
        if rest
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
"""By parameter of scikit-learn, LightGBM, XGBoost, CatBoost and of encoders."""

SPECIAL_VALUES: Final = frozenset(
    ["auto", "from_dtype", "first", "if_binary", "pairwise", "no_interactions"]
)
"""Values of these parameters that refer to no column."""


def refers_to_columns(name: str, value: Any) -> bool:
    """Whether a parameter refers to columns by name or position."""
    if name not in SHORTEN or value is None or np.isscalar(value):
        return (
            isinstance(value, str) and name in SHORTEN and value not in SPECIAL_VALUES
        )
    return len(value) > 0


# ---- Estimators and pipelines that name columns, adapted to fewer columns


_SAME_COLUMNS: Final = OneToOneFeatureMixin, SimpleImputer, KNNImputer
"""Steps that preserve the number and order of columns."""

_CONSTANT: Final = DummyClassifier, DummyRegressor

_OF_OTHERS: Final = frozenset(["final_estimator", "transformer"])
"""Inner estimators that do not see the columns of the table."""


def mentions_columns(estimator: Any) -> bool:
    """Whether an estimator, or one within it, refers to columns of its table."""
    if isinstance(estimator, ColumnTransformer):
        return True
    plain, parts = _parameters(estimator)
    if any(refers_to_columns(*item) for item in plain.items()):
        return True
    listed_parts = (
        [item[1] for item in part] if isinstance(part, list) else [part]
        for part in parts.values()
    )  # unfitted ensembles have no truth value
    return any(map(mentions_columns, filter(_is_estimator, chain(*listed_parts))))


def restricted(estimator: Any, columns: ColumnSubset) -> Any | None:
    """An estimator for a table without some columns; None if no column remains.

    The columns are removed from each ``ColumnTransformer`` and from the parameters in
    :data:`SHORTEN`. A predictor without columns predicts the mean, or the shares of
    classes.
    """
    match estimator:
        case Pipeline():
            return _pipeline(estimator, columns)
        case ColumnTransformer():
            return _column_transformer(estimator, columns)
        case FeatureUnion():
            return _union(estimator, columns)
        case _:
            return _with_parts(estimator, columns)


def _pipeline(pipeline: Pipeline, columns: ColumnSubset) -> Any | None:
    steps = []
    observed = columns
    for name, step in pipeline.steps:
        if is_passthrough(step):
            steps.append((name, step))
            continue
        part = restricted(step, observed)
        if part is None:
            return _of_nothing(pipeline)
        steps.append((name, part))
        if not isinstance(step, _SAME_COLUMNS):
            observed = observed.after_step()
    return pipeline.set_params(steps=steps)


def _of_nothing(estimator: Any) -> Any | None:
    if is_classifier(estimator):
        return DummyClassifier(strategy="prior")
    return DummyRegressor() if is_regressor(estimator) else None


def _column_transformer(
    estimator: ColumnTransformer, columns: ColumnSubset
) -> ColumnTransformer | None:
    """Shorten the columns; a part without columns stays, as grids may refer to it."""
    parts: list[tuple[str, Any, ColumnChoice]] = []
    for name, transformer, choice in estimator.transformers:
        part = transformer
        remaining = columns.shortened(choice)
        if not isinstance(transformer, str) and not _is_empty(remaining):
            part = restricted(transformer, columns.select(choice))
        parts.append(
            (name, transformer, []) if part is None else (name, part, remaining)
        )
    rest = estimator.remainder
    if not isinstance(rest, str):
        rest = restricted(rest, columns.after_step())
    # without a column that no transformer requests, there is no remainder
    requested = (columns.members(choice) for _, _, choice in estimator.transformers)
    if rest is None or (
        columns.counted and columns.remaining <= set().union(*requested)
    ):
        rest = "drop"
    if _drops(rest) and all(
        _drops(transformer) or _is_empty(remaining)
        for _, transformer, remaining in parts
    ):
        return None
    return estimator.set_params(transformers=parts, remainder=rest)


def _is_empty(choice: ColumnChoice) -> bool:
    return isinstance(choice, list) and not choice


def _drops(part: Any) -> bool:
    return isinstance(part, str) and part == "drop"


def _union(union: FeatureUnion, columns: ColumnSubset) -> FeatureUnion | None:
    parts = [
        (name, part if isinstance(part, str) else restricted(part, columns))
        for name, part in union.transformer_list
    ]
    left = [(name, part) for name, part in parts if part is not None]
    if all(_drops(part) for _, part in left):
        return None
    return union.set_params(transformer_list=left)


def _with_parts(estimator: Any, columns: ColumnSubset) -> Any:
    """Shorten parameters that refer to columns, and inner estimators."""
    changed: dict[str, Any] = {}
    plain, parts = _parameters(estimator)
    for name, value in plain.items():
        if not refers_to_columns(name, value):
            if name not in SHORTEN and columns.lists_missing(value):
                raise InvalidInput(
                    f"estimator: {name} names the columns {listed(list(value))}, so it "
                    "cannot be fitted without one of them; select columns by dtype, "
                    "or by a ColumnTransformer"
                )
        elif isinstance(value, str):
            raise InvalidInput(
                f"estimator: {name}={value!r} refers to columns in a syntax of the "
                "learner, but some columns are left out; give a list or a mapping"
            )
        else:
            try:
                changed[name] = SHORTEN[name](value, columns)
            except InvalidInput as error:
                raise InvalidInput(f"{error} ({name})") from None
    for name, part in parts.items():
        if isinstance(part, list):  # pairs of a name and an estimator
            changed[name] = [
                (
                    key,
                    inner if isinstance(inner, str) else restricted(inner, columns),
                )
                for key, inner in part
            ]
        else:
            changed[name] = restricted(part, columns)
        left = changed[name]
        # without columns for an inner estimator there are none for the outer one
        blind = isinstance(left, _CONSTANT) and not isinstance(part, _CONSTANT)
        if left is None or blind:
            return _of_nothing(estimator)
    return estimator.set_params(**changed) if changed else estimator


def _parameters(estimator: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters that are plain values, and inner estimators that see the columns."""
    plain = dict[str, Any]()
    parts = dict[str, Any]()
    for name, value in estimator.get_params(deep=False).items():
        if not (_is_estimator(value) or _is_list_of_parts(value)):
            plain[name] = value
        elif name not in _OF_OTHERS:
            parts[name] = value
    return plain, parts


def _is_estimator(value: Any) -> bool:
    return has_method(value, "get_params") and not isinstance(value, type)


def _is_list_of_parts(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(item, tuple) and len(item) >= 2 and _is_estimator(item[1])
        for item in value
    )


# ---- Tables of numbers, and learners that use only the numbers


_PLAIN: Final = str, Number, np.ndarray, np.generic, np.random.RandomState


def needs_only_numbers(estimator: Any) -> bool:
    """Whether a learner gives the same results for a DataFrame and its array.

    Functions and estimators of users may depend on column names.
    """
    return is_of_scikit_learn(estimator) and not mentions_columns(estimator)


def is_of_scikit_learn(value: Any) -> bool:
    """Whether a learner and all its parameters are classes of scikit-learn."""
    if value is None or isinstance(value, _PLAIN):
        return True
    if isinstance(value, Mapping):
        return all(map(is_of_scikit_learn, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_of_scikit_learn, value))
    if isinstance(value, FunctionTransformer):  # functions of this package use no names
        return str(getattr(value.func, "__module__", "")).startswith("propopt.")
    if isinstance(value, ColumnTransformer) or not has_method(value, "get_params"):
        return False
    if isinstance(value, type) or not type(value).__module__.startswith("sklearn."):
        return False
    return is_of_scikit_learn(value.get_params(deep=False))


def array_of_numbers(table: Any) -> NDArray[Any] | None:
    """The array of a DataFrame of numbers, if one dtype holds them without loss."""
    frame = as_frame(table, "X")
    if frame is None:
        return None
    dtypes = set(frame.table.dtypes)
    if not all(
        isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes
    ):
        return None
    common = np.result_type(*dtypes)
    if not all(np.can_cast(dtype, common) for dtype in dtypes):
        return None
    numbers = frame.table.to_numpy(dtype=common)
    whole = frame.table.select_dtypes(["int64", "uint64"])
    exact = common.kind != "f" or (whole.abs() <= 2**53).all(axis=None)
    return numbers if exact else None


def array_of(table: Any) -> NDArray[Any]:
    """New rows (n, D) as an array, for a learner fitted to an array."""
    frame = as_frame(table, "X")
    rows = table if frame is None else frame.table
    return np.asarray(check_array(rows, ensure_all_finite=False))


# ---- Copies, seeds and weights of a learner


def unfitted_copy(estimator: Any) -> Any:
    """A clone of an estimator, or a copy if scikit-learn cannot clone it."""
    try:
        return clone(estimator)
    except RuntimeError:  # CatBoost copies list parameters, which clone refuses
        return deepcopy(estimator)


def free_seeds(estimator: Any) -> tuple[str, ...]:
    """Parameters ``random_state`` that are None, of an estimator and inner ones."""
    return tuple(
        name
        for name, value in estimator.get_params().items()
        if value is None and name.split("__")[-1] == "random_state"
    )


def weight_name(estimator: Any) -> str:
    """The parameter of ``fit`` for weights of rows; for a pipeline of its last step."""
    if get_config()["enable_metadata_routing"]:
        return "sample_weight"  # routed by the requests of the user
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_name(last)}"
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    settings = signature(estimator.fit).parameters.values()
    if any(
        setting.kind is setting.VAR_KEYWORD for setting in settings
    ):  # for estimators within
        parts = (
            fitted_value(estimator, setting) for setting in ("estimator", "regressor")
        )
        within = next((part for part in parts if part is not None), None)
        return "sample_weight" if within is None else weight_name(within)
    raise InvalidInput(
        f"sample_weight: {type(estimator).__name__}.fit takes no weights of rows; "
        "leave them out, or choose a learner that takes them"
    )


@contextmanager
def refusing(estimator: Any, method: str) -> Iterator[None]:
    """Turn errors of a learner into errors of this package."""
    try:
        yield
    except PropoptError:
        raise
    except (OverflowError, TypeError, ValueError) as error:
        kind = WrongType if isinstance(error, TypeError) else InvalidInput
        raise kind(
            f"estimator: {type(estimator).__name__}.{method} raises "
            f"{type(error).__name__}: {error}; give X and y that it accepts, such "
            "as numbers, or a pipeline that encodes and imputes first"
        ) from error


def check_estimator_kind(estimator: Any) -> None:
    """Require a regressor, or a classifier with probabilities."""
    if isinstance(estimator, type):
        raise InvalidInput(
            f"estimator: expected an estimator, got a class; {estimator.__name__}() "
            "is one"
        )
    wanted = "a scikit-learn regressor or classifier"
    if not (has_method(estimator, "fit") and has_method(estimator, "get_params")):
        raise InvalidInput(f"estimator: expected {wanted}, got {estimator!r}")
    if is_regressor(estimator):
        return
    name = type(estimator).__name__
    if not is_classifier(estimator):
        raise InvalidInput(
            f"estimator: expected {wanted}, got {name}, whose tag estimator_type "
            "is neither"
        )
    if not has_method(estimator, "predict_proba"):
        raise InvalidInput(
            f"estimator: {name} has no predict_proba, and errors of a classifier need "
            "probabilities; take CalibratedClassifierCV(estimator, ensemble=False)"
        )


# ---- Predictions of a fitted model for tables with all columns


Predictor: TypeAlias = Callable[[Any], Array]
"""From a table with all columns to predictions (n,), or probabilities (n, K)."""


@final
@dataclass(frozen=True, eq=False)
class Prediction:
    """A fitted model that predicts from a table with all columns."""

    model: Any  # fitted
    columns: NDArray[np.intp]  # positions of the columns that it uses
    class_indices: NDArray[np.intp] | None  # its classes among all K
    n_classes: int  # K
    from_array: bool = False  # whether it was fitted to an array

    def __call__(self, table: Any) -> Array:
        part = table_part(table, None, self.columns)
        if self.from_array and not isinstance(part, np.ndarray):
            part = array_of(part)
        if self.class_indices is None:
            with refusing(self.model, "predict"):
                predicted = np.asarray(self.model.predict(part), dtype=np.float64)
            return self._checked(predicted.reshape(len(predicted), -1), 1)[:, 0]
        with refusing(self.model, "predict_proba"):
            result = np.asarray(self.model.predict_proba(part), dtype=np.float64)
        result = self._checked(result, len(self.class_indices))
        probabilities = np.zeros((len(result), self.n_classes))
        probabilities[:, self.class_indices] = result
        return probabilities

    def _checked(self, predicted: Array, n_outputs: int) -> Array:
        name = type(self.model).__name__
        if predicted.shape[1:] != (n_outputs,):
            raise InvalidInput(
                f"estimator: expected {n_outputs} numbers for each row from {name}, "
                f"got shape {predicted.shape}"
            )
        if not np.isfinite(predicted).all():
            raise InvalidInput(
                f"estimator: {name} predicts numbers that are not finite"
            )
        refuse_overflow(predicted, f"estimator: predictions of {name}")
        return predicted
