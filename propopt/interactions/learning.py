"""Learners that are fitted without some columns, and their tables and targets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from inspect import signature
from itertools import compress
from numbers import Number
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_array
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from propopt.base.arrays import Array, Values
from propopt.base.checks import (
    as_array,
    largest_entry,
    read_array,
    refuse_overflow,
    refuse_sparse,
    refuse_underflow,
)
from propopt.base.errors import InvalidInput, WrongType
from propopt.base.text import plural
from propopt.structures.kinds import fitted_value, has_method
from propopt.tables.frames import (
    as_frame,
    column_names,
    listed,
    refuse_repeated,
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
    refuse_repeated(names, "X")
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
    refuse_underflow(largest_entry(values), "y")
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

    def after_step(self) -> ColumnSubset:
        """The same columns after a step that may replace them."""
        return replace(self, table=None, counted=False)

    def select(self, choice: ColumnChoice) -> ColumnSubset:
        """The columns of a choice, in its order, as its transformer sees them."""
        if callable(choice):
            return self.after_step()
        positions = self._positions(choice)
        names = self.names
        if names is not None:
            names = tuple(names[position] for position in positions)
        return ColumnSubset(names, self.mask[positions])

    def left(self, choice: ColumnChoice) -> ColumnChoice:
        """A choice without the columns that are left out; it may be an empty list.

        Names stay, and positions become those among the remaining columns.
        """
        if callable(choice):
            is_empty = self.table is not None and not len(choice(self.table))
            return [] if is_empty else choice
        labels: Any = np.cumsum(self.mask) - 1
        if self.names is not None and _is_by_name(choice):
            labels = np.array(self.names, dtype=object)
        remaining = [k for k in self._positions(choice) if self.mask[k]]
        chosen = labels[remaining].tolist()
        return chosen[0] if chosen and np.isscalar(choice) else chosen

    def entries(self, value: Any) -> Any:
        """A list with an entry for each column, or a mapping from columns."""
        if isinstance(value, Mapping):
            left = {key: self.left(key) for key in value}
            return {left[key]: value[key] for key in value if left[key] != []}
        if len(value) != len(self.mask) or not self.counted:
            raise InvalidInput(
                f"estimator: one entry per column needs {len(self.mask)} entries of "
                f"columns that no step changes, got {value!r}"
            )
        if isinstance(value, list | tuple):
            return type(value)(compress(value, self.mask))
        return np.asarray(value)[self.mask]

    def requested(self, choice: ColumnChoice) -> set[int]:
        """Positions of the chosen columns that remain; none for a callable."""
        if callable(choice) or not self.counted:
            return set()
        return {k for k in self._positions(choice) if self.mask[k]}

    def _positions(self, choice: ColumnChoice) -> list[int]:
        """Positions of the chosen columns, as ColumnTransformer finds them."""
        by_name = _is_by_name(choice)
        if not (by_name or self.counted):
            raise InvalidInput(
                f"estimator: {choice!r} counts columns after a step that may change "
                "them; select columns by name or dtype instead"
            )
        indices = pd.Series(range(len(self.mask)), self.names)
        if not (isinstance(choice, slice) or np.isscalar(choice)):
            choice = list(choice)
        try:
            chosen = indices.loc[choice] if by_name else indices.iloc[choice]
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"estimator: {choice!r} is not among the {len(self.mask)} columns: "
                f"{error}"
            ) from None
        return np.atleast_1d(chosen).tolist()


def _is_by_name(choice: ColumnChoice) -> bool:
    """Whether columns are chosen by name: all of them are, or none."""
    if isinstance(choice, slice):
        choice = [choice.start, choice.stop]
    some = [choice] if np.isscalar(choice) else choice
    return any(isinstance(column, str) for column in some)


SHORTEN: Final[Mapping[str, Callable[[ColumnSubset, Any], Any] | None]] = {
    **dict.fromkeys(
        (
            "cat_features",
            "categorical_feature",
            "categorical_features",
            "cols",
            "embedding_features",
            "ignored_features",
            "text_features",
            "variables",
        ),
        ColumnSubset.left,
    ),
    **dict.fromkeys(
        (
            "categories",
            "drop",
            "feature_types",
            "feature_weights",
            "length_scale",
            "monotone_constraints",
            "monotonic_cst",
        ),
        ColumnSubset.entries,
    ),
    "interaction_constraints": None,
    "interaction_cst": None,
}
"""By parameter of scikit-learn, LightGBM, XGBoost, CatBoost and of encoders.

None where sets of columns would have to be edited, which is refused.
"""

SPECIAL_VALUES: Final = frozenset(
    ["auto", "from_dtype", "first", "if_binary", "pairwise", "no_interactions"]
)
"""Values of these parameters that refer to no column."""


def _refers_to_columns(key: str, value: Any, names: Collection[Hashable]) -> bool:
    """Whether a parameter refers to columns: by its name, or by listing theirs."""
    if key.rpartition("__")[2] in SHORTEN:
        if isinstance(value, str):
            return value not in SPECIAL_VALUES
        return not (value is None or np.isscalar(value)) and len(value) > 0
    if not isinstance(value, list | tuple | set | frozenset | dict) or not value:
        return False
    return all(isinstance(column, str) and column in names for column in value)


# ---- Estimators and pipelines that name columns, adapted to fewer columns


def mentions_columns(estimator: Any, names: Collection[Hashable] = ()) -> bool:
    """Whether an estimator, or one within it, refers to columns (D,) of its table."""
    return isinstance(estimator, ColumnTransformer) or any(
        isinstance(value, ColumnTransformer) or _refers_to_columns(key, value, names)
        for key, value in estimator.get_params().items()
    )


def restricted(estimator: Any, columns: ColumnSubset) -> Any:
    """An estimator for a table without some columns.

    The columns are removed from each ``ColumnTransformer`` and from the parameters in
    :data:`SHORTEN`, also of estimators within. Other parameters that name columns are
    refused.
    """
    if isinstance(estimator, ColumnTransformer):
        return _column_transformer(estimator, columns)
    parameters = estimator.get_params()
    # parameters of transformers within one are those of its columns
    inside = tuple(
        f"{key}__"
        for key, value in parameters.items()
        if isinstance(value, ColumnTransformer)
    )
    later = _later_steps({"": estimator, **parameters})
    changed = {}
    for key, value in parameters.items():
        observed = columns
        if f"{key}__".startswith(later):
            observed = columns.after_step()
        if key.startswith(inside):
            continue
        if isinstance(value, ColumnTransformer):
            changed[key] = _column_transformer(value, observed)
        elif _refers_to_columns(key, value, columns.names or ()):
            changed[key] = _shortened(key, value, observed)
    return estimator.set_params(**changed)


def _later_steps(parts: Mapping[str, Any]) -> tuple[str, ...]:
    """Prefixes of parameters of steps that see the output of an earlier one."""
    return tuple(
        f"{key}__{name}__".removeprefix("__")
        for key, part in parts.items()
        if isinstance(part, Pipeline)
        for name, _ in part.steps[1:]
    )


def _shortened(key: str, value: Any, columns: ColumnSubset) -> Any:
    """The value of a parameter for fewer columns."""
    shorten = SHORTEN.get(key.rpartition("__")[2])
    if shorten is None or isinstance(value, str):
        raise InvalidInput(
            f"estimator: {key}={value!r} refers to columns in a way that cannot be "
            "fitted without one of them; select columns by dtype, by a list, or by a "
            "ColumnTransformer"
        )
    try:
        return shorten(columns, value)
    except InvalidInput as error:
        raise InvalidInput(f"{error} ({key})") from None


def _column_transformer(
    transformer: ColumnTransformer, columns: ColumnSubset
) -> ColumnTransformer:
    """Shorten the choices; a part without columns stays, as grids may refer to it.

    Where no column is left, a constant one takes their place.
    """
    parts = []
    requested = set[int]()
    is_blind = True
    for name, part, choice in transformer.transformers:
        left = columns.left(choice)
        requested |= columns.requested(choice)
        is_used = not (_drops(part) or (isinstance(left, list) and not left))
        if is_used and not isinstance(part, str):
            part = restricted(part, columns.select(choice))
        parts.append((name, part, left))
        is_blind = is_blind and not is_used
    rest = transformer.remainder
    if not isinstance(rest, str):
        rest = restricted(rest, columns.after_step())
    has_rest = not (_drops(rest) or len(requested) == np.count_nonzero(columns.mask))
    if is_blind and not has_rest:
        parts.append(("constant", FunctionTransformer(_constant), [0]))
    return transformer.set_params(transformers=parts, remainder=rest)


def _drops(part: Any) -> bool:
    return isinstance(part, str) and part == "drop"


def _constant(table: Any) -> Array:
    return np.zeros((len(table), 1))


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
    return check_array(rows, ensure_all_finite=False)


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


LEARNER_ERRORS: Final = OverflowError, TypeError, ValueError
"""Errors by which a learner refuses its input."""


def learner_error(estimator: Any, method: str, error: Exception) -> InvalidInput:
    """An error of a learner as one of this package."""
    kind = WrongType if isinstance(error, TypeError) else InvalidInput
    return kind(
        f"estimator: {type(estimator).__name__}.{method} raises "
        f"{type(error).__name__}: {error}; give X and y that it accepts, such "
        "as numbers, or a pipeline that encodes and imputes first"
    )


def check_estimator_kind(estimator: Any) -> None:
    """Require a regressor or a classifier."""
    if isinstance(estimator, type):
        raise InvalidInput(
            f"estimator: expected an estimator, got a class; {estimator.__name__}() "
            "is one"
        )
    wanted = "a scikit-learn regressor or classifier"
    if not (has_method(estimator, "fit") and has_method(estimator, "get_params")):
        raise InvalidInput(f"estimator: expected {wanted}, got {estimator!r}")
    if not is_regressor(estimator) and not is_classifier(estimator):
        raise InvalidInput(
            f"estimator: expected {wanted}, got {type(estimator).__name__}, whose tag "
            "estimator_type is neither"
        )


# ---- Predictions of a fitted model for tables with all columns


@final
@dataclass(frozen=True, eq=False)
class Prediction:
    """A fitted model that predicts from a table with all columns."""

    model: Any  # fitted
    columns: NDArray[np.intp]  # positions of the columns that it uses
    class_indices: NDArray[np.intp] | None  # its classes among all K
    n_classes: int  # K
    from_array: bool = False  # whether it was fitted to an array
    as_margin: bool = False  # whether K = 2 classes have decision functions (−d, d)

    def __call__(self, table: Any, rows: NDArray[np.intp] | None = None) -> Array:
        """Predictions (n,), or outputs of classes (n, K), of some rows, or of all.

        Outputs of classes are probabilities, or decision functions. Shares p of a model
        that has no more, such as one of a single class, have 2p − 1.
        """
        if rows is not None:
            table = select_rows(table, rows)
        part = table_part(table, None, self.columns)
        if self.from_array and not isinstance(part, np.ndarray):
            part = array_of(part)
        method = "predict" if self.class_indices is None else "predict_proba"
        has_margin = self.as_margin and has_method(self.model, "decision_function")
        if has_margin:
            method = "decision_function"
        try:
            predicted = np.asarray(getattr(self.model, method)(part), dtype=np.float64)
        except LEARNER_ERRORS as error:
            raise learner_error(self.model, method, error) from error
        predicted = predicted.reshape(len(predicted), -1)
        if has_margin and predicted.shape[1] == 1:
            predicted = predicted * [-1.0, 1.0]
        n_outputs = 1 if self.class_indices is None else len(self.class_indices)
        if predicted.shape[1] != n_outputs or not np.isfinite(predicted).all():
            raise InvalidInput(
                f"estimator: expected {plural(n_outputs, 'finite number')} for each "
                f"row from {type(self.model).__name__}, got shape {predicted.shape}, "
                f"with {np.count_nonzero(~np.isfinite(predicted))} not finite"
            )
        if self.class_indices is None:
            return predicted[:, 0]
        probabilities = np.zeros((len(predicted), self.n_classes))
        probabilities[:, self.class_indices] = predicted
        if self.as_margin and not has_margin:
            return 2.0 * probabilities - 1.0
        return probabilities
