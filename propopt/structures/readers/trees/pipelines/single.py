"""What steps that are no compositions make of each column, by where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd

from propopt._typing import Array
from propopt.structures.readers.trees.pipelines.views import (
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


def rising(_step: Any, view: View) -> Sources:
    """Steps that rise, or stay, with their column."""
    return tuple(_monotone(source, straight=False) for source in view.sources)


def rescaled(step: Any, view: View) -> Sources:
    """Straight ones, but for what is clipped."""
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


def powers(step: Any, view: View) -> Sources:
    """Powers of Yeo and Johnson have a kink in their slope at 0."""
    kinks = (0.0,) if step.method == "yeo-johnson" else ()
    return tuple(
        _curved(source, kinks, view, k) for k, source in enumerate(view.sources)
    )


def splines(step: Any, view: View) -> Sources | None:
    """Each column becomes several curves, with kinks at their knots."""
    if not all(isinstance(source, Same | Rising | Curved) for source in view.sources):
        return None
    n_each = step.n_features_out_ // len(view.sources)
    pairs = zip(view.sources, step.bsplines_, strict=True)
    curved = [
        _curved(source, np.unique(spline.t).tolist(), view, k)
        for k, (source, spline) in enumerate(pairs)
    ]
    return tuple(source for source in curved for _ in range(n_each))


def _curved(
    source: ColumnSource, knots: Sequence[float], view: View, k: int
) -> ColumnSource:
    """What is seen of column k behind any map of it, with kinks where it has them."""
    match source:
        case Same(column):
            return Curved(column, tuple(knots))
        case Rising(column, True) if len(knots) > 0:
            return Curved(column, _in_table(knots, column, view, k))
        case Rising(column, _) | Curved(column, _):
            return Curved(column)  # kinks are not known in units of the table
        case _:
            return source


def _in_table(
    knots: Sequence[float], column: int, view: View, k: int
) -> tuple[float, ...]:
    """Kinks in what is seen of a column through scalers, in units of the table."""
    points = np.tile(view.start, (2, 1))
    points[:, column] = 0.0, _FAR
    zero, far = table_numbers(view.sees(points))[:, k].astype(np.float64).tolist()
    slope = (far - zero) / _FAR
    return tuple(((np.asarray(knots) - zero) / slope).tolist()) if slope > 0.0 else ()


_FAR: Final = 2.0**60
"""A number so large that the slope of a scaler keeps its digits."""


def _told_missing(source: ColumnSource) -> ColumnSource:
    """What tells whether a number is missing: constant of all that are not."""
    match source:
        case Same(column) | Rising(column, _):
            return Rising(column, straight=True)
        case _:
            return source


def binned(step: Any, view: View) -> Sources | None:
    """Numbers of bins; none of indicators."""
    return rising(step, view) if step.encode == "ordinal" else None


def imputed(step: Any, view: View) -> Sources | None:
    """Columns that have any number, then those that tell what was missing."""
    if not _is_missing(step.missing_values):
        return None  # another number is replaced
    known = ~pd.isna(np.asarray(step.statistics_, dtype=object))
    kept = known | step.keep_empty_features
    told = [] if step.indicator_ is None else step.indicator_.features_
    indicators = (_told_missing(view.sources[k]) for k in told)
    return (*_chosen(view.sources, kept), *indicators)


def indicated(step: Any, view: View) -> Sources | None:
    """Columns that tell what was missing."""
    if not _is_missing(step.missing_values):
        return None
    return tuple(_told_missing(view.sources[k]) for k in step.features_)


def _is_missing(value: Any) -> bool:
    return bool(pd.isna(value))


def one_hot(step: Any, view: View) -> Sources | None:
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


def ordinal(step: Any, view: View) -> Sources | None:
    """Numbers of categories."""
    return _encoded(step, view)


def target_encoded(step: Any, view: View) -> Sources | None:
    """A number for each category; of several classes it is not read."""
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


def function(step: Any, view: View) -> Sources | None:
    """A function of each number, or one that changes none: what makes an array."""
    if step.func is None:
        return view.sources
    if isinstance(step.func, np.ufunc) and not step.kw_args:
        return tuple(
            _curved(source, (), view, k) for k, source in enumerate(view.sources)
        )
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


def selected(step: Any, view: View) -> Sources:
    """Columns that were kept."""
    return _chosen(view.sources, step.get_support())


def _chosen(sources: Sources, kept: Any) -> Sources:
    return tuple(s for s, keep in zip(sources, kept, strict=True) if keep)
