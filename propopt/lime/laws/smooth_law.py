"""Bins, weighted by distance along each column.

- :class:`~propopt.lime.laws.smooth_law.SmoothLaw`: tabular LIME with these weights.
- :class:`~propopt.lime.laws.smooth_law.SmoothColumn`: bins of one column of numbers.
- :class:`~propopt.lime.laws.smooth_law.Polyline`: τ, of straight pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias, final

import numpy as np

from propopt.base.arrays import Array, Points, Positions, Values
from propopt.base.checks import read_array, read_positive
from propopt.base.errors import InvalidInput
from propopt.lime.bins import by_column
from propopt.lime.laws.binned_columns import BinnedColumn, notes_of_bins
from propopt.lime.laws.lime_law import (
    LawOfColumns,
    Tilt,
    log_of_distance,
    tilt_of_masses,
)
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.structures.products.algebra import Pieces
from propopt.structures.products.normals import log_mass


# ---- Weights that depend on where a sample is, and not on its bin alone


@final
@dataclass(frozen=True, eq=False)
class Polyline:
    """τ: values at knots, straight between them, and on beyond the outer two."""

    knots: Array  # (K,): increasing, at least two
    values: Array  # (K,): τ there

    @classmethod
    def identity(cls) -> Polyline:
        """τ(x) = x."""
        return cls(np.array([0.0, 1.0]), np.array([0.0, 1.0]))

    @classmethod
    def of(
        cls, tau: Callable[[Array], Array], low: float, high: float, n_pieces: int = 128
    ) -> Polyline:
        """A function between two numbers, by as many straight pieces."""
        knots = np.linspace(low, high, n_pieces + 1)
        values = read_array(tau(knots), "tau", ndim=1)
        if values.shape != knots.shape:
            raise InvalidInput(
                f"tau: expected {len(knots)} values at {len(knots)} numbers, got "
                f"{len(values)}"
            )
        return cls(knots, values)

    @property
    def slopes(self) -> Array:
        """Those of the straight pieces, (K − 1,)."""
        return np.asarray(np.diff(self.values) / np.diff(self.knots))

    def piece(self, x: Array) -> Array:
        """The straight piece that each number is on; the end ones go on forever."""
        inner = self.knots[1:-1]
        return np.asarray(np.searchsorted(inner, x, side="left"))

    def at(self, x: Array) -> Array:
        """τ(x), of the shape of x."""
        k = self.piece(x)
        return np.asarray(self.values[k] + self.slopes[k] * (x - self.knots[k]))


# ---- A column in bins, weighted by how far samples are from the row


@final
@dataclass(frozen=True, eq=False)
class SmoothColumn:
    """Bins of numbers, weighted by exp(−(τ(ξ) − τ(V))² / (2 ν_j²)).

    On a straight piece τ(v) = a + k v of τ, a truncated normal law N(μ, σ²) times the
    kernel is one again: with r = (k σ / ν_j)² and δ = τ(ξ) − a − k μ

    mean μ + k σ² δ / (ν_j² (1 + r)),  sd σ / √(1 + r),
    E[kernel] = exp(−δ² / (2 ν_j² (1 + r))) / √(1 + r) · (its mass) / (mass of N(μ, σ²))

    (Garreau and von Luxburg 2020, Appendix A, for τ(x) = x). A number that is missing
    on one side only counts as a distance of 1.
    """

    binned: BinnedColumn  # the bins, of numbers; and the width over that of the law
    tau: Polyline  # τ

    @property
    def bins(self) -> tuple[str, ...]:
        """What each bin is."""
        return self.binned.bins

    def place(self, x: Values) -> Positions:
        """The bin of each value, (n,)."""
        return self.binned.place(x)

    def tilt(self, x: Values, widths: Values) -> Tilt:
        """The weighted law, whose pieces lie in bins and on straight pieces of τ."""
        parts, pieces = self._parts, self._parts.pieces
        widths = self.binned.scale * widths
        shape = len(pieces), len(x)
        single = pieces.single
        mean, sd, low, high = (
            part[:, None] for part in (pieces.mean, pieces.sd, pieces.low, pieces.high)
        )
        absent = np.isnan(x)
        near = np.where(absent, 0.0, parts.slope)  # all numbers are as far
        at_mean = np.where(single[:, None], parts.value, parts.start + near * mean)
        delta = np.where(absent, 1.0, self.tau.at(np.where(absent, 0.0, x)) - at_mean)
        delta = np.where(np.isnan(mean), np.where(absent, 0.0, 1.0), delta)
        pull = np.where(single[:, None], 0.0, near * sd / widths)
        spread = 1.0 + pull**2
        log_kernel = -0.5 * (delta / widths) ** 2 / spread - 0.5 * np.log(spread)
        moved = mean + sd * pull * (delta / widths) / spread
        narrow = np.where(single[:, None], 1.0, sd) / np.sqrt(spread)
        ends = [np.broadcast_to(end, shape) for end in (low, high)]
        some = ~single
        standardised = [((end - moved) / narrow)[some] for end in ends]
        log_kernel[some] += log_mass(*standardised)
        tilted = Pieces(single, moved, narrow, *ends)
        ones = parts.bins[:, None] == self.place(x)
        return tilt_of_masses(tilted, log_kernel + parts.log_shares, ones)

    def log_kernel(self, x: Array, values: Array, bits: Array, width: Array) -> Array:
        """−(τ(ξ) − τ(v))² / (2 ν_j²)."""
        del bits
        apart = self.tau.at(values) - self.tau.at(x)
        return log_of_distance(apart, x, values, self.binned.scale * width)

    @cached_property
    def _parts(self) -> _Parts:
        """The pieces of bins, cut at the knots of τ."""
        result = [self._cut(b) for b in range(len(self.binned.pieces))]
        columns = np.concatenate([ends for ends, _ in result], axis=1)
        bins = np.repeat(np.arange(len(result)), [ends.shape[1] for ends, _ in result])
        log_shares = np.concatenate([logs for _, logs in result])
        mean, sd, low, high = columns
        single = self.binned.pieces.single[bins]
        k = self.tau.piece(np.where(single, mean, 0.5 * (low + high)))
        slope = np.where(single, 0.0, self.tau.slopes[k])
        value = self.tau.at(np.nan_to_num(mean))
        start = self.tau.values[k] - slope * self.tau.knots[k]
        return _Parts(
            Pieces(single, mean, sd, low, high),
            bins,
            *(part[:, None] for part in (log_shares, slope, start, value)),
        )

    def _cut(self, b: int) -> tuple[Array, Array]:
        """Moments and ends of the parts of a bin, (4, K); their shares less masses."""
        pieces = self.binned.pieces
        moments = (pieces.mean[b], pieces.sd[b], pieces.low[b], pieces.high[b])
        with np.errstate(divide="ignore"):
            log_share = np.log(self.binned.shares[b : b + 1])
        if pieces.single[b]:
            return np.array(moments)[:, None], log_share
        mean, sd, low, high = moments
        inner = self.tau.knots[1:-1]
        ends = np.concatenate([[low], inner[(inner > low) & (inner < high)], [high]])
        whole = log_mass(*(np.array([(end - mean) / sd]) for end in (low, high)))
        n = len(ends) - 1
        table = np.stack([np.full(n, mean), np.full(n, sd), ends[:-1], ends[1:]])
        return table, np.repeat(log_share - whole, n)


class _Parts(NamedTuple):
    """Laws on straight pieces of τ, S of them."""

    pieces: Pieces
    bins: Positions
    """The bin of each, (S,)."""

    log_shares: Array
    """Log of the share of the bin over the mass of its normal law, (S, 1)."""

    slope: Array
    start: Array
    """τ(v) = start + slope v, (S, 1)."""

    value: Array
    """τ of single values, (S, 1)."""


# ---- The law of tabular LIME with weights by distance


Tau: TypeAlias = Polyline | Callable[[Array], Array]


@final
@dataclass(frozen=True, eq=False, repr=False)
class SmoothLaw(LawOfColumns):
    """Bins drawn as by a :class:`TabularLaw`, weights by distance between numbers.

    π = exp(−Σ_j (τ_j(ξ_j) − τ_j(x̃_j))² / (2 ν²))  (Garreau and von Luxburg 2020,
    Appendix A). Bits are those of bins still, and categories are weighted by them. With
    widths of columns, each is divided by its own. Coefficients depend on where the row
    is within its bins, and for linear functions on ν.

    Parameters
    ----------
    columns : tuple of SmoothColumn or BinnedColumn (D,)
        Numbers, and categories.
    kernel_width : float
        ν.
    labels : Labels
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> bins = TabularLaw.from_data(np.random.default_rng(0).normal(size=(200, 2)))
    >>> law = SmoothLaw.of(bins, kernel_width=0.5)
    >>> law
    SmoothLaw(2 columns, 8 bins, kernel_width=0.5)
    >>> law.columns[0].tilt(np.array([0.1]), np.array([0.5])).alpha.round(2)
    array([0.56])
    """

    columns: tuple[SmoothColumn | BinnedColumn, ...]

    @classmethod
    def of(
        cls,
        law: TabularLaw,
        tau: Tau | Sequence[Tau] | Mapping[str, Tau] | None = None,
        kernel_width: float | None = None,
    ) -> SmoothLaw:
        """The bins of a law, with other weights.

        Parameters
        ----------
        law : TabularLaw
            The bins; and ratios of the widths of columns.
        tau : callable, Polyline, sequence or mapping, optional
            τ of all columns, of each of D, or by names of columns; x itself for others.
            A callable is taken at 129 numbers between the ends of the data, and is
            straight between them.
        kernel_width : float, optional
            ν > 0, in units of τ; that of the law if None.

        Raises
        ------
        InvalidInput
            If a name is unknown, there are not D functions, or one is not finite.
        """
        if not isinstance(law, TabularLaw):
            raise InvalidInput(
                "law: expected the bins of a TabularLaw, such as TabularLaw.from_data"
                f"(X), got {type(law).__name__}"
            )
        some = tau is None or isinstance(tau, Mapping | Sequence)
        each = by_column(tau, "tau", law.names) if some else [tau] * len(law.names)
        columns = tuple(
            column if column.coded else SmoothColumn(column, _line(own, column))
            for column, own in zip(law.columns, each, strict=True)
        )
        width = law.kernel_width if kernel_width is None else kernel_width
        return cls(columns, read_positive(width, "kernel_width"), law.labels)

    def notes(self, points: Points) -> tuple[str, ...]:
        """Those of the bins."""
        columns = [
            column.binned if isinstance(column, SmoothColumn) else column
            for column in self.columns
        ]
        return notes_of_bins(self.names, columns, points)


def _line(tau: Tau | None, column: BinnedColumn) -> Polyline:
    if tau is None:
        return Polyline.identity()
    if isinstance(tau, Polyline):
        return tau
    if not callable(tau):
        raise InvalidInput(f"tau: expected a function of numbers, got {tau!r}")
    low, high = column.extent
    if np.isinf(high - low):
        raise InvalidInput(
            "tau: a function is taken between the ends of a column, and one has none; "
            "give the bins ranges, or a Polyline"
        )
    if low == high:
        return Polyline(np.array([low, low + 1.0]), np.repeat(tau(np.array([low])), 2))
    return Polyline.of(tau, low, high)
