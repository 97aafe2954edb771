"""The law of the package on tables: bins, weighted by bits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self, TypeAlias, final, get_args

import numpy as np

from propopt.base.arrays import Array, Points, Positions, Truths, Values
from propopt.base.checks import read_positive
from propopt.base.errors import InvalidInput, Refused
from propopt.base.resources import require
from propopt.lime.bins import (
    BinRule,
    BinsOfColumns,
    CodedBins,
    NumberBins,
    read_explainer_bins,
    read_explainer_width,
    read_rules,
)
from propopt.lime.laws.lime_law import (
    KernelWidth,
    LimeColumn,
    LimeLaw,
    Tilt,
    read_kernel_width,
    without_glime,
)
from propopt.results.certain import plural
from propopt.structures.products.algebra import Pieces
from propopt.structures.products.normals import Normals
from propopt.tables.columns import Coded, Column
from propopt.tables.frames import Labels, is_frame, listed, read_points
from propopt.tables.schema import TableSchema


# ---- The law of tabular LIME: quantile bins, and weights by agreement of bins


@final
@dataclass(frozen=True, eq=False)
class BinnedColumn:
    """Bins of one column, each with a law of its own, and weights by bits alone.

    A sample falls into bin b with probability w_b, and gets the weight 1 if that is the
    bin of the row, else ε = exp(−1 / (2 ν²)).
    """

    pieces: Pieces  # the law of V_j in each bin, (B,)
    shares: Array  # (B,): w, which sum to 1
    edges: Array  # (B' − 1,): where bins of numbers end
    # (B,): what each bin is, to be read on behind the name of the column
    bins: tuple[str, ...]
    missing: int = -1  # the piece of missing numbers; −1 if there is none
    coded: bool = False  # whether pieces are codes, in increasing order
    scale: float = 1.0  # the width of this column over the kernel width of the law
    asked: int = 0  # how many bins of numbers were asked for; 0 if that is not known

    @property
    def extent(self) -> tuple[float, float]:
        """The lowest and the highest number that is drawn; infinite for categories.

        In a bin of one value its ends count, as the package draws another value there.
        """
        if self.coded:
            return -np.inf, np.inf
        return float(self.pieces.low[0]), float(self.pieces.high[len(self.edges)])

    def place(self, x: Values) -> Positions:
        """The bin of each value, (n,); values beyond the last edges are in end bins."""
        indices = self._place_codes(x) if self.coded else self._place_numbers(x)
        if (indices < 0).any():
            value = x[indices < 0][0]
            word = "a value is missing" if np.isnan(value) else f"there is {value:g}"
            raise InvalidInput(
                f"X: {word}, and no bin is of such values; the data that the law was "
                "made of had none"
            )
        return indices

    def _place_numbers(self, x: Values) -> Positions:
        indices = np.searchsorted(self.edges, x, side="left")
        return np.where(np.isnan(x), self.missing, indices)

    def _place_codes(self, x: Values) -> Positions:
        codes = self.pieces.mean
        indices = np.minimum(np.searchsorted(codes, x), len(codes) - 1)
        same = (codes[indices] == x) | (np.isnan(codes[indices]) & np.isnan(x))
        return np.where(same, indices, -1)

    def tilt(self, x: Values, widths: Values) -> Tilt:
        """The weighted law: bins keep their shares but for the factor ε.

        In a bin with the share 0 nothing is drawn, so no bit of a row there is ever 1.
        """
        own = self.place(x)
        rows = np.arange(len(x))
        w = self.shares[own]
        inside = np.zeros((len(self.shares), len(x)))
        inside[own, rows] = w > 0.0
        outside = np.repeat(self.shares[:, None], len(x), axis=1)
        outside[own, rows] = 0.0
        rest = outside.sum(axis=0)
        np.divide(outside, rest, out=outside, where=rest > 0.0)
        with np.errstate(divide="ignore"):
            log_in, log_out = np.log(w), np.log(rest) - 0.5 / (self.scale * widths) ** 2
        log_weight = np.logaddexp(log_in, log_out)
        return Tilt(
            self.pieces,
            inside,
            outside,
            np.exp(log_in - log_weight),
            np.exp(log_out - log_weight),
            log_weight,
        )

    def log_kernel(self, x: Array, values: Array, bits: Array, width: Array) -> Array:
        """−(1 − z) / (2 ν_j²)."""
        del x, values
        return np.asarray((bits - 1.0) / (2.0 * (self.scale * width) ** 2))


# ---- Laws that are their columns, a kernel width and names


@dataclass(frozen=True, eq=False, repr=False)
class LawOfColumns(LimeLaw):
    """A law that is known by these three: others are made of it by replacing."""

    columns: tuple[LimeColumn, ...]  # (D,): the law of each column
    kernel_width: float  # ν
    labels: Labels = Labels()

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns, (D,)."""
        return self.labels.feature_names(len(self.columns))

    def with_width(self, kernel_width: float) -> Self:
        """The same columns with another width; those of columns keep their ratios."""
        return replace(self, kernel_width=read_positive(kernel_width, "kernel_width"))

    def reordered(self, order: Positions) -> Self:
        """The same law of columns in another order, (D,)."""
        columns = tuple(self.columns[j] for j in order.tolist())
        return replace(self, columns=columns, labels=self.labels.of_features(order))

    def __repr__(self) -> str:
        n_bins = sum(len(column.bins) for column in self.columns)
        return (
            f"{type(self).__name__}({plural(len(self.columns), 'column')}, "
            f"{plural(n_bins, 'bin')}, kernel_width={self.kernel_width:.4g})"
        )


# ---- Columns whose samples are weighted by bits alone


def binned_columns(law: LimeLaw) -> tuple[BinnedColumn | None, ...]:
    """The columns in bins, (D,); None for those whose kernel is of distances."""
    own = map(without_glime, law.columns)
    return tuple(c if isinstance(c, BinnedColumn) else None for c in own)


# ---- Bins of the columns of a table, with their shares


BinWeights: TypeAlias = Literal["frequency", "uniform"]


def read_data(
    X: Any, schema: TableSchema | None, categorical: Sequence[Hashable]
) -> tuple[Points, Labels, TableSchema | None, Truths]:
    """Encoded rows, their names, and which columns are categories."""
    if schema is not None and len(categorical) > 0:
        raise InvalidInput("categorical: the schema says which columns are categories")
    if schema is None and len(categorical) > 0 and is_frame(X, "X"):
        schema = TableSchema.of(X, categorical)
    if schema is not None:
        points, labels = schema.encode(X)
        return points, labels, schema, schema.categorical
    points, labels = read_points(X, "X")
    coded = np.zeros(points.shape[1], dtype=bool)
    coded[_positions(categorical, points.shape[1])] = True
    return points, labels, None, coded


def _positions(categorical: Sequence[Hashable], n_columns: int) -> list[int]:
    known = range(n_columns)
    unknown = [column for column in categorical if column not in known]
    if unknown:
        raise InvalidInput(
            f"categorical: expected positions from 0 to {n_columns - 1}, got "
            f"{listed(unknown)}"
        )
    return [int(column) for column in categorical]  # type: ignore[call-overload]


def columns_of(
    points: Points,
    names: Sequence[str],
    schema: TableSchema | None,
    coded: Truths | None = None,
    n_bins: object = 4,
    weights: BinWeights = "frequency",
    package: bool = False,
) -> list[BinnedColumn]:
    """The bins of each column, with a share for each."""
    if weights not in get_args(BinWeights):
        raise InvalidInput(
            f"weights: expected 'frequency' or 'uniform', got {weights!r}"
        )
    own: Sequence[Column | None] = (
        [None] * len(names) if schema is None else schema.columns
    )
    if coded is None:
        coded = np.array([isinstance(column, Coded) for column in own])
    rules = read_rules(n_bins, names)
    columns = []
    for j, (name, values) in enumerate(zip(names, points.T, strict=True)):
        if coded[j]:
            columns.append(coded_column(_codes(values, own[j]), weights))
            continue
        if package:
            bins = _of_package(values, rules[j], name)
        else:
            known = values[~np.isnan(values)]
            bins = NumberBins.of(values, rules[j].inner_edges(known))
        columns.append(number_column(bins, weights, rules[j].n_bins))
    return columns


def number_column(
    bins: NumberBins, weights: BinWeights = "frequency", asked: int = 0
) -> BinnedColumn:
    """The column of bins of numbers."""
    return BinnedColumn(
        bins.pieces,
        _shares(bins.frequencies, weights),
        bins.edges,
        bins.words,
        bins.missing,
        asked=asked,
    )


def coded_column(codes: CodedBins, weights: BinWeights = "frequency") -> BinnedColumn:
    """The column of categories."""
    values, frequencies, names = codes
    return BinnedColumn(
        Pieces.of_values(values),
        _shares(frequencies, weights),
        np.zeros(0),
        tuple(f"= {name}" for name in names),
        coded=True,
    )


def _codes(values: Array, column: Column | None) -> CodedBins:
    if isinstance(column, Coded):
        n_codes = len(column.frequencies)
        known = np.arange(float(n_codes))
        counts = np.bincount(column.codes(values), minlength=n_codes)
        names = tuple(str(category) for category in column.categories)
    else:
        known, counts = np.unique(values, return_counts=True)
        names = tuple(f"{value:.17g}" for value in known)
    return known, counts / counts.sum(), names


def _of_package(values: Array, rule: BinRule, name: str) -> NumberBins:
    if np.isnan(values).any():
        raise InvalidInput(
            f"X: column {name!r} has missing numbers, and the lime package takes none; "
            "without package=True they are a bin of their own"
        )
    return NumberBins.of_package(values, rule.inner_edges(values))


def _shares(frequencies: Array, weights: BinWeights) -> Array:
    """Frequencies, or the same share for each bin that has data."""
    if weights == "frequency":
        return frequencies
    some = frequencies > 0.0
    return np.asarray(some / some.sum())


# ---- Explainers of the ``lime`` package that draw from bins of ours


_STATISTICS: Final = (
    "bins",
    "means",
    "stds",
    "mins",
    "maxs",
    "feature_values",
    "feature_frequencies",
)


def package_explainer(
    columns: Sequence[BinnedColumn], names: Sequence[str], **settings: Any
) -> Any:
    """An explainer of the package with the bins of columns (D,) of these names.

    columns (D,), names (D,).
    """
    _check(columns, names)
    coded = [j for j, column in enumerate(columns) if column.coded]
    sampled = [column.pieces.mean[column.shares > 0.0][0] for column in columns]
    module = require("lime.lime_tabular")
    return module.LimeTabularExplainer(
        np.array([sampled, sampled]),  # the package reads nothing else of its data
        feature_names=list(names),
        categorical_features=coded,
        categorical_names={j: _category_names(columns[j]) for j in coded},
        training_data_stats=_statistics(columns),
        **settings,
    )


def _check(columns: Sequence[BinnedColumn], names: Sequence[str]) -> None:
    """Refuse what the package does not have."""
    named = list(zip(names, columns, strict=True))
    missing = [name for name, column in named if np.isnan(column.pieces.mean).any()]
    if missing:
        raise Refused(
            f"to_lime: numbers are missing in {listed(missing)}, and the package "
            "has no bin for them"
        )
    own = [name for name, column in named if column.scale != 1.0]
    if own:
        raise Refused(
            f"to_lime: {listed(own)} have kernel widths of their own, and the "
            "package has one for all columns"
        )


def _category_names(column: BinnedColumn) -> dict[int, str]:
    codes = column.pieces.mean.astype(int).tolist()
    words = (word.removeprefix("= ") for word in column.bins)
    return dict(zip(codes, words, strict=True))


def _statistics(columns: Sequence[BinnedColumn]) -> dict[str, dict[int, Any]]:
    """What the package takes as ``training_data_stats``, with its key ``bins``.

    The package draws (low − mean) / sd where both ends of a bin are equal, which is the
    value where mean = 0 and sd = 1. It needs an edge in each column: ∞ where there is
    none, with a second bin that is never drawn.
    """
    stats: dict[str, dict[int, Any]] = {name: {} for name in _STATISTICS}
    for j, column in enumerate(columns):
        laws, edges, sampled = column.pieces, column.edges, column.shares > 0.0
        stats["feature_frequencies"][j] = column.shares[sampled].tolist()
        if column.coded:
            stats["feature_values"][j] = laws.mean[sampled].tolist()
            continue
        stats["feature_values"][j] = np.flatnonzero(sampled).tolist()
        stats["bins"][j] = edges.tolist() if len(edges) > 0 else [np.inf]
        one = laws.single
        moments = {
            "means": np.where(one, 0.0, laws.mean),
            "stds": np.where(one, 1.0, laws.sd),
            "mins": np.where(one, laws.mean, laws.low),
            "maxs": np.where(one, laws.mean, laws.high),
        }
        spare = [1.0] if len(edges) == 0 else []
        for name, numbers in moments.items():
            stats[name][j] = [*numbers.tolist(), *spare]
    return stats


# ---- What readers of explanations have to know of the bins behind them


_UNEVEN: Final = 1.1
"""Shares of bins are uneven where the largest is so many times the smallest."""

_MOVED: Final = 0.25
"""Samples of a bin have another mean where it is so many deviations away."""

_Named: TypeAlias = Sequence[tuple[str, BinnedColumn]]


def notes_of_bins(
    names: Sequence[str], columns: Sequence[BinnedColumn], points: Points
) -> tuple[str, ...]:
    """A sentence for each thing that is so of some rows (n, D), or of some bins."""
    named = list(zip(names, columns, strict=True))
    of_rows = (
        (_outside, "values outside those of the data, which count as in the end bins"),
        (_in_empty_bins, "values in bins without data, where coefficients are 0"),
        (_on_edges, "values on an edge, which belong to the bin below it"),
    )
    of_columns = (
        (_constant, "have one bin, so that their coefficients are 0"),
        (_merged, "have fewer bins than asked for, as quantiles are equal"),
        (_uneven, "have bins that are not drawn alike, but as often as in the data"),
    )
    rows = (_note_of_rows(named, points, test, label) for test, label in of_rows)
    bins = (_note_of_columns(named, test, label) for test, label in of_columns)
    return tuple(note for note in (*rows, *bins, _moved(named)) if note)


def _note_of_rows(
    named: _Named,
    points: Points,
    test: Callable[[BinnedColumn, Array], Truths],
    label: str,
) -> str:
    result = np.stack(
        [test(column, x) for (_, column), x in zip(named, points.T, strict=True)],
        axis=1,
    )
    if not result.any():
        return ""
    wrong = [
        name for (name, _), some in zip(named, result.T, strict=True) if some.any()
    ]
    n_rows = int(result.any(axis=1).sum())
    return f"{_rows(n_rows)} {label}: {listed(wrong, 3)}"


def _note_of_columns(
    named: _Named, test: Callable[[BinnedColumn], bool], label: str
) -> str:
    names = [name for name, column in named if test(column)]
    return f"columns {label}: {listed(names, 3)}" if names else ""


def _rows(count: int) -> str:
    return "1 row has" if count == 1 else f"{count:,} rows have"


def _outside(column: BinnedColumn, x: Array) -> Truths:
    low, high = column.extent
    return (x < low) | (x > high)


def _in_empty_bins(column: BinnedColumn, x: Array) -> Truths:
    return np.asarray(column.shares[column.place(x)] == 0.0)


def _on_edges(column: BinnedColumn, x: Array) -> Truths:
    return np.isin(x, column.edges)


def _constant(column: BinnedColumn) -> bool:
    return int((column.shares > 0.0).sum()) == 1


def _merged(column: BinnedColumn) -> bool:
    return len(column.edges) + 1 < column.asked and not _constant(column)


def _uneven(column: BinnedColumn) -> bool:
    if column.coded:
        return False
    shares = column.shares[: len(column.edges) + 1]
    sampled = shares[shares > 0.0]
    return len(sampled) > 0 and bool(sampled.max() > _UNEVEN * sampled.min())


def _moved(named: _Named) -> str:
    """Of bins whose samples have another mean than the data, the one that is worst."""
    told = [
        (name, word)
        for name, column in named
        if not column.coded
        for word, one in zip(column.bins, column.pieces.single.tolist(), strict=True)
        if not one
    ]
    if not told:
        return ""
    own = [column.pieces.normals for _, column in named if not column.coded]
    normals = Normals.joined(own)
    sampled = normals.means
    gaps = np.abs(sampled - normals.mean) / normals.sd
    moved = np.flatnonzero(gaps > _MOVED).tolist()
    if not moved:
        return ""
    k = max(moved, key=lambda k: (gaps[k], *told[k]))
    more = f", and {len(moved) - 1:,} other bins" if len(moved) > 1 else ""
    return (
        f"samples of a bin have another mean than its data: {sampled[k]:.4g} and "
        f"{normals.mean[k]:.4g} for {told[k][0]} {told[k][1]}{more}"
    )


@final
@dataclass(frozen=True, eq=False, repr=False)
class TabularLaw(LawOfColumns):
    """Bins drawn by their shares, values by the law of their bin, weights by bits.

    π = exp(−‖1 − z‖² / (2 ν²)) (Garreau and von Luxburg 2020, Eq. 2). With a width ν_j
    for each column, (1 − z_j)² is divided by its own 2 ν_j², and ν with
    1/ν² = mean 1/ν_j² scales them all.

    Parameters
    ----------
    columns : tuple of BinnedColumn (D,)
        The bins.
    kernel_width : float
        ν.
    labels : Labels
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> law = TabularLaw.from_data(X, n_bins=3)
    >>> law
    TabularLaw(3 columns, 9 bins, kernel_width=1.299)
    >>> law.columns[0].bins
    ('≤ -0.4848', '> -0.4848 and ≤ 0.3281', '> 0.3281')
    """

    columns: tuple[BinnedColumn, ...]

    @classmethod
    def of(
        cls,
        columns: Sequence[BinnedColumn],
        kernel_width: KernelWidth = None,
        labels: Labels | None = None,
    ) -> TabularLaw:
        """The law of bins; without a width it is the package's, 0.75 √D.

        Parameters
        ----------
        columns : sequence of BinnedColumn (D,)
            The bins.
        kernel_width : float, "package", "paper" or array (D,), optional
            ν > 0; 0.75 √D, √(0.75 D), or a width for each column.
        labels : Labels, optional
            Names of the columns.
        """
        width, scales = read_kernel_width(kernel_width, len(columns))
        scaled = tuple(
            replace(column, scale=float(scale))
            for column, scale in zip(columns, scales, strict=True)
        )
        return cls(scaled, width, Labels() if labels is None else labels)

    @classmethod
    def from_data(
        cls,
        X: Any,
        schema: TableSchema | None = None,
        *,
        n_bins: BinsOfColumns = 4,
        kernel_width: KernelWidth = None,
        weights: BinWeights = "frequency",
        package: bool = False,
        categorical: Sequence[Hashable] = (),
    ) -> TabularLaw:
        """The law whose bins are those of a table, usually that of the model.

        A bin has the mean and the deviation of its rows as location and scale of a
        truncated normal law; a bin of one value draws that value; categories are bins,
        and so is to be missing, where something is.

        Parameters
        ----------
        X : DataFrame or array (m, D)
            The table.
        schema : TableSchema, optional
            What its columns are, if some are categories.
        n_bins : int, str, mapping or sequence
            Bins between quantiles of a column of numbers, at least 2; ``"quartile"``,
            ``"decile"``; or inner edges. A mapping has them by names of columns (4 for
            others), a sequence one for each of D columns. Equal quantiles make fewer.
        kernel_width : float, "package", "paper" or array (D,), optional
            ν > 0; by default the package's 0.75 √D, and ``"paper"`` is √(0.75 D). An
            array is a width for each column.
        weights : {"frequency", "uniform"}
            Whether a bin is drawn as often as it is in the data, as by the package, or
            all of a column that have data alike, as in the paper.
        package : bool
            Whether to have the ``lime`` package's conventions of bins, errors included:
            1e-11 on top of each deviation, and a bin of one end drawn as a z-score.
        categorical : sequence of columns
            Positions or names of columns whose values are categories, where there is
            no schema.

        Raises
        ------
        InvalidInput
            If the table cannot be read, an argument is outside its range, or with
            ``package`` a number is missing.
        """
        points, labels, schema, coded = read_data(X, schema, categorical)
        names = labels.feature_names(points.shape[1])
        columns = columns_of(points, names, schema, coded, n_bins, weights, package)
        return cls.of(columns, kernel_width, labels.of_columns())

    @classmethod
    def from_lime(cls, explainer: Any) -> TabularLaw:
        """The law that an explainer of the ``lime`` package draws from.

        Its bins, frequencies and kernel width are read, whatever they were made of, and
        its conventions with them: see ``package`` of :meth:`from_data`.

        Parameters
        ----------
        explainer : lime.lime_tabular.LimeTabularExplainer
            With bins, which is its default.

        Raises
        ------
        InvalidInput
            If it is no such explainer.
        Refused
            If it has no bins, or a kernel of its own.
        """
        bins = read_explainer_bins(explainer)
        columns = [
            number_column(one) if isinstance(one, NumberBins) else coded_column(one)
            for one in bins
        ]
        names = tuple(map(str, explainer.feature_names))
        counted = names == tuple(map(str, range(len(names))))
        labels = Labels(features=None if counted else names)
        return cls.of(columns, read_explainer_width(explainer), labels)

    def to_lime(
        self,
        *,
        mode: Literal["regression", "classification"] = "regression",
        feature_selection: str = "auto",
        random_state: int | None = None,
    ) -> Any:
        """An explainer of the ``lime`` package that draws from this law.

        It gets the bins as ``training_data_stats``; its labels round edges to two
        decimals. Its limits are those of this law; with n samples it adds its ridge and
        the row itself.

        Parameters
        ----------
        mode, feature_selection, random_state
            Of ``lime.lime_tabular.LimeTabularExplainer``.

        Raises
        ------
        Refused
            If the package has no such law: numbers are missing, or columns have widths
            of their own.
        MissingExtra
            If ``lime`` is not installed.
        """
        return package_explainer(
            self.columns,
            self.names,
            mode=mode,
            kernel_width=self.kernel_width,
            feature_selection=feature_selection,
            random_state=random_state,
        )

    def cells(self, points: Points) -> Points:
        """The bins of each row, which its limits depend on alone."""
        indices = [
            column.place(x) for column, x in zip(self.columns, points.T, strict=True)
        ]
        return np.stack(indices, axis=1).astype(np.float64)

    def notes(self, points: Points) -> tuple[str, ...]:
        """Rows at, between and beyond bins; bins that are few, uneven or skewed.

        Parameters
        ----------
        points : array (n, D)
            The rows that are explained.

        Examples
        --------
        >>> import numpy as np
        >>> law = TabularLaw.from_data(np.arange(8.0)[:, None], n_bins=2)
        >>> law.notes(np.array([[9.5], [1.0]]))
        ("1 row has values outside those of the data, ...: 'x0'",)
        """
        return notes_of_bins(self.names, self.columns, points)
