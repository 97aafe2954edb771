"""What steps of scikit-learn's pipelines make of each column, by where it comes from.

Known are steps whose columns are each made of one column.
"""

from __future__ import annotations

import warnings
from collections import UserList
from collections.abc import Mapping, Sequence
from typing import Any, Final

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

from propopt.structures.pipelines import is_passthrough
from propopt.structures.readers.trees.pipelines import single
from propopt.structures.readers.trees.pipelines.single import Sources, StepRule
from propopt.structures.readers.trees.pipelines.views import (
    ColumnSource,
    View,
)


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


STEPS: Final[Mapping[type, StepRule]] = {
    ColumnTransformer: _in_parts,
    FeatureUnion: _in_union,
    FunctionTransformer: single.function,
    KBinsDiscretizer: single.binned,
    MissingIndicator: single.indicated,
    OneHotEncoder: single.one_hot,
    OrdinalEncoder: single.ordinal,
    PowerTransformer: single.powers,
    SplineTransformer: single.splines,
    SimpleImputer: single.imputed,
    TargetEncoder: single.target_encoded,
    **dict.fromkeys((Binarizer, QuantileTransformer), single.rising),
    **dict.fromkeys(
        (MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler), single.rescaled
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
        single.selected,
    ),
}
"""Classes of steps, with what is known of each; never their subclasses."""
