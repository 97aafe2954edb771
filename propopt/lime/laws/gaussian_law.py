"""Normal samples with weights by distance: the law of the linear paper."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from propopt.base.arrays import Array, Indices, Mask, Values
from propopt.base.checks import as_floats, read_array, read_positive
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.lime.laws.binned_columns import (
    BinRule,
    BinsOfColumns,
    columns_of,
    interval_words,
    read_data,
    read_rules,
)
from propopt.lime.laws.lime_law import (
    LimeColumn,
    LimeLaw,
    Tilt,
    distance_tilt,
    log_of_distance,
)
from propopt.structures.products.families import Pieces
from propopt.tables.columns import spreads
from propopt.tables.frames import Labels
from propopt.tables.schema import TableSchema


@final
@dataclass(frozen=True, eq=False)
class NormalColumn:
    """V ~ N(μ, σ²) in bins q⁻ ≤ V < q⁺, weighted by exp(−(V − ξ)² / (2 (uν)²)).

    A number may be missing. Missing numbers have a separate bin, and the distance u
    from all numbers.
    """

    mean: float  # μ
    scale: float  # σ > 0
    edges: Array  # (B − 1,): increasing; each edge belongs to the bin above it
    unit: float = 1.0  # u > 0, the unit of distances
    missing: float = 0.0  # the probability that a number is missing, < 1

    @classmethod
    def of_rule(
        cls,
        mean: float,
        scale: float,
        rule: BinRule,
        unit: float = 1.0,
        missing: float = 0.0,
    ) -> NormalColumn:
        """A column with B bins of equal mass under N(μ, σ²), or with given edges."""
        edges = rule
        if isinstance(edges, int):
            edges = mean + scale * ndtri(np.arange(1, edges) / edges)
        return cls(mean, scale, edges, unit, missing)

    @cached_property
    def ends(self) -> Array:
        """The ends of all bins, from −∞ to ∞, (B + 1,)."""
        return np.concatenate([[-np.inf], self.edges, [np.inf]])

    @cached_property
    def bins(self) -> tuple[str, ...]:
        """The bins in words, with that of missing numbers if there are any."""
        numbers = interval_words(self.edges, below=False)
        return (*numbers, "missing") if self.missing > 0.0 else numbers

    def bin_index(self, x: Values) -> Indices:
        """The index of the bin of each value, (n,); B for missing values."""
        absent = np.isnan(x)
        if self.missing == 0.0 and absent.any():
            raise InvalidInput(
                "X: expected no missing value in this column, as the data of the law "
                "have none; make the law from data with missing values"
            )
        indices = np.searchsorted(self.edges, x, side="right")
        return np.where(absent, len(self.edges) + 1, indices)

    def beyond(self, x: Values) -> Mask:
        """True if values are where hardly any samples are drawn, (n,)."""
        return np.abs(x - self.mean) / self.scale > FEW_BEYOND

    def tilt(self, x: Values, widths: Values) -> Tilt:
        """The weighted law: N(μ̃, σ̃²) left of, in and right of the row's bin; missing.

        Around a missing number the law of numbers is not weighted, and the bit is 1 for
        samples that are missing too.
        """
        index = self.bin_index(x)
        absent = np.isnan(x)
        low = np.where(absent, -np.inf, self.ends[index])
        high = np.where(absent, np.inf, self.ends[index + 1 - absent])
        heights = np.full((4, len(x)), 1.0 - self.missing)
        # an absent side has no mass, and arbitrary ends
        heights[:1, np.isinf(low)] = heights[2:3, np.isinf(high)] = 0.0
        ones = np.zeros(heights.shape, bool)
        heights[3] = self.missing
        ones[1] = ~absent
        ones[3] = absent
        nothing = np.full(len(x), np.inf)
        lows = np.stack([-nothing, low, np.where(np.isinf(high), -np.inf, high), low])
        highs = np.stack([np.where(np.isinf(low), np.inf, low), high, nothing, high])
        single = np.array([False, False, False, True])
        mean = np.where(single[:, None], np.nan, np.full(heights.shape, self.mean))
        sd = np.full(heights.shape, self.scale)
        some = slice(4 if self.missing > 0.0 else 3)
        with np.errstate(divide="ignore"):
            log_heights = np.log(heights[some])
        pieces = Pieces(*(part[some] for part in (single, mean, sd, lows, highs)))
        return distance_tilt(pieces, log_heights, ones[some], x, widths, self.unit)

    def log_kernel(self, x: Array, values: Array, bits: Array, width: Array) -> Array:
        """−(v − ξ)² / (2 (uν)²), with the distance u if one of both is missing."""
        del bits
        return log_of_distance((values - x) / self.unit, x, values, width)


def _deviation(numbers: Array) -> float:
    """The standard deviation of numbers; 0 for rounding, or without numbers."""
    if len(numbers) == 0:
        return 0.0
    return float(spreads(numbers.mean(), float(numbers.std())))


FEW_BEYOND: Final = 3.0
"""Few samples are beyond so many standard deviations from their mean."""


@final
@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class GaussianLaw(LimeLaw):
    """Sampling from normal columns, with weights that decrease with distance.

    x̃_j ~ N(μ_j, σ_j²), z_j = 1[q_j⁻ ≤ x̃_j < q_j⁺] with the bin of the row, and
    π = exp(−Σ_j (x̃_j − ξ_j)² / (2 (u_j ν)²))  (Garreau and von Luxburg 2020,
    "Explaining the explainer"). Unlike :class:`TabularLaw`, which weights samples by
    how many bins they share with the row, a narrow kernel moves all samples to the row,
    within the bin and outside it: coefficients shrink with ν, and may change sign.
    Categories are drawn by their frequency, with the bit 1 for that of the row. Other
    categories have a distance of 1, and so has a missing number from other numbers.

    Parameters
    ----------
    columns : tuple of LimeColumn (D,)
        Numbers are normal columns; categories and constant columns have bins.
    kernel_width : float
        ν.
    labels : Labels
        Names of the columns.

    Examples
    --------
    >>> law = GaussianLaw.of([0.0, 0.0], scale=1.0, kernel_width=1.0)
    >>> law
    GaussianLaw(2 columns, 8 bins, kernel_width=1)
    >>> law.columns[0].bins[1]
    '≥ -0.6745 and < 0'
    """

    @classmethod
    def of(
        cls,
        mean: ArrayLike,
        scale: ArrayLike,
        kernel_width: float | None = None,
        n_bins: BinsOfColumns = 4,
        labels: Labels | None = None,
        *,
        unit: ArrayLike = 1.0,
    ) -> GaussianLaw:
        """Normal columns with given means and scales, in bins of equal probability.

        Parameters
        ----------
        mean : array (D,)
            μ.
        scale : float or array (D,)
            σ > 0, in units of the columns, as is μ.
        kernel_width : float, optional
            ν > 0, by default 0.75 √(Σ_j (σ_j / u_j)²): 0.75 √D of the ``lime`` package
            in units of the scale.
        n_bins : int, mapping or sequence
            The number of bins of equal mass, at least 2, or inner edges; for all
            columns or for each, as for :meth:`TabularLaw.from_data`.
        labels : Labels, optional
            Names of the columns.
        unit : float or array (D,)
            u > 0, the unit of distances.

        Returns
        -------
        GaussianLaw
            The law of normal columns.

        Raises
        ------
        InvalidInput
            If a number is out of its range, or lengths differ.

        Examples
        --------
        >>> law = GaussianLaw.of(
        ...     [50.0, 27.0], [12.0, 4.0], 1.0, [[30, 45, 60], 4], unit=[12.0, 4.0]
        ... )
        >>> law.columns[0].bins
        ('< 30', '≥ 30 and < 45', '≥ 45 and < 60', '≥ 60')
        """
        means = read_array(mean, "mean", ndim=1)
        count = len(means)
        labels = Labels() if labels is None else labels
        labels.check((0, count), "labels")
        scales = _read_each(scale, "scale", count)
        units = _read_each(unit, "unit", count)
        rules = read_rules(n_bins, labels.feature_names(count))
        columns = tuple(map(NormalColumn.of_rule, means.tolist(), scales, rules, units))
        return cls._of(columns, kernel_width, labels)

    @classmethod
    def from_data(
        cls,
        X: Any,
        schema: TableSchema | None = None,
        *,
        n_bins: BinsOfColumns = 4,
        kernel_width: float | None = None,
        categorical: Sequence[Hashable] = (),
    ) -> GaussianLaw:
        """Normal columns with the means and standard deviations of a table.

        A constant column keeps its value, with the coefficient 0. Categories and
        missing numbers are drawn by their frequencies in X. :meth:`of` takes other
        means, scales and units.

        Parameters
        ----------
        X : DataFrame or array (N, D)
            Usually the rows that the model was fitted on.
        schema : TableSchema, optional
            The types of the columns, if some hold categories.
        n_bins : int, mapping or sequence
            The number of bins of a column of numbers, at least 2, or inner edges; for
            all columns or for each, as for :meth:`TabularLaw.from_data`.
        kernel_width : float, optional
            ν > 0; by default 0.75 √D, as for :meth:`of`.
        categorical : sequence of columns
            Positions or names of columns of categories, if there is no schema.

        Returns
        -------
        GaussianLaw
            The law of normal columns and categories.

        Raises
        ------
        InvalidInput
            If a setting is out of its range, or the table cannot be read.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 4)) * [1, 10, 100, 0]
        >>> GaussianLaw.from_data(X).kernel_width
        1.5
        """
        points, labels, schema, coded = read_data(X, schema, categorical)
        names = labels.feature_names(points.shape[1])
        rules = read_rules(n_bins, names)
        columns: list[LimeColumn] = list(columns_of(points, names, schema, coded, 2))
        for j in np.flatnonzero(~coded).tolist():
            numbers = points[~np.isnan(points[:, j]), j]
            size = _deviation(numbers)
            if size > 0.0:  # constants stay binned, as categories do
                mean = float(numbers.mean())
                missing = 1.0 - len(numbers) / len(points)
                column = NormalColumn.of_rule(mean, size, rules[j], size, missing)
                columns[j] = column
        return cls._of(tuple(columns), kernel_width, labels.of_columns())

    @classmethod
    def _of(
        cls, columns: tuple[LimeColumn, ...], width: float | None, labels: Labels
    ) -> GaussianLaw:
        if width is None:
            # (σ / u)²; 1 for columns that are not normal
            extents = (
                (column.scale / column.unit) ** 2
                if isinstance(column, NormalColumn)
                else 1.0
                for column in columns
            )
            width = 0.75 * math.sqrt(sum(extents))
        return cls(columns, read_positive(width, "kernel_width"), labels)


def _read_each(given: ArrayLike, label: str, count: int) -> Sequence[float]:
    """One positive number for each column, from one number or one for each."""
    sizes: Array = as_floats(given, label)
    if sizes.shape not in ((), (count,)):
        raise InvalidInput(
            f"{label}: expected one number or {count}, got an array of shape "
            f"{sizes.shape}"
        )
    for size in np.atleast_1d(sizes).tolist():
        read_positive(size, label)
    return np.broadcast_to(sizes, count).tolist()
