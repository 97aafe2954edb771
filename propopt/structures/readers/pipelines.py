"""The input columns of a model after the steps of a pipeline, by their source columns.

Transformations of columns are never copied: the steps of the model themselves are
evaluated.
"""

from __future__ import annotations

import warnings
from collections import UserList
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias, final

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
from propopt.tables.frames import Labels, as_frame, column_names, select_columns
from propopt.tables.schema import TableSchema


_Kind: TypeAlias = Literal["same", "straight", "rising", "steps", "curved", "codes"]


class ColumnSource(NamedTuple):
    """The table column behind an input column of a model, and the kind of map.

    Kinds of maps: unchanged numbers, with missing ones possibly imputed (``same``); an
    affine nondecreasing map or a constant, as most scalers (``straight``); another
    nondecreasing map (``rising``); a table of a few values, as encoders (``steps``);
    any map, as powers and splines (``curved``); any map of the codes of a category
    (``codes``).
    """

    column: int
    kind: _Kind = "same"
    # the values of steps, increasing; the kinks of curves, if available
    numbers: tuple[float, ...] = ()
    # whether steps accept other numbers, too, and map all of them to one value
    elsewhere: bool = False

    @property
    def is_nondecreasing(self) -> bool:
        """Whether the map is nondecreasing by construction."""
        return self.kind in ("same", "straight", "rising")


FARTHEST_SINGLE: Final = 1e30
"""The largest number at which steps that compute in float32 are evaluated."""


@final
@dataclass(frozen=True)
class ModelOutput:
    """The output of a model to be computed exactly, by name and index."""

    name: str  # "value", "probability", "log_odds" or "margin"
    # the class, or the column of the output; None where there is only one
    index: int | None

    @property
    def column(self) -> int:
        """The column of the output; 0 if there is only one."""
        return self.index or 0


def floats(values: Any) -> Array:
    """A float64 copy, so that refitting the model cannot change the function."""
    return np.array(values, dtype=np.float64)


@final
@dataclass(frozen=True, eq=False)
class ColumnView:
    """The input of a part of a model, as a function of the rows of the table."""

    # (D,): the number of codes of each encoded column of the table; None for numbers
    n_codes: tuple[int | None, ...]
    start: Array  # (D,): a row that the model accepts
    # from rows of the table (n, D) to the input of the part
    transform: Callable[[Points], Any]
    # (M,): the source of each input column of the part
    sources: tuple[ColumnSource, ...]
    plain: bool  # whether the input is the numbers of the table, unchanged
    counts: bool = False  # whether the table has counts, which are never missing

    @classmethod
    def of_numbers(cls, n_columns: int, table: Callable[[Points], Any]) -> ColumnView:
        """The view of a numeric table, in the form that ``table`` gives to a model."""
        sources = _unchanged(n_columns)
        return cls((None,) * n_columns, np.zeros(n_columns), table, sources, plain=True)

    @classmethod
    def of_counts(cls, n_features: int) -> ColumnView:
        """The view of a sparse table of counts, as vectorisers make it."""
        return replace(cls.of_numbers(n_features, sp.csr_array), counts=True)

    @classmethod
    def of_schema(cls, schema: TableSchema) -> ColumnView:
        """The view of a table with categories, decoded to the original DataFrame."""
        source_of: dict[Any, ColumnSource] = {}
        start = np.zeros(len(schema.columns))
        for j, column in enumerate(schema.columns):
            source = ColumnSource(j)
            if isinstance(column, CategoricalColumn):
                source = ColumnSource(j, "codes")
                start[j] = np.argmax(column.frequencies)
            labels = column.members if isinstance(column, OneHot) else (column.name,)
            source_of.update(dict.fromkeys(labels, source))
        return cls(
            schema.n_codes,
            start,
            lambda points: schema.decode(_in_their_precision(points, schema), Labels()),
            tuple(map(source_of.__getitem__, schema.header)),
            plain=schema.is_numeric,
        )

    @property
    def n_columns(self) -> int:
        """The number D of columns of the table."""
        return len(self.n_codes)

    @property
    def is_table(self) -> bool:
        """Whether the input is the whole table of numbers, unchanged."""
        return self.plain and self.sources == _unchanged(self.n_columns)

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The column labels of the input; None for an array."""
        return column_names(self.transform(self.start[None, :]))

    def through(
        self, step: Callable[[Any], Any], sources: Sequence[ColumnSource]
    ) -> ColumnView:
        """The view after a step, with given sources of its columns."""
        start = self.start.copy()
        for source in sources:
            if source.kind == "steps":  # others may be refused
                start[source.column] = source.numbers[0]
        before = self.transform
        return replace(
            self,
            start=start,
            transform=lambda points: step(before(points)),
            sources=tuple(sources),
            plain=False,
        )

    def chosen(self, columns: NDArray[np.intp]) -> ColumnView:
        """The view of some of the input columns."""
        before = self.transform
        sources = tuple(self.sources[k] for k in columns)
        return replace(
            self,
            transform=lambda points: _taken(before(points), columns),
            sources=sources,
        )

    def probe(
        self, numbers: Callable[[Any], Array], seen: NDArray[np.intp], values: Array
    ) -> Array:
        """Input columns ``seen[e]`` where their source has the value ``values[e]``."""
        # one table serves all: each input column depends on one column of the table
        column = np.array([self.sources[k].column for k in seen], dtype=np.intp)
        row = _indices_among_equals(column)
        points = np.tile(self.start, (int(row.max(initial=-1)) + 1, 1))
        points[row, column] = values
        return numbers(self.transform(points))[row, seen]


@lru_cache(maxsize=1)  # texts have up to a million columns
def _unchanged(n_columns: int) -> tuple[ColumnSource, ...]:
    """The sources of the columns of a table of numbers."""
    return tuple(map(ColumnSource, range(n_columns)))


def plain_array(table: Any) -> NDArray[Any]:
    """The output of a step of scikit-learn as a dense array."""
    return table.toarray() if sp.issparse(table) else np.asarray(table)


def table_numbers(table: Any) -> Array:
    """A table in float64, with NaN for missing values, shape (n, M)."""
    frame = as_frame(table, "X")
    if frame is not None:
        return frame.table.to_numpy(dtype=np.float64, na_value=np.nan)
    return plain_array(table).astype(np.float64)


def _in_their_precision(points: Points, schema: TableSchema) -> Points:
    """Numbers of float32 columns rounded to float32, as the steps receive them."""
    rounded = np.array(points)
    for j, column in enumerate(schema.columns):
        if isinstance(column, Numeric) and column.plain == np.float32:
            clipped = np.clip(points[:, j], -FARTHEST_SINGLE, FARTHEST_SINGLE)
            rounded[:, j] = clipped.astype(np.float32)
    return rounded


def _taken(table: Any, columns: NDArray[np.intp]) -> Any:
    """Some columns of a frame or an array."""
    dense = table.toarray() if sp.issparse(table) else table
    return select_columns(dense, columns.tolist())


def _indices_among_equals(keys: NDArray[np.intp]) -> NDArray[np.intp]:
    """The number of equal keys before each key, shape (E,)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    position = np.arange(len(keys)) - np.repeat(starts, np.diff([*starts, len(keys)]))
    indices = np.empty(len(keys), dtype=np.intp)
    indices[order] = position
    return indices


# ---- Rules of steps: the sources of their output columns


Sources: TypeAlias = tuple[ColumnSource, ...]


def rising(_step: Any, view: ColumnView) -> Sources:
    """Sources after steps that are nondecreasing in each column."""
    return tuple(_monotone(source, straight=False) for source in view.sources)


def rescaled(step: Any, view: ColumnView) -> Sources:
    """Sources after scalers: affine, unless they clip."""
    clipped = bool(fitted_value(step, "clip"))
    return tuple(_monotone(source, straight=not clipped) for source in view.sources)


def _monotone(source: ColumnSource, *, straight: bool) -> ColumnSource:
    """The source after a nondecreasing map of a column."""
    if not source.is_nondecreasing:
        return source
    straight = straight and source.kind != "rising"
    return ColumnSource(source.column, "straight" if straight else "rising")


def powers(step: Any, view: ColumnView) -> Sources:
    """Sources after power transformers; Yeo-Johnson has a kink in the slope at 0."""
    return _all_curved(view, (0.0,) if step.method == "yeo-johnson" else ())


def _all_curved(view: ColumnView, kinks: Sequence[float] = ()) -> Sources:
    sources = enumerate(view.sources)
    return tuple(_curved(source, kinks, view, k) for k, source in sources)


def splines(step: Any, view: ColumnView) -> Sources | None:
    """Sources after splines: several curves of each column, with kinks at knots."""
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
    """The source after an arbitrary map of column k, with kinks at its knots."""
    column = source.column
    kinks = tuple(knots)
    match source.kind:
        case "steps" | "codes":
            return source
        case "straight" if kinks:  # knots after scalers, in units of the table
            points = np.tile(view.start, (2, 1))
            points[:, column] = 0.0, _FAR
            zero, far = table_numbers(view.transform(points))[:, k].tolist()
            slope = (far - zero) / _FAR
            rises = slope > 0.0
            kinks = tuple((knot - zero) / slope for knot in kinks) if rises else ()
        case "rising" | "curved":
            kinks = ()  # the knots cannot be converted to units of the table
    return ColumnSource(column, "curved", kinks)


_FAR: Final = 2.0**60
"""A number so large that the slope of a scaler retains its digits."""


def binned(step: Any, view: ColumnView) -> Sources | None:
    """Sources after ordinal bins; None for indicators."""
    return rising(step, view) if step.encode == "ordinal" else None


def imputed(step: Any, view: ColumnView) -> Sources | None:
    """Sources after an imputer: imputed columns, then indicators of missing values."""
    if not pd.isna(step.missing_values):
        return None  # it replaces another number than NaN
    if class_name_of(step) == "sklearn.MissingIndicator":  # constant for all numbers
        indicated = [view.sources[k] for k in step.features_]
        return tuple(
            ColumnSource(source.column, "straight")
            if source.is_nondecreasing
            else source
            for source in indicated
        )
    is_imputable = ~pd.isna(np.asarray(step.statistics_, dtype=object))
    retained = is_imputable | step.keep_empty_features
    indicators = step.indicator_ and imputed(step.indicator_, view)
    return (*_chosen(view.sources, retained), *(indicators or ()))


def one_hot(step: Any, view: ColumnView) -> Sources | None:
    """Sources after a one-hot encoder: one for each category that is not dropped."""
    encoded = _encoded(step, view)
    if encoded is None:
        return None
    rare = fitted_value(step, "infrequent_categories_", [None] * len(encoded))
    dropped = [None] * len(encoded) if step.drop_idx_ is None else step.drop_idx_
    counts = [
        len(categories) - (0 if few is None else len(few) - 1) - (drop is not None)
        for categories, few, drop in zip(step.categories_, rare, dropped, strict=True)
    ]
    pairs = zip(encoded, counts, strict=True)
    return tuple(source for source, count in pairs for _ in range(count))


def _encoded(step: Any, view: ColumnView) -> Sources | None:
    """Source of each column of an encoder, with the categories that it was fitted to.

    A target encoder for several classes makes several columns of each, and has no rule.
    """
    if fitted_value(step, "target_type_") == "multiclass":
        return None
    others = fitted_value(step, "handle_unknown", "ignore") != "error"
    pairs = zip(view.sources, step.categories_, strict=True)
    sources = [encoded_as(source, categories, others) for source, categories in pairs]
    return None if None in sources else tuple(s for s in sources if s is not None)


def encoded_as(
    source: ColumnSource, categories: Any, others: bool = True
) -> ColumnSource | None:
    """The source of a column after an encoder of some categories."""
    if source.kind != "same":
        return source if source.kind in ("codes", "steps") else None
    numbers = pd.to_numeric(pd.Series(categories), errors="coerce").dropna()
    values = tuple(np.unique(numbers.to_numpy(dtype=np.float64)).tolist())
    return ColumnSource(source.column, "steps", values, others) if values else None


def function(step: Any, view: ColumnView) -> Sources | None:
    """Sources after a function transformer: a ufunc, or a function without effect."""
    if step.func is None:
        return view.sources
    if isinstance(step.func, np.ufunc) and not step.kw_args:
        return _all_curved(view)
    points = np.tile(view.start, (len(_PROBES), 1))
    for source in view.sources:
        if source.is_nondecreasing:
            points[:, source.column] = np.roll(_PROBES, source.column)
    before = view.transform(points)
    try:
        after = step.transform(before)
    except Exception:  # noqa: BLE001 - one that checks its table may raise anything
        return None
    try:
        same = np.array_equal(table_numbers(before), table_numbers(after))
    except (TypeError, ValueError):  # text is no number
        return None
    return view.sources if same else None


_PROBES: Final[Array] = np.array([0.0, -2.5, 1e-9, -3e7, 0.1, 7.0, 12345.678, 1.0])


def selected(step: Any, view: ColumnView) -> Sources:
    """Sources of the columns that a selector retains."""
    return _chosen(view.sources, step.get_support())


def _chosen(sources: Sources, is_retained: Any) -> Sources:
    return tuple(s for s, retain in zip(sources, is_retained, strict=True) if retain)


def view_after(step: Any, view: ColumnView) -> ColumnView | None:
    """The view after a step, or None if its columns depend on several columns each."""
    step = as_step(step)
    if is_passthrough(step):
        return view
    if type(step) is Pipeline:
        current: ColumnView | None = view
        for _, part in step.steps:
            current = None if current is None else view_after(part, current)
        return current
    rule = STEPS.get(class_name_of(step))
    sources = None if rule is None else rule(step, view)
    return None if sources is None else view.through(step.transform, sources)


def _sources(step: Any, view: ColumnView) -> Sources | None:
    """The sources of the columns after a step; None if there is no rule for it."""
    after = view_after(step, view)
    return None if after is None else after.sources


def _in_parts(step: Any, view: ColumnView) -> Sources | None:
    """Sources after a ColumnTransformer: those of each transformer for its columns."""
    parts: dict[int, ColumnSource] = {}
    for name, part, columns in step.transformers_:
        if part == "drop":
            continue
        labels: Any = view.labels
        if labels is None:  # perhaps fitted on a table, and given an array
            labels = fitted_value(step, "feature_names_in_")
        every = range(len(view.sources)) if labels is None else labels
        positions = _positions(_listed(columns), every)
        if not len(positions):  # scikit-learn does not fit it
            continue
        sources = _sources(part, view.chosen(positions))
        indices = range(*step.output_indices_[name].indices(2**62))
        if sources is None or len(sources) != len(indices):
            return None
        parts.update(zip(indices, sources, strict=True))
    return tuple(parts[k] for k in sorted(parts))


def columns_read(step: Any) -> set[Any] | None:
    """The labels of the columns that a ColumnTransformer does not drop; None for all.

    None for other steps, and if they are not known.
    """
    if class_name_of(step) != "sklearn.ColumnTransformer":
        return None
    names = fitted_value(step, "feature_names_in_")
    if names is None:
        return None
    read = set[Any]()
    for _, part, columns in step.transformers_:
        if part != "drop":
            read |= {names[k] for k in _positions(_listed(columns), list(names))}
    return read


def _listed(columns: Any) -> Any:
    """Columns as a list, since scikit-learn 1.6 warns when remainders are accessed."""
    if not isinstance(columns, UserList):
        return columns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return list(columns)


def _positions(columns: Any, labels: Sequence[Any]) -> NDArray[np.intp]:
    """The positions of columns that are selected by label, position, slice or mask."""
    order = pd.Series(np.arange(len(labels)), index=pd.Index(labels))
    ends = [columns.start, columns.stop] if isinstance(columns, slice) else columns
    by_name = any(isinstance(x, str) for x in np.atleast_1d(ends).tolist())
    chosen = np.atleast_1d(order.loc[columns] if by_name else order.iloc[columns])
    return chosen.astype(np.intp)


def _in_union(step: Any, view: ColumnView) -> Sources | None:
    if step.transformer_weights is not None:
        return None
    parts = [_sources(part, view) for _, part in step.transformer_list]
    if None in parts:
        return None
    return tuple(source for part in parts for source in part or ())


STEPS: Final[Mapping[str, Callable[[Any, ColumnView], Sources | None]]] = {
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
"""The rule of each class of steps; never used for subclasses."""
