"""Fits without some columns, and their predictions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from numbers import Number
from typing import Any, Final, TypeAlias, final

import numpy as np
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
from sklearn.utils.validation import has_fit_parameter

from propopt.base.arrays import Array, Values
from propopt.base.checks import refuse_overflow
from propopt.base.errors import InvalidInput
from propopt.interactions.learners import (
    SHORTEN,
    ColumnChoice,
    SomeColumns,
    parameter_without,
    refuse_unknown,
    speaks_of_columns,
)
from propopt.structures.boosters import is_passthrough
from propopt.tables.frames import as_frame, listed, names_of, rows_of, some_columns


# ---- A learner that is cloned for each fit: seeds, weights, columns


def read_learning_table(X: Any) -> tuple[Any, tuple[Hashable, ...]]:
    """A table as it came, dtypes and missing values kept, and names of its columns.

    DataFrames of any library stay what they are; all else becomes an array, whose
    columns are called 0, 1, ...
    """
    if sp.issparse(X):
        raise InvalidInput(
            f"X: expected a dense table, got a sparse {type(X).__name__}; give its "
            "toarray()"
        )
    names = names_of(X)
    table = np.asarray(X) if names is None else X
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

    Without any column it is an array, (n, 0): tables of some libraries, such as polars,
    have no rows then.
    """
    if not len(columns):
        return np.empty((table.shape[0] if rows is None else len(rows), 0))
    if isinstance(table, np.ndarray):
        return table[:, columns] if rows is None else table[rows[:, None], columns]
    part = some_columns(table, columns.tolist())
    return part if rows is None else rows_of(part, rows.tolist())


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
    if any(speaks_of_columns(*own) for own in _parameters(estimator)):
        return True
    return any(mentions_columns(part) for part in _all_parts(estimator))


def restricted(estimator: Any, columns: SomeColumns) -> Any | None:
    """An estimator for a table without some columns; None if it would see nothing.

    Columns that are not there are taken out of the lists of each ``ColumnTransformer``,
    and transformers of none of them do nothing; so are they out of the parameters
    that :data:`SHORTEN` knows, such as ``categorical_features``. A predictor that would
    see nothing gives the mean, or how often classes come.
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
    chosen = [choice for _, _, choice in estimator.transformers]
    parts = [
        (name, *_left_of(own, choice, columns))
        for name, own, choice in estimator.transformers
    ]
    rest = estimator.remainder
    if not isinstance(rest, str):
        rest = restricted(rest, columns.beyond())
    if rest is None or not _has_rest(chosen, columns):
        rest = "drop"
    if _drops(rest) and all(_drops(own) or _is_empty(left) for _, own, left in parts):
        return None
    return estimator.set_params(transformers=parts, remainder=rest)


def _left_of(
    own: Any, choice: ColumnChoice, columns: SomeColumns
) -> tuple[Any, ColumnChoice]:
    """A transformer and its columns; one of none stays, as grids may speak of it."""
    left = columns.left_of(choice)
    if isinstance(own, str) or _is_empty(left):
        return own, left
    part = restricted(own, columns.among(choice))
    return (own, []) if part is None else (part, left)


def _is_empty(choice: ColumnChoice) -> bool:
    return isinstance(choice, list) and not choice


def _has_rest(chosen: list[ColumnChoice], columns: SomeColumns) -> bool:
    """Whether a column is left that no transformer asks for, as far as is known."""
    if not columns.counted:
        return True
    asked = [columns.members(choice) for choice in chosen]
    return not columns.left <= set().union(*asked)


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
    for name, value in _parameters(estimator):
        if speaks_of_columns(name, value):
            changed[name] = parameter_without(name, value, columns)
        elif name not in SHORTEN:
            refuse_unknown(name, value, columns)
    for name, part in _parts(estimator):
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


def _parameters(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Parameters that are no estimators."""
    for name, value in estimator.get_params(deep=False).items():
        if not (_is_estimator(value) or _is_list_of_parts(value)):
            yield name, value


def _parts(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Parameters that are estimators that see the columns, or lists of such."""
    for name, value in estimator.get_params(deep=False).items():
        if name not in _OF_OTHERS and (
            _is_estimator(value) or _is_list_of_parts(value)
        ):
            yield name, value


def _all_parts(estimator: Any) -> Iterator[Any]:
    for _, value in _parts(estimator):
        parts = [own[1] for own in value] if isinstance(value, list) else [value]
        yield from filter(_is_estimator, parts)  # ensembles have no truth unfitted


def _is_estimator(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def _is_list_of_parts(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(own, tuple) and len(own) >= 2 and _is_estimator(own[1])
        for own in value
    )


# ---- Tables of numbers, and learners that see nothing else of them


_PLAIN: Final = str, Number, np.ndarray, np.generic, np.random.RandomState


def sees_numbers_alone(estimator: Any) -> bool:
    """Whether a learner makes the same of a table of numbers and of an array.

    It is all scikit-learn's own, and nothing in it chooses columns by name: functions
    that a user wrote, or estimators, may look at names.
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
    if isinstance(value, ColumnTransformer) or not hasattr(value, "get_params"):
        return False
    if isinstance(value, type) or not type(value).__module__.startswith("sklearn."):
        return False
    return is_of_scikit_learn(value.get_params(deep=False))


def array_of_numbers(table: Any) -> NDArray[Any] | None:
    """The array that a DataFrame of numbers is; None of any other.

    Columns of several dtypes are numbers of floating point, if these can say the same.
    """
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
    """New rows, as scikit-learn reads them, for a learner that was fitted to an array.

    table (n, D).
    """
    frame = as_frame(table, "X")
    rows = table if frame is None else frame.table
    return np.asarray(check_array(rows, ensure_all_finite=False))


@final
@dataclass(frozen=True, eq=False)
class Learner:
    """An estimator of which clones are fitted, on tables without some columns."""

    estimator: Any  # not changed
    n_columns: int  # D, of its table
    names: tuple[Hashable, ...] | None  # (D,): of the columns; None of an array

    def fresh(self, kept: NDArray[np.bool_], table: Any, seed: int) -> Any:
        """A clone for a table without some columns; kept (D,)."""
        if self._alone:  # the same as a clone with its seed, in a tenth of the time
            model = deepcopy(self._clone)
            if self._free:
                model.random_state = seed
            return model
        model = unfitted_copy(self.estimator)
        if self._free:
            model.set_params(**dict.fromkeys(self._free, seed))
        if not self._mentions_columns or kept.all():
            return model
        return restricted(model, SomeColumns(self.names, kept, table))

    def weighted(self, model: Any, weights: Values) -> dict[str, Values]:
        """What ``fit`` of a fresh model is given for its weights."""
        same = type(model) is type(self.estimator)
        return {self._weight if same else "sample_weight": weights}

    def check(self, weighted: bool) -> None:
        """Refuse what cannot be fitted again and again, before anything is."""
        if weighted:
            _ = self._weight
        if self._mentions_columns and self.n_columns > 1:
            kept = np.arange(self.n_columns) > 0
            restricted(unfitted_copy(self.estimator), SomeColumns(self.names, kept))

    @cached_property
    def speaks_of_classes(self) -> bool:
        """Whether a parameter has an entry for each class, or for some."""
        return any(
            name.split("__")[-1] in _OF_CLASSES
            and not (value is None or isinstance(value, str))
            for name, value in self.estimator.get_params().items()
        )

    @cached_property
    def _clone(self) -> Any:
        return clone(self.estimator)

    @cached_property
    def _alone(self) -> bool:
        """Whether it is one of scikit-learn's, with no other in it."""
        settings = self.estimator.get_params(deep=False).values()
        return (
            sees_numbers_alone(self.estimator)
            and not any(hasattr(own, "get_params") for own in settings)
            and self._free in ((), ("random_state",))
        )

    @cached_property
    def _mentions_columns(self) -> bool:
        return mentions_columns(self.estimator)

    @cached_property
    def _free(self) -> tuple[str, ...]:
        return tuple(
            name
            for name, value in self.estimator.get_params().items()
            if value is None and name.split("__")[-1] == "random_state"
        )

    @cached_property
    def _weight(self) -> str:
        return weight_name(self.estimator)


_OF_CLASSES: Final = frozenset(
    ["class_prior", "class_weight", "class_weights", "priors"]
)


def unfitted_copy(estimator: Any) -> Any:
    """A clone, or a copy where scikit-learn makes none."""
    try:
        return clone(estimator)
    except RuntimeError:  # CatBoost copies the lists that it is given, as none should
        return deepcopy(estimator)


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
        parts = (getattr(estimator, own, None) for own in ("estimator", "regressor"))
        within = next((part for part in parts if part is not None), None)
        return "sample_weight" if within is None else weight_name(within)
    raise InvalidInput(
        f"sample_weight: {type(estimator).__name__}.fit takes no weights of rows; "
        "leave them out, or take a learner that does"
    )


def check_estimator_kind(estimator: Any) -> None:
    """Refuse what is neither a regressor nor a classifier with probabilities."""
    if isinstance(estimator, type):
        raise InvalidInput(
            f"estimator: expected an estimator, got a class; {estimator.__name__}() "
            "is one"
        )
    wanted = "a regressor or classifier of scikit-learn's kind"
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise InvalidInput(f"estimator: expected {wanted}, got {estimator!r}")
    if is_regressor(estimator):
        return
    name = type(estimator).__name__
    if not is_classifier(estimator):
        raise InvalidInput(
            f"estimator: expected {wanted}, got {name}, which says of itself that it "
            "is neither (its tags, estimator_type)"
        )
    if not hasattr(estimator, "predict_proba"):
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
            predicted = np.asarray(self.model.predict(own), dtype=np.float64)
            return self._checked(predicted.reshape(len(predicted), -1), 1)[:, 0]
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
