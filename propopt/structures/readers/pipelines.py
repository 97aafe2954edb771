"""What trees behind steps of pipelines see of each column.

The map of a column is never written down: the steps of the model themselves are asked.
"""

from __future__ import annotations

import warnings
from collections import UserList
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from propopt.base.arrays import Array, Points
from propopt.structures.kinds import (
    as_step,
    class_name_of,
    fitted_value,
    is_passthrough,
)
from propopt.tables.columns import CategoricalColumn, Numeric, OneHot
from propopt.tables.frames import Labels, as_frame
from propopt.tables.schema import TableSchema


_Kind: TypeAlias = Literal["same", "straight", "rising", "steps", "curved", "codes"]


@final
@dataclass(frozen=True)
class ColumnSource:
    """Where a column comes from that a model sees: one column of the table.

    Its numbers as they are, of which missing ones may be imputed (``same``); through an
    affine nondecreasing map or a constant one, as most scalers are (``straight``);
    through another nondecreasing map (``rising``); through one that is made for a few
    values, as encoders (``steps``); through any map, as powers and splines are
    (``curved``). Or codes of a category through any map (``codes``).
    """

    column: int
    kind: _Kind = "same"
    # of steps the values, increasing; of curves where they have kinks, where known
    numbers: tuple[float, ...] = ()
    # whether steps take other numbers, too; all of them are seen alike
    elsewhere: bool = False

    @property
    def is_nondecreasing(self) -> bool:
        """Whether its map is known to be."""
        return self.kind in ("same", "straight", "rising")


FARTHEST_SINGLE: Final = 1e30
"""Steps that compute in float32 are asked for no larger numbers."""


@final
@dataclass(frozen=True)
class ModelOutput:
    """What is wanted of a model."""

    name: str  # "value", "probability", "log_odds" or "margin"
    # the class, or the column of the output; None where there is only one
    index: int | None

    @property
    def column(self) -> int:
        """Its column among all of its name."""
        return self.index or 0


def floats(values: Any) -> Array:
    """A float64 copy, so that refitting the model cannot change the function."""
    return np.array(values, dtype=np.float64)


@final
@dataclass(frozen=True, eq=False)
class ColumnView:
    """What a part of a model is given."""

    # (D,): how many codes each encoded column of the table has; None for numbers
    n_codes: tuple[int | None, ...]
    start: Array  # (D,): a row that the model takes
    # from rows of the table (n, D) to what the part is given
    sees: Callable[[Points], Any]
    # (M,): where each column comes from of what the part is given
    sources: tuple[ColumnSource, ...]
    plain: bool  # whether it is given the numbers of the table as they are

    @classmethod
    def of_numbers(cls, n_columns: int, table: Callable[[Points], Any]) -> ColumnView:
        """A table of numbers, given to a model by ``table``."""
        sources = tuple(map(ColumnSource, range(n_columns)))
        return cls((None,) * n_columns, np.zeros(n_columns), table, sources, plain=True)

    @classmethod
    def of_schema(cls, schema: TableSchema) -> ColumnView:
        """A table with categories, given to a model as the DataFrame it was."""
        source_of: dict[Any, ColumnSource] = {}
        for j, column in enumerate(schema.columns):
            source = ColumnSource(
                j, "codes" if isinstance(column, CategoricalColumn) else "same"
            )
            labels = column.members if isinstance(column, OneHot) else (column.name,)
            source_of.update(dict.fromkeys(labels, source))
        start = [
            float(np.argmax(column.frequencies))
            if isinstance(column, CategoricalColumn)
            else 0.0
            for column in schema.columns
        ]
        return cls(
            schema.n_codes,
            np.array(start),
            lambda points: schema.decode(_in_their_precision(points, schema), Labels()),
            tuple(source_of[label] for label in schema.header),
            plain=not schema.categorical.any(),
        )

    @property
    def n_columns(self) -> int:
        """D."""
        return len(self.n_codes)

    @property
    def labels(self) -> list[Any] | None:
        """The labels of what is given; None of an array."""
        frame = as_frame(self.sees(self.start[None, :]), "X")
        return None if frame is None else frame.table.columns.tolist()

    def through(
        self, step: Callable[[Any], Any], sources: Sequence[ColumnSource]
    ) -> ColumnView:
        """The view behind a step, whose columns have these sources."""
        start = self.start.copy()
        for source in sources:
            if source.kind == "steps":  # others may be refused
                start[source.column] = source.numbers[0]
        before = self.sees
        return replace(
            self,
            start=start,
            sees=lambda points: step(before(points)),
            sources=tuple(sources),
            plain=False,
        )

    def chosen(self, columns: NDArray[np.intp]) -> ColumnView:
        """The view of some columns."""
        before, sources = self.sees, tuple(self.sources[k] for k in columns)
        return replace(
            self, sees=lambda points: _taken(before(points), columns), sources=sources
        )

    def ask(
        self,
        numbers: Callable[[Any], Array],
        seen: NDArray[np.intp],
        values: Array,
    ) -> Array:
        """What is seen in column ``seen[e]`` where its source is ``values[e]``."""
        # in one table: rows differ in all columns, as each column is seen by itself
        column = np.array([self.sources[k].column for k in seen], dtype=np.intp)
        row = _indices_among_equals(column)
        points = np.tile(self.start, (int(row.max(initial=-1)) + 1, 1))
        points[row, column] = values
        return numbers(self.sees(points))[row, seen]


def plain_array(table: Any) -> NDArray[Any]:
    """What steps of scikit-learn return, as a dense array."""
    return table.toarray() if sp.issparse(table) else np.asarray(table)


def table_numbers(table: Any) -> Array:
    """The same in float64, with NaN for what is missing, (n, M)."""
    frame = as_frame(table, "X")
    if frame is not None:
        return frame.table.to_numpy(dtype=np.float64, na_value=np.nan)
    return plain_array(table).astype(np.float64)


def _in_their_precision(points: Points, schema: TableSchema) -> Points:
    """Numbers of columns of float32 as these hold them, so that steps see float32."""
    rounded = np.array(points)
    for j, column in enumerate(schema.columns):
        if isinstance(column, Numeric) and column.plain == np.float32:
            near = np.clip(points[:, j], -FARTHEST_SINGLE, FARTHEST_SINGLE)
            rounded[:, j] = near.astype(np.float32)
    return rounded


def _taken(table: Any, columns: NDArray[np.intp]) -> Any:
    frame = as_frame(table, "X")
    if frame is not None:
        return frame.table.iloc[:, columns]
    return plain_array(table)[:, columns]


def _indices_among_equals(keys: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many equal ones stand before each, (E,)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    place = np.arange(len(keys)) - np.repeat(starts, np.diff([*starts, len(keys)]))
    indices = np.empty(len(keys), dtype=np.intp)
    indices[order] = place
    return indices


# ---- What steps make of each column, by where it comes from


Sources: TypeAlias = tuple[ColumnSource, ...]
StepRule: TypeAlias = Callable[[Any, ColumnView], Sources | None]
"""From a fitted step and what it sees to the sources of its columns, or None."""


def rising(_step: Any, view: ColumnView) -> Sources:
    """Steps that rise, or stay, with their column."""
    return tuple(_monotone(source, straight=False) for source in view.sources)


def rescaled(step: Any, view: ColumnView) -> Sources:
    """Straight ones, but for what is clipped."""
    clipped = bool(getattr(step, "clip", False))
    return tuple(_monotone(source, straight=not clipped) for source in view.sources)


def _monotone(source: ColumnSource, *, straight: bool) -> ColumnSource:
    """What is seen of a column behind a nondecreasing map of it."""
    if not source.is_nondecreasing:
        return source
    straight = straight and source.kind != "rising"
    return ColumnSource(source.column, "straight" if straight else "rising")


def powers(step: Any, view: ColumnView) -> Sources:
    """Powers of Yeo and Johnson have a kink in their slope at 0."""
    return _all_curved(view, (0.0,) if step.method == "yeo-johnson" else ())


def _all_curved(view: ColumnView, kinks: Sequence[float] = ()) -> Sources:
    sources = enumerate(view.sources)
    return tuple(_curved(source, kinks, view, k) for k, source in sources)


def splines(step: Any, view: ColumnView) -> Sources | None:
    """Each column becomes several curves, with kinks at their knots."""
    if any(source.kind in ("steps", "codes") for source in view.sources):
        return None
    n_each = step.n_features_out_ // len(view.sources)
    pairs = zip(view.sources, step.bsplines_, strict=True)
    curved = [
        _curved(source, np.unique(spline.t).tolist(), view, k)
        for k, (source, spline) in enumerate(pairs)
    ]
    return tuple(source for source in curved for _ in range(n_each))


def _curved(
    source: ColumnSource, knots: Sequence[float], view: ColumnView, k: int
) -> ColumnSource:
    """What is seen of column k behind any map of it, with kinks where it has them."""
    column, known = source.column, tuple(knots)
    match source.kind:
        case "steps" | "codes":
            return source
        case "straight" if known:  # what is seen through scalers, in units of the table
            points = np.tile(view.start, (2, 1))
            points[:, column] = 0.0, _FAR
            zero, far = table_numbers(view.sees(points))[:, k].tolist()
            slope = (far - zero) / _FAR
            rises = slope > 0.0
            known = tuple((knot - zero) / slope for knot in known) if rises else ()
        case "rising" | "curved":
            known = ()  # kinks are not known in units of the table
    return ColumnSource(column, "curved", known)


_FAR: Final = 2.0**60
"""A number so large that the slope of a scaler keeps its digits."""


def binned(step: Any, view: ColumnView) -> Sources | None:
    """Numbers of bins; none of indicators."""
    return rising(step, view) if step.encode == "ordinal" else None


def imputed(step: Any, view: ColumnView) -> Sources | None:
    """Columns that have any number, then those that tell what was missing."""
    if not pd.isna(step.missing_values):
        return None  # another number is replaced
    if (
        class_name_of(step) == "sklearn.MissingIndicator"
    ):  # constant of all that are not missing
        told = [view.sources[k] for k in step.features_]
        return tuple(
            ColumnSource(source.column, "straight")
            if source.is_nondecreasing
            else source
            for source in told
        )
    known = ~pd.isna(np.asarray(step.statistics_, dtype=object))
    kept = known | step.keep_empty_features
    behind_them = step.indicator_ and imputed(step.indicator_, view)
    return (*_chosen(view.sources, kept), *(behind_them or ()))


def one_hot(step: Any, view: ColumnView) -> Sources | None:
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


def _encoded(step: Any, view: ColumnView) -> Sources | None:
    """Where each column of an encoder comes from, by the categories that it knows.

    That of targets of several classes makes several columns of each, and is not read.
    """
    if fitted_value(step, "target_type_") == "multiclass":
        return None
    others = getattr(step, "handle_unknown", "ignore") != "error"
    pairs = zip(view.sources, step.categories_, strict=True)
    sources = [encoded_as(source, categories, others) for source, categories in pairs]
    return None if None in sources else tuple(s for s in sources if s is not None)


def encoded_as(
    source: ColumnSource, categories: Any, others: bool = True
) -> ColumnSource | None:
    """The source of what an encoder of some categories makes of a column."""
    if source.kind != "same":
        return source if source.kind in ("codes", "steps") else None
    numbers = pd.to_numeric(pd.Series(categories), errors="coerce").dropna()
    values = tuple(np.unique(numbers.to_numpy(dtype=np.float64)).tolist())
    return ColumnSource(source.column, "steps", values, others) if values else None


def function(step: Any, view: ColumnView) -> Sources | None:
    """A function of each number, or one that changes none: what makes an array."""
    if step.func is None:
        return view.sources
    if isinstance(step.func, np.ufunc) and not step.kw_args:
        return _all_curved(view)
    points = np.tile(view.start, (len(_PROBES), 1))
    for source in view.sources:
        if source.is_nondecreasing:
            points[:, source.column] = np.roll(_PROBES, source.column)
    given = view.sees(points)
    try:
        behind_it = step.transform(given)
    except Exception:  # noqa: BLE001 - one that checks its table may raise anything
        return None
    try:
        same = np.array_equal(table_numbers(given), table_numbers(behind_it))
    except (TypeError, ValueError):  # text is no number
        return None
    return view.sources if same else None


_PROBES: Final[Array] = np.array([0.0, -2.5, 1e-9, -3e7, 0.1, 7.0, 12345.678, 1.0])


def selected(step: Any, view: ColumnView) -> Sources:
    """Columns that were kept."""
    return _chosen(view.sources, step.get_support())


def _chosen(sources: Sources, kept: Any) -> Sources:
    return tuple(s for s, keep in zip(sources, kept, strict=True) if keep)


def behind(step: Any, view: ColumnView) -> ColumnView | None:
    """What is seen behind a step; None unless its columns are each made of one."""
    step = as_step(step)
    if is_passthrough(step):
        return view
    if type(step) is Pipeline:
        seen: ColumnView | None = view
        for _, part in step.steps:
            seen = None if seen is None else behind(part, seen)
        return seen
    sources = _sources(step, view)
    return None if sources is None else view.through(step.transform, sources)


def _sources(step: Any, view: ColumnView) -> Sources | None:
    step = as_step(step)
    if is_passthrough(step) or type(step) is Pipeline:
        seen = behind(step, view)
        return None if seen is None else seen.sources
    rule = STEPS.get(class_name_of(step))
    return None if rule is None else rule(step, view)


def _in_parts(step: Any, view: ColumnView) -> Sources | None:
    """Of a transformer for each part of the columns, what each makes of its own."""
    parts: dict[int, ColumnSource] = {}
    for name, part, columns in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        sources = _sources(part, _part_of(view, step, _listed(columns)))
        indices = range(*step.output_indices_[name].indices(2**62))
        if sources is None or len(sources) != len(indices):
            return None
        parts.update(zip(indices, sources, strict=True))
    return tuple(parts[k] for k in sorted(parts))


def _listed(columns: Any) -> Any:
    """Columns as they are; of those that remain, scikit-learn 1.6 warns when read."""
    if not isinstance(columns, UserList):
        return columns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return list(columns)


def _part_of(view: ColumnView, step: Any, columns: Any) -> ColumnView:
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


def _in_union(step: Any, view: ColumnView) -> Sources | None:
    if step.transformer_weights is not None:
        return None
    parts = [_sources(part, view) for _, part in step.transformer_list]
    if None in parts:
        return None
    return tuple(source for part in parts for source in part or ())


STEPS: Final[Mapping[str, StepRule]] = {
    "sklearn.ColumnTransformer": _in_parts,
    "sklearn.FeatureUnion": _in_union,
    "sklearn.FunctionTransformer": function,
    "sklearn.KBinsDiscretizer": binned,
    "sklearn.MissingIndicator": imputed,
    "sklearn.OneHotEncoder": one_hot,
    "sklearn.OrdinalEncoder": _encoded,
    "sklearn.PowerTransformer": powers,
    "sklearn.SplineTransformer": splines,
    "sklearn.SimpleImputer": imputed,
    "sklearn.TargetEncoder": _encoded,
    **dict.fromkeys(("sklearn.Binarizer", "sklearn.QuantileTransformer"), rising),
    **dict.fromkeys(
        (
            "sklearn.MaxAbsScaler",
            "sklearn.MinMaxScaler",
            "sklearn.RobustScaler",
            "sklearn.StandardScaler",
        ),
        rescaled,
    ),
    **dict.fromkeys(
        (
            "sklearn.GenericUnivariateSelect",
            "sklearn.RFE",
            "sklearn.RFECV",
            "sklearn.SelectFdr",
            "sklearn.SelectFpr",
            "sklearn.SelectFromModel",
            "sklearn.SelectFwe",
            "sklearn.SelectKBest",
            "sklearn.SelectPercentile",
            "sklearn.SequentialFeatureSelector",
            "sklearn.VarianceThreshold",
        ),
        selected,
    ),
}
"""Classes of steps, with what is known of each; never their subclasses."""
