"""A column of numbers: its law near a row, and its contrast."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Array, Positions, Truths
from propopt.errors import InvalidInput
from propopt.sampling.laws.measures import Measure, Measures
from propopt.sampling.laws.tempering import Tempered, deviation, temper
from propopt.structures.boxes.sets import Sets


@final
@dataclass(frozen=True, eq=False)
class NumericLaw:
    """The law of a column of numbers near a row, and its contrast.

    ============================ ===================== ================================
    at a row                     law q                 contrast r
    ============================ ===================== ================================
    three values or more         tempered (see there)  q_v (v − v̄) / Var_q: the slope
    two values                   tempered              (−1, +1) / (v_2 − v_1)
    one value                    on this value         0
    none: always missing         on missing            0
    missing                      on missing            δ_missing − p: an effect
    ============================ ===================== ================================

    Parameters
    ----------
    values : array (m,)
        The different values of the reference rows, increasing.
    shares : array (m,)
        The share p of each among the rows that are not missing.
    """

    values: Array
    shares: Array

    @classmethod
    def of(cls, column: Array, name: str) -> NumericLaw:
        """That of a column of reference rows, NaN where it is missing.

        Raises
        ------
        InvalidInput
            If the range of the column, or its inverse, is not a number of float64.
        """
        known = column[~np.isnan(column)] + 0.0
        values, counts = np.unique(known, return_counts=True)
        with np.errstate(over="ignore"):
            extent = values[-1] - values[0] if len(values) > 1 else 1.0
            fits = np.isfinite(extent) and np.isfinite(1.0 / extent)
        if not fits:
            raise InvalidInput(
                f"data: the range of column {name} is {extent:.3g}, too much or too "
                "little for float64; give it in other units"
            )
        return cls(values, counts / max(len(known), 1))

    @cached_property
    def extent(self) -> float:
        """The range, v_m − v_1."""
        return float(self.values[-1] - self.values[0])

    @property
    def spread(self) -> float:
        """The standard deviation s; 0 for a single value, NaN for none."""
        if len(self.values) < 2:
            return 0.0 if len(self.values) == 1 else np.nan
        return self.extent * deviation(self.values, self.shares)

    def has_slope(self, x: Array) -> Truths:
        """Where the contrast is a slope over three values or more, shape (n,)."""
        return ~np.isnan(x) & (len(self.values) >= 3)

    def law(self, x: float) -> Measure:
        """The law q at one value x, NaN if it is missing."""
        if np.isnan(x) or len(self.values) == 0:
            return Measure(np.array([np.nan]), np.ones(1))
        if len(self.values) == 1:
            return Measure(self.values, np.ones(1))
        return Measure(self.values, self._tempered(np.array([x])).weights[0])

    def contrast(self, x: float) -> Measure:
        """The contrast r at one value x, NaN if it is missing."""
        if len(self.values) == 0:
            return Measure(np.array([np.nan]), np.zeros(1))
        if np.isnan(x):
            return Measure(np.append(self.values, np.nan), np.append(-self.shares, 1.0))
        return Measure(self.values, self._slopes(np.array([x]))[0])

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Means and variances of the law at each x, (n,) and (n,)."""
        means, variances = x.copy(), np.zeros(len(x))
        if len(self.values) == 1:
            means[~np.isnan(x)] = self.values[0]
        if len(self.values) == 0:
            means[:] = np.nan
        if len(self.values) < 2:
            return means, variances
        there = ~np.isnan(x)
        local = self._tempered(x[there])
        centers, squares = _center_and_variance(local)
        nearest = self.values[np.argmin(np.abs(local.offsets), axis=1)]
        means[there] = nearest + self.extent * centers
        variances[there] = self.extent**2 * squares
        return means, variances

    def quantiles(self, x: Array, uniforms: Array) -> Array:
        """Draws: the inverse of the law's cdf at uniforms (S,), shape (n, S)."""
        drawn = np.full((len(x), len(uniforms)), np.nan)
        if len(self.values) == 0:
            return drawn
        different, where = np.unique(x, return_inverse=True)
        for i, each in enumerate(different):
            values, masses = self.law(float(each))
            cumulative = np.cumsum(masses)
            at = np.searchsorted(cumulative / cumulative[-1], uniforms, side="right")
            drawn[where == i] = values[np.minimum(at, len(values) - 1)]
        return drawn

    def cells(self, sets: Sets) -> NumericCells:
        """Sets of numbers of this column as runs of its values."""
        start = np.searchsorted(self.values, sets.low, side="right")
        stop = np.searchsorted(self.values, sets.high, side="right")
        nothing = start >= stop
        return NumericCells(
            self,
            np.where(nothing, 0, start),
            np.where(nothing, 0, stop),
            sets.missing,
        )

    def _tempered(self, x: Array) -> Tempered:
        return temper(self.values, self.shares, x)

    def _slopes(self, x: Array) -> Array:
        """The contrast r at each x, none of them missing, shape (n, m)."""
        m = len(self.values)
        if m == 1:
            return np.zeros((len(x), 1))
        if m == 2:
            return np.tile(np.array([-1.0, 1.0]) / self.extent, (len(x), 1))
        local = self._tempered(x)
        return self._slope_masses(local)

    def _slope_masses(self, local: Tempered) -> Array:
        """q_v (v − v̄) / Var_q."""
        centers, squares = _center_and_variance(local)
        masses = local.weights * (local.offsets - centers[:, None])
        return np.asarray(masses / (squares * self.extent)[:, None])

    def cumulative(self, x: Array, cuts: Positions) -> tuple[Array, Array]:
        """Law and contrast of the first ``cuts`` values (c,), each of shape (n, c).

        The first cut is 0 and the last m: there the law is 0 and 1, the contrast 0.
        """
        m, n = len(self.values), len(x)
        if m < 2:
            ends = np.tile((cuts > 0).astype(float), (n, 1))
            return ends, np.zeros((n, len(cuts)))
        local = self._tempered(x)
        law = _summed(local.weights, cuts)
        law /= law[:, -1:]
        if m == 2:
            contrast = np.tile(np.where(cuts == 1, -1.0 / self.extent, 0.0), (n, 1))
        else:
            contrast = _summed(self._slope_masses(local), cuts)
            contrast[:, -1] = 0.0
        return law, contrast


@final
@dataclass(frozen=True, eq=False)
class NumericCells:
    """Sets of a column of numbers: runs of its values, with or without missing.

    Parameters
    ----------
    law : NumericLaw
        That of the column.
    start, stop : array (U,)
        Positions of values: from ``start`` on, before ``stop``; 0, 0 for none.
    missing : array (U,)
        Whether NaN is in.
    """

    law: NumericLaw
    start: Positions
    stop: Positions
    missing: Truths

    @property
    def keys(self) -> tuple[Positions, Positions, Positions]:
        """Equal for sets that no row tells apart."""
        return self.start, self.stop, self.missing.astype(np.intp)

    @property
    def full(self) -> Truths:
        """Which hold all values and missing."""
        whole = (self.start == 0) & (self.stop == len(self.law.values))
        return whole & self.missing

    @property
    def empty(self) -> Truths:
        """Which hold nothing."""
        return (self.start >= self.stop) & ~self.missing

    @property
    def row_bytes(self) -> int:
        """What the law of one row takes."""
        return 64 * len(self.law.values)

    def take(self, chosen: Positions) -> NumericCells:
        """Those that are chosen."""
        return NumericCells(
            self.law, self.start[chosen], self.stop[chosen], self.missing[chosen]
        )

    @cached_property
    def _cuts(self) -> tuple[Positions, Positions, Positions]:
        """The different ends of runs, and those of each run among them."""
        ends = [np.array([0, len(self.law.values)]), self.start, self.stop]
        cuts = np.unique(np.concatenate(ends))
        start, stop = (np.searchsorted(cuts, end) for end in ends[1:])
        return cuts, start, stop

    def measures(self, x: Array) -> Measures:
        """Law and contrast of each set at each x, (U, n)."""
        if len(self.law.values) == 0:
            there = np.tile(self.missing[:, None].astype(float), (1, len(x)))
            return Measures(there, np.zeros(there.shape))
        different, where = np.unique(x, return_inverse=True)
        absent = np.isnan(different)
        P = np.empty((len(self.start), len(different)))
        R = np.empty(P.shape)
        P[:, ~absent], R[:, ~absent] = self._present(different[~absent])
        P[:, absent], R[:, absent] = self._absent[:, :, None]
        if len(different) == len(x) and (where[1:] > where[:-1]).all():
            return Measures(P, R)
        return Measures(P[:, where], R[:, where])

    def _present(self, x: Array) -> tuple[Array, Array]:
        cuts, start, stop = self._cuts
        law, contrast = (part.T for part in self.law.cumulative(x, cuts))
        law, contrast = np.ascontiguousarray(law), np.ascontiguousarray(contrast)
        return law[stop] - law[start], contrast[stop] - contrast[start]

    @cached_property
    def _absent(self) -> Array:
        """P = 1[missing in], R = P − p: the effect of being missing, (2, U)."""
        cumulative = np.concatenate([[0.0], np.cumsum(self.law.shares)])
        cumulative[-1] = 1.0
        P = self.missing.astype(float)
        return np.stack([P, P - (cumulative[self.stop] - cumulative[self.start])])


def _center_and_variance(local: Tempered) -> tuple[Array, Array]:
    """Mean and variance of the offsets, (n,) and (n,)."""
    centers = (local.weights * local.offsets).sum(axis=1)
    squares = (local.offsets - centers[:, None]) ** 2
    return centers, np.asarray((local.weights * squares).sum(axis=1))


def _summed(masses: Array, cuts: Positions) -> Array:
    """Sums of the first ``cuts`` masses of each row; the first cut is 0, the last m."""
    parts = np.add.reduceat(masses, cuts[:-1], axis=1)
    sums = np.zeros((len(masses), len(cuts)))
    np.cumsum(parts, axis=1, out=sums[:, 1:])
    return sums
