"""Learners that are fitted without some columns: tables, targets, parameters, fits."""

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
import scipy.sparse as sp
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
from propopt.base.checks import as_array, read_array, refuse_overflow, refuse_underflow
from propopt.base.errors import InvalidInput, PropoptError, WrongType
from propopt.structures.kinds import fitted_value, has_method, is_passthrough
from propopt.tables.frames import (
    as_frame,
    column_names,
    listed,
    select_columns,
    select_rows,
)


# ---- The table and the target that a learner is fitted to, as they came


def read_learning_table(X: Any) -> tuple[Any, tuple[Hashable, ...]]:
    """A table as it came, dtypes and missing values kept, and names of its columns.

    What is no DataFrame becomes an array, whose columns are called 0, 1, ...
    """
    if sp.issparse(X):
        raise InvalidInput(
            f"X: expected a dense table, got a sparse {type(X).__name__}; give its "
            "toarray()"
        )
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


def taken(table: Any, rows: NDArray[np.intp] | None, columns: NDArray[np.intp]) -> Any:
    """Some rows, or all, and some columns, in the form that a table has.

    Without any column it is an array, (n, 0), as polars has no rows then.
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
        """Columns that are not there, each by its name if it has one."""
        return frozenset(self._all) - self.left

    @cached_property
    def left(self) -> frozenset[Hashable]:
        """All columns that are left, each by its name if it has one."""
        pairs = zip(self._all, self.kept, strict=True)
        return frozenset(name for name, keep in pairs if keep)

    @property
    def _all(self) -> Sequence[Hashable]:
        return range(len(self.kept)) if self.names is None else self.names

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
        if isinstance(choice, np.ndarray | pd.Index | pd.Series):
            many = choice.tolist()
        else:
            many = list(choice)
        if many and all(isinstance(entry, bool | np.bool_) for entry in many):
            return np.flatnonzero(many).tolist()
        return many

    def is_kept(self, column: Any) -> bool:
        """Whether a column is left; a name that is unknown here is not ours to drop."""
        return self._name(column) not in self.dropped

    def left_of(self, choice: ColumnChoice) -> ColumnChoice:
        """A choice of columns without those that are left out, or an empty list."""
        if callable(choice):
            return choice if self.table is None or self.members(choice) else []
        many = self.kept_of(choice)
        alone = isinstance(choice, str | int | np.integer)
        return many[0] if alone and many else many

    def kept_of(self, choice: ColumnChoice) -> list[Any]:
        """Those of a choice that are left: names as they are, numbers anew."""
        return [self.renamed(own) for own in self.listed(choice) if self.is_kept(own)]

    def members(self, choice: ColumnChoice) -> set[Hashable]:
        """The columns of a choice that are left, each by its name if it has one."""
        if callable(choice):
            return set() if self.table is None else set(choice(self.table))
        return {self._name(own) for own in self.listed(choice) if self.is_kept(own)}

    def are_among(self, value: Any) -> bool:
        """Whether a list names columns, one of which is not there."""
        if self.names is None or not isinstance(value, _NAMING):
            return False
        named = all(isinstance(own, str) for own in value)
        known = named and set(value) <= set(self.names)
        return known and not self.dropped.isdisjoint(value)

    def renamed(self, column: Any) -> Any:
        """A name as it is, a number as its new place."""
        if not isinstance(column, int | np.integer):
            return column
        return int(np.count_nonzero(self.kept[: self._place(int(column))]))

    def _name(self, column: Any) -> Hashable:
        if not isinstance(column, int | np.integer):
            return column
        return self._all[self._place(int(column))]

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


_NAMING = list, tuple, set, frozenset, dict
_LISTS = Sequence, np.ndarray, pd.Index, pd.Series, set, frozenset


Shorten: TypeAlias = Callable[[Any, SomeColumns], Any]
"""From the value of a parameter to what it is without some columns."""


def _columns(value: Any, columns: SomeColumns) -> Any:
    """A list, mask or name of columns."""
    is_bool = (isinstance(own, bool | np.bool_) for own in value)
    if not isinstance(value, str) and all(is_bool):
        return _entries(value, columns)
    return columns.kept_of(value)


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


# ---- Estimators and pipelines that name columns, made ready for tables without some


_SAME_COLUMNS: Final = OneToOneFeatureMixin, SimpleImputer, KNNImputer
"""Steps behind which columns can still be counted."""

_CONSTANT: Final = DummyClassifier, DummyRegressor

_OF_OTHERS: Final = frozenset(["final_estimator", "transformer"])
"""Parts of an estimator that do not see its columns: of a stack and of targets."""


def mentions_columns(estimator: Any) -> bool:
    """Whether an estimator, or one within it, names or counts columns of its table."""
    if isinstance(estimator, ColumnTransformer):
        return True
    plain, parts = _parameters(estimator)
    if any(speaks_of_columns(*own) for own in plain.items()):
        return True
    listed_parts = (
        [own[1] for own in part] if isinstance(part, list) else [part]
        for part in parts.values()
    )  # ensembles have no truth unfitted
    return any(map(mentions_columns, filter(_is_estimator, chain(*listed_parts))))


def restricted(estimator: Any, columns: SomeColumns) -> Any | None:
    """An estimator for a table without some columns; None if it would see nothing.

    These are taken out of each ``ColumnTransformer`` and of parameters that
    :data:`SHORTEN` knows. A predictor that would see nothing gives the mean, or how
    often classes come.
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


def _pipeline(pipeline: Pipeline, columns: SomeColumns) -> Any | None:
    steps, observed = [], columns
    for name, step in pipeline.steps:
        if is_passthrough(step):
            steps.append((name, step))
            continue
        own = restricted(step, observed)
        if own is None:
            return _of_nothing(pipeline)
        steps.append((name, own))
        if not isinstance(step, _SAME_COLUMNS):
            observed = observed.beyond()
    return pipeline.set_params(steps=steps)


def _of_nothing(estimator: Any) -> Any | None:
    if is_classifier(estimator):
        return DummyClassifier(strategy="prior")
    return DummyRegressor() if is_regressor(estimator) else None


def _column_transformer(
    estimator: ColumnTransformer, columns: SomeColumns
) -> ColumnTransformer | None:
    """One of no columns stays, as grids may speak of it."""
    parts: list[tuple[str, Any, ColumnChoice]] = []
    for name, own, choice in estimator.transformers:
        part, left = own, columns.left_of(choice)
        if not isinstance(own, str) and not _is_empty(left):
            part = restricted(own, columns.among(choice))
        parts.append((name, own, []) if part is None else (name, part, left))
    rest = estimator.remainder
    if not isinstance(rest, str):
        rest = restricted(rest, columns.beyond())
    # whether a column is left that no transformer asks for, as far as is known
    asked = (columns.members(choice) for _, _, choice in estimator.transformers)
    if rest is None or (columns.counted and columns.left <= set().union(*asked)):
        rest = "drop"
    if _drops(rest) and all(_drops(own) or _is_empty(left) for _, own, left in parts):
        return None
    return estimator.set_params(transformers=parts, remainder=rest)


def _is_empty(choice: ColumnChoice) -> bool:
    return isinstance(choice, list) and not choice


def _drops(part: Any) -> bool:
    return isinstance(part, str) and part == "drop"


def _union(union: FeatureUnion, columns: SomeColumns) -> FeatureUnion | None:
    parts = [
        (name, part if isinstance(part, str) else restricted(part, columns))
        for name, part in union.transformer_list
    ]
    left = [(name, part) for name, part in parts if part is not None]
    if all(_drops(part) for _, part in left):
        return None
    return union.set_params(transformer_list=left)


def _with_parts(estimator: Any, columns: SomeColumns) -> Any:
    """Any other: its parameters that speak of columns, and estimators within it."""
    changed: dict[str, Any] = {}
    plain, parts = _parameters(estimator)
    for name, value in plain.items():
        if not speaks_of_columns(name, value):
            if name not in SHORTEN and columns.are_among(value):
                raise InvalidInput(
                    f"estimator: {name} names the columns {listed(list(value))}, and "
                    "how it is written without one of them is not known; choose "
                    "columns by dtype, or by a ColumnTransformer"
                )
        elif isinstance(value, str):
            raise InvalidInput(
                f"estimator: {name}={value!r} speaks of columns in the learner's own "
                "words, and columns are left out; give a list or a mapping"
            )
        else:
            try:
                changed[name] = SHORTEN[name](value, columns)
            except InvalidInput as error:
                raise InvalidInput(f"{error} ({name})") from None
    for name, part in parts.items():
        if isinstance(part, list):  # of estimators with their names
            changed[name] = [
                (key, own if isinstance(own, str) else restricted(own, columns))
                for key, own in part
            ]
        else:
            changed[name] = restricted(part, columns)
        left = changed[name]
        # one within it that sees nothing any more: nor does it
        blind = isinstance(left, _CONSTANT) and not isinstance(part, _CONSTANT)
        if left is None or blind:
            return _of_nothing(estimator)
    return estimator.set_params(**changed) if changed else estimator


def _parameters(estimator: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters that are no estimators, and those that are and see the columns."""
    plain, parts = dict[str, Any](), dict[str, Any]()
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
        isinstance(own, tuple) and len(own) >= 2 and _is_estimator(own[1])
        for own in value
    )


# ---- Tables of numbers, and learners that see nothing else of them


_PLAIN: Final = str, Number, np.ndarray, np.generic, np.random.RandomState


def sees_numbers_alone(estimator: Any) -> bool:
    """Whether a learner makes the same of a table of numbers and of an array.

    Functions that a user wrote, or estimators, may look at names.
    """
    return is_of_scikit_learn(estimator) and not mentions_columns(estimator)


def is_of_scikit_learn(value: Any) -> bool:
    """Whether a learner, and all that its parameters hold, is scikit-learn's own."""
    if value is None or isinstance(value, _PLAIN):
        return True
    if isinstance(value, Mapping):
        return all(map(is_of_scikit_learn, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_of_scikit_learn, value))
    if isinstance(value, FunctionTransformer):  # those of this package see no names
        return str(getattr(value.func, "__module__", "")).startswith("propopt.")
    if isinstance(value, ColumnTransformer) or not has_method(value, "get_params"):
        return False
    if isinstance(value, type) or not type(value).__module__.startswith("sklearn."):
        return False
    return is_of_scikit_learn(value.get_params(deep=False))


def array_of_numbers(table: Any) -> NDArray[Any] | None:
    """The array that a DataFrame of numbers is, if one dtype says the same."""
    frame = as_frame(table, "X")
    if frame is None:
        return None
    dtypes = set(frame.table.dtypes)
    if not all(isinstance(own, np.dtype) and own.kind in "biuf" for own in dtypes):
        return None
    common = np.result_type(*dtypes)
    if not all(np.can_cast(own, common) for own in dtypes):
        return None
    numbers = frame.table.to_numpy(dtype=common)
    whole = frame.table.select_dtypes(["int64", "uint64"])
    exact = common.kind != "f" or (whole.abs() <= 2**53).all(axis=None)
    return numbers if exact else None


def array_of(table: Any) -> NDArray[Any]:
    """New rows (n, D) as scikit-learn reads them, for a learner fitted to an array."""
    frame = as_frame(table, "X")
    rows = table if frame is None else frame.table
    return np.asarray(check_array(rows, ensure_all_finite=False))


# ---- Copies of a learner, and what it is given


def unfitted_copy(estimator: Any) -> Any:
    """A clone, or a copy where scikit-learn makes none."""
    try:
        return clone(estimator)
    except RuntimeError:  # CatBoost copies the lists that it is given, as none should
        return deepcopy(estimator)


def free_seeds(estimator: Any) -> tuple[str, ...]:
    """Seeds that are not set, of an estimator and those in it."""
    return tuple(
        name
        for name, value in estimator.get_params().items()
        if value is None and name.split("__")[-1] == "random_state"
    )


def weight_name(estimator: Any) -> str:
    """How ``fit`` calls weights of rows: of pipelines those of the last step."""
    if get_config()["enable_metadata_routing"]:
        return "sample_weight"  # the user says by requests who gets it
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_name(last)}"
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    settings = signature(estimator.fit).parameters.values()
    if any(own.kind is own.VAR_KEYWORD for own in settings):  # for estimators within
        parts = (fitted_value(estimator, own) for own in ("estimator", "regressor"))
        within = next((part for part in parts if part is not None), None)
        return "sample_weight" if within is None else weight_name(within)
    raise InvalidInput(
        f"sample_weight: {type(estimator).__name__}.fit takes no weights of rows; "
        "leave them out, or take a learner that does"
    )


@contextmanager
def refusing(estimator: Any, method: str) -> Iterator[None]:
    """A learner that refuses what it is given makes an error of ours."""
    try:
        yield
    except PropoptError:
        raise
    except (OverflowError, TypeError, ValueError) as error:
        kind = WrongType if isinstance(error, TypeError) else InvalidInput
        raise kind(
            f"estimator: {type(estimator).__name__}.{method} raises "
            f"{type(error).__name__}: {error}; give X and y that it takes, such as "
            "numbers, or a pipeline that encodes and imputes first"
        ) from error


def check_estimator_kind(estimator: Any) -> None:
    """Refuse what is neither a regressor nor a classifier with probabilities."""
    if isinstance(estimator, type):
        raise InvalidInput(
            f"estimator: expected an estimator, got a class; {estimator.__name__}() "
            "is one"
        )
    wanted = "a regressor or classifier of scikit-learn's kind"
    if not (has_method(estimator, "fit") and has_method(estimator, "get_params")):
        raise InvalidInput(f"estimator: expected {wanted}, got {estimator!r}")
    if is_regressor(estimator):
        return
    name = type(estimator).__name__
    if not is_classifier(estimator):
        raise InvalidInput(
            f"estimator: expected {wanted}, got {name}, which says of itself that it "
            "is neither (its tags, estimator_type)"
        )
    if not has_method(estimator, "predict_proba"):
        raise InvalidInput(
            f"estimator: {name} has no predict_proba, and errors of classes are taken "
            f"from probabilities; CalibratedClassifierCV({name}(), ensemble=False) has"
        )


# ---- A fitted model that is asked with tables of all columns


Predictor: TypeAlias = Callable[[Any], Array]
"""From a table of all columns to predictions (n,), or probabilities (n, K)."""


@final
@dataclass(frozen=True, eq=False)
class Prediction:
    """A fitted model, asked with a table of all columns."""

    model: Any  # fitted
    columns: NDArray[np.intp]  # which it sees
    places: NDArray[np.intp] | None  # of the classes that it knows, among all K
    n_classes: int  # K
    of_numbers: bool = False  # whether it was fitted to an array, also of a table

    def __call__(self, table: Any) -> Array:
        own = taken(table, None, self.columns)
        if self.of_numbers and not isinstance(own, np.ndarray):
            own = array_of(own)
        if self.places is None:
            with refusing(self.model, "predict"):
                predicted = np.asarray(self.model.predict(own), dtype=np.float64)
            return self._checked(predicted.reshape(len(predicted), -1), 1)[:, 0]
        with refusing(self.model, "predict_proba"):
            result = np.asarray(self.model.predict_proba(own), dtype=np.float64)
        result = self._checked(result, len(self.places))
        probabilities = np.zeros((len(result), self.n_classes))
        probabilities[:, self.places] = result
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
