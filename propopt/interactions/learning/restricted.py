"""Estimators and pipelines that name columns, made ready for tables without some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sklearn.base import OneToOneFeatureMixin, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline

from propopt.interactions.learning.columns import ColumnChoice, SomeColumns
from propopt.interactions.learning.parameters import (
    SHORTEN,
    parameter_without,
    refuse_unknown,
    speaks_of_columns,
)
from propopt.structures.pipelines import is_passthrough


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

    Parameters
    ----------
    estimator : estimator
        Not fitted, and changed in place: a clone.
    columns : SomeColumns
        Of its table.

    Raises
    ------
    InvalidInput
        If it speaks of columns in a way that is not known.
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
    steps, seen = [], columns
    for name, step in pipeline.steps:
        if is_passthrough(step):
            steps.append((name, step))
            continue
        own = restricted(step, seen)
        if own is None:
            return _of_nothing(pipeline)
        steps.append((name, own))
        if not isinstance(step, _SAME_COLUMNS):
            seen = seen.beyond()
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
        changed[name] = _restricted_part(part, columns)
        if changed[name] is None or _became_constant(part, changed[name]):
            return _of_nothing(estimator)
    return estimator.set_params(**changed) if changed else estimator


def _became_constant(part: Any, left: Any) -> bool:
    """Whether an estimator within another sees nothing any more, and so nor does it."""
    return isinstance(left, _CONSTANT) and not isinstance(part, _CONSTANT)


def _restricted_part(part: Any, columns: SomeColumns) -> Any:
    """An estimator within another, or a list of such with their names."""
    if not isinstance(part, list):
        return restricted(part, columns)
    return [
        (name, own if isinstance(own, str) else restricted(own, columns))
        for name, own in part
    ]


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
