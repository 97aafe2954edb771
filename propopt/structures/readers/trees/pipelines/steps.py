"""What steps of scikit-learn's pipelines make of each column, by where it comes from.

Known are steps whose columns are each made of one column.
"""

from __future__ import annotations

import warnings
from collections import UserList
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import (
    RFE,
    RFECV,
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    SequentialFeatureSelector,
    VarianceThreshold,
)
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from propopt._typing import Array
from propopt.structures.pipelines import is_passthrough
from propopt.structures.readers.trees.views import (
    CodedColumn,
    ColumnSource,
    Curved,
    Rising,
    Same,
    Steps,
    View,
    table_numbers,
)


Sources: TypeAlias = tuple[ColumnSource, ...]
StepRule: TypeAlias = Callable[[Any, View], Sources | None]
"""From a fitted step and what it sees to the sources of its columns, or None."""


def behind(step: Any, view: View) -> View | None:
    """What is seen behind a step; None unless its columns are each made of one."""
    if is_passthrough(step):
        return view
    if type(step) is Pipeline:
        return _behind_all([part for _, part in step.steps], view)
    sources = _sources(step, view)
    return None if sources is None else view.through(step.transform, sources)


def _behind_all(steps: Sequence[Any], view: View) -> View | None:
    seen: View | None = view
    for step in steps:
        seen = None if seen is None else behind(step, seen)
    return seen


def _sources(step: Any, view: View) -> Sources | None:
    if is_passthrough(step):
        return view.sources
    if type(step) is Pipeline:
        seen = _behind_all([part for _, part in step.steps], view)
        return None if seen is None else seen.sources
    rule = STEPS.get(type(step))
    return None if rule is None else rule(step, view)


def _rising(_step: Any, view: View) -> Sources:
    return tuple(_monotone(source, straight=False) for source in view.sources)


def _scaled(step: Any, view: View) -> Sources:
    clipped = bool(getattr(step, "clip", False))
    return tuple(_monotone(source, straight=not clipped) for source in view.sources)


def _monotone(source: ColumnSource, *, straight: bool) -> ColumnSource:
    """What is seen of a column behind a nondecreasing map of it."""
    match source:
        case Same(column):
            return Rising(column, straight)
        case Rising(column, before):
            return Rising(column, before and straight)
        case _:
            return source


def _powers(step: Any, view: View) -> Sources:
    """Powers of Yeo and Johnson have a kink in their slope at 0."""
    kinks = (0.0,) if step.method == "yeo-johnson" else ()
    return tuple(_curved(source, kinks) for source in view.sources)


def _splines(step: Any, view: View) -> Sources | None:
    if not all(isinstance(source, Same | Rising | Curved) for source in view.sources):
        return None
    n_each = step.n_features_out_ // len(view.sources)
    curved = [
        _curved(source, np.unique(spline.t).tolist())
        for source, spline in zip(view.sources, step.bsplines_, strict=True)
    ]
    return tuple(source for source in curved for _ in range(n_each))


def _curved(source: ColumnSource, knots: Sequence[float]) -> ColumnSource:
    """What is seen of a column behind any map of it, with kinks where it has them."""
    match source:
        case Same(column):
            return Curved(column, tuple(knots))
        case Rising(column, _) | Curved(column, _):
            return Curved(column)  # kinks are not known in units of the table
        case _:
            return source


def _told_missing(source: ColumnSource) -> ColumnSource:
    """What tells whether a number is missing: constant of all that are not."""
    match source:
        case Same(column) | Rising(column, _):
            return Rising(column, straight=True)
        case _:
            return source


def _binned(step: Any, view: View) -> Sources | None:
    return _rising(step, view) if step.encode == "ordinal" else None


def _imputed(step: Any, view: View) -> Sources | None:
    """Columns that have any number, then those that tell what was missing."""
    if not _is_missing(step.missing_values):
        return None  # another number is replaced
    known = ~pd.isna(np.asarray(step.statistics_, dtype=object))
    kept = known | step.keep_empty_features
    told = [] if step.indicator_ is None else step.indicator_.features_
    indicators = (_told_missing(view.sources[k]) for k in told)
    return (*_chosen(view.sources, kept), *indicators)


def _indicated(step: Any, view: View) -> Sources | None:
    if not _is_missing(step.missing_values):
        return None
    return tuple(_told_missing(view.sources[k]) for k in step.features_)


def _is_missing(value: Any) -> bool:
    return bool(pd.isna(value))


def _one_hot(step: Any, view: View) -> Sources | None:
    """For each column one for each category that is not dropped, rare ones in one."""
    encoded = _encoded(step, view)
    if encoded is None:
        return None
    rare = getattr(step, "infrequent_categories_", [None] * len(encoded))
    dropped = [None] * len(encoded) if step.drop_idx_ is None else step.drop_idx_
    counts = [
        len(categories) - (0 if few is None else len(few) - 1) - (drop is not None)
        for categories, few, drop in zip(step.categories_, rare, dropped, strict=True)
    ]
    return tuple(np.repeat(np.array(encoded, dtype=object), counts).tolist())


def _ordinal(step: Any, view: View) -> Sources | None:
    return _encoded(step, view)


def _target_encoded(step: Any, view: View) -> Sources | None:
    return None if step.target_type_ == "multiclass" else _encoded(step, view)


def _encoded(step: Any, view: View) -> Sources | None:
    """Where each column of an encoder comes from, by the categories that it knows."""
    others = getattr(step, "handle_unknown", "ignore") != "error"
    pairs = zip(view.sources, step.categories_, strict=True)
    sources = [_steps_of(source, categories, others) for source, categories in pairs]
    return None if None in sources else tuple(s for s in sources if s is not None)


def _steps_of(
    source: ColumnSource, categories: Any, others: bool
) -> ColumnSource | None:
    match source:
        case CodedColumn() | Steps():
            return source
        case Same(column):
            numbers = pd.to_numeric(pd.Series(categories), errors="coerce").dropna()
            values = tuple(np.unique(numbers.to_numpy(dtype=np.float64)).tolist())
            return Steps(column, values, others) if values else None
        case _:
            return None


def _function(step: Any, view: View) -> Sources | None:
    """A function of each number, or one that changes none: what makes an array."""
    if step.func is None:
        return view.sources
    if isinstance(step.func, np.ufunc) and not step.kw_args:
        return tuple(_curved(source, ()) for source in view.sources)
    points = np.tile(view.start, (len(_PROBES), 1))
    for source in view.sources:
        if isinstance(source, Same | Rising):
            points[:, source.column] = np.roll(_PROBES, source.column)
    try:
        given = view.sees(points)
        same = np.array_equal(
            table_numbers(given), table_numbers(step.transform(given))
        )
    except (TypeError, ValueError):  # text is no number
        return None
    return view.sources if same else None


_PROBES: Final[Array] = np.array([0.0, -2.5, 1e-9, -3e7, 0.1, 7.0, 12345.678, 1.0])


def _in_parts(step: Any, view: View) -> Sources | None:
    """Of a transformer for each part of the columns, what each makes of its own."""
    parts: dict[int, ColumnSource] = {}
    for name, part, columns in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        sources = _sources(part, _part_of(view, step, _listed(columns)))
        places = range(*step.output_indices_[name].indices(2**62))
        if sources is None or len(sources) != len(places):
            return None
        parts.update(zip(places, sources, strict=True))
    return tuple(parts[k] for k in sorted(parts))


def _listed(columns: Any) -> Any:
    """Columns as they are; of those that remain, scikit-learn 1.6 warns when read."""
    if not isinstance(columns, UserList):
        return columns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return list(columns)


def _part_of(view: View, step: Any, columns: Any) -> View:
    """The view of columns, chosen as those of a ColumnTransformer are."""
    labels = view.labels
    order = pd.Series(np.arange(len(view.sources)), index=labels)
    names = isinstance(columns, str) or _holds_text(columns)
    if names and labels is None:  # fitted on a table, and given an array
        order.index = pd.Index(step.feature_names_in_)
    chosen = np.atleast_1d(order.loc[columns] if names else order.iloc[columns])
    return view.chosen(chosen.astype(np.intp))


def _holds_text(columns: Any) -> bool:
    if isinstance(columns, slice):
        return isinstance(columns.start, str) or isinstance(columns.stop, str)
    return np.asarray(columns).dtype.kind in "UOT" and len(columns) > 0


def _in_union(step: Any, view: View) -> Sources | None:
    if step.transformer_weights is not None:
        return None
    parts = [_sources(part, view) for _, part in step.transformer_list]
    if None in parts:
        return None
    return tuple(source for part in parts for source in part or ())


def _selected(step: Any, view: View) -> Sources:
    return _chosen(view.sources, step.get_support())


def _chosen(sources: Sources, kept: Any) -> Sources:
    return tuple(s for s, keep in zip(sources, kept, strict=True) if keep)


STEPS: Final[Mapping[type, StepRule]] = {
    ColumnTransformer: _in_parts,
    FeatureUnion: _in_union,
    FunctionTransformer: _function,
    KBinsDiscretizer: _binned,
    MissingIndicator: _indicated,
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _ordinal,
    PowerTransformer: _powers,
    SplineTransformer: _splines,
    SimpleImputer: _imputed,
    TargetEncoder: _target_encoded,
    **dict.fromkeys((Binarizer, QuantileTransformer), _rising),
    **dict.fromkeys(
        (MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler), _scaled
    ),
    **dict.fromkeys(
        (
            GenericUnivariateSelect,
            RFE,
            RFECV,
            SelectFdr,
            SelectFpr,
            SelectFromModel,
            SelectFwe,
            SelectKBest,
            SelectPercentile,
            SequentialFeatureSelector,
            VarianceThreshold,
        ),
        _selected,
    ),
}
"""Classes of steps, with what is known of each; never their subclasses."""
