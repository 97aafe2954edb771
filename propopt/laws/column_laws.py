"""The law of one column: numbers or codes, and its means over sets.

Observed values are weighted by distance, never a single one of them. At x the
weights of values v with counts n are q_v ∝ n_v exp(−t (v − x)²), t = 1/2h². The
bandwidth h starts at half a standard deviation, h₀, and is widened if more than
1 − ρ of the mass would be on the nearest value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
from scipy.special import ndtr

from propopt.base.arrays import Array, Indices, Mask
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET, Budget
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.families import ClosedFactors, Factors
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import Mixing
from propopt.tables.columns import ObservedValues, observed_values_of


LEAST_SPREAD_SHARE: Final = 0.02
"""The smallest share ρ of the mass not on the nearest value."""

MOST_HALVINGS: Final = 200

_FAR: Final = 1e40
"""Distances in bandwidths are clipped here, where weights reach their limit."""


class LocalWeights(NamedTuple):
    """Weights of m values at n points x, relative to the nearest value v_k."""

    masses: Array  # (n, m): q, up to a factor for each row
    totals: Array  # (n,): their sums
    offsets: Array  # (n, m): (v − v_k) / (√2 h₀)
    widening: Array  # (n,): h/h₀ ≥ 1
    nearest: Indices  # (n,): k


def least_spread_share(shares: Array) -> float:
    """The share ρ not on the nearest value; smaller if nearly all rows have it."""
    return min(LEAST_SPREAD_SHARE, (1.0 - float(shares.max())) / 2.0)


def deviation(values: Array, shares: Array) -> float:
    """The standard deviation of increasing values, over their range."""
    offsets = (values - values[0]) / (values[-1] - values[0])
    centered = offsets - shares @ offsets
    return float(np.sqrt(shares @ centered**2))


def temper(values: Array, shares: Array, unit: float, x: Array) -> LocalWeights:
    """Weights of observed values (m,) with shares (m,) at points x (n,)."""
    nearest = _nearest(values, x)
    offsets = (values - values[nearest, None]) / unit
    with np.errstate(over="ignore"):
        distance = np.clip((x - values[nearest]) / unit, -_FAR, _FAR)
    # t₀ ((v_k − x)² − (v − x)²) ≤ 0, as v_k is nearest
    gain = 2.0 * distance[:, None] - offsets
    gain *= offsets
    masses = np.exp(gain)
    masses *= shares
    totals = masses.sum(axis=1)
    slack = np.ones(len(x))
    minimum = least_spread_share(shares)
    narrow = np.flatnonzero(1.0 - shares[nearest] / totals < minimum)
    if len(narrow) > 0:
        slack[narrow] = _slack(gain[narrow], shares, nearest[narrow], minimum)
        masses[narrow] = shares * np.exp(slack[narrow, None] * gain[narrow])
        totals[narrow] = masses[narrow].sum(axis=1)
    with np.errstate(divide="ignore"):
        return LocalWeights(masses, totals, offsets, 1.0 / np.sqrt(slack), nearest)


def _nearest(values: Array, x: Array) -> Indices:
    """The index of the value nearest to each x, the smaller one for ties."""
    above = np.clip(np.searchsorted(values, x), 1, len(values) - 1)
    with np.errstate(over="ignore"):
        lower = x - values[above - 1] <= values[above] - x
    return above - lower


def _slack(gain: Array, shares: Array, nearest: Indices, minimum: float) -> Array:
    """The largest t/t₀ with ρ not on the nearest value, by bisection, (n,)."""
    low = np.zeros(len(gain))
    high = np.ones(len(gain))
    for _ in range(MOST_HALVINGS):
        middle = 0.5 * (low + high)
        open_ = np.flatnonzero((low < middle) & (middle < high))
        if len(open_) == 0:
            break
        at = middle[open_]
        # the share of the mass not on the nearest value
        masses = shares * np.exp(at[:, None] * gain[open_])
        masses[np.arange(len(open_)), nearest[open_]] = 0.0
        others = masses.sum(axis=1)
        narrow = others / (others + shares[nearest[open_]]) < minimum
        high[open_[narrow]] = at[narrow]
        low[open_[~narrow]] = at[~narrow]
    return low


# ---- Means and contrasts of factors under the law of a column


def of_runs(
    ends: tuple[Array, Array] | tuple[Indices, Indices],
    missing: Mask,
    whole: Array | Indices,
    tables: Callable[[Array, Any], tuple[Array, Array]],
) -> Mixing:
    """Means and contrasts of sets of numbers, as runs between ends, or with NaN.

    ``tables`` maps points (n,), and ends as numbers or indices of values, to cumulative
    law and contrast up to each end, then of NaN.
    """
    all_ends = np.unique(np.concatenate([whole, *ends]))
    start, stop = (np.searchsorted(all_ends, end) for end in ends)
    return partial(_between, tables, all_ends, start, stop, np.flatnonzero(missing))


def _between(
    tables: Callable[[Array, Any], tuple[Array, Array]],
    ends: Any,  # all ends
    start: Indices,  # (U,): the indices of the ends of each set
    stop: Indices,
    with_nan: Indices,  # sets that contain NaN
    x: Array,
) -> tuple[Array, Array]:
    """Differences of cumulative tables between two ends, plus NaN if in the set."""
    law, contrast = tables(x, ends)
    P = law.take(stop, 0)
    R = contrast.take(stop, 0)
    P -= law.take(start, 0)
    R -= contrast.take(start, 0)
    P[with_nan] += law[-1]
    R[with_nan] += contrast[-1]
    return P, R


# ---- A column of numbers: its local law and its contrast


CACHE_BUDGET: Final = Budget(2**18)
"""Weights of rows in one block, which fits into cache."""


@final
@dataclass(frozen=True, eq=False)
class NumericLaw:
    """The local law of a column of numbers at a row, and its contrast.

    ============================ ===================== ================================
    at a row                     law q                 contrast r
    ============================ ===================== ================================
    three values or more         tempered (see there)  q_v (v − v̄) / Var_q: the slope
    two values                   tempered              (−1, +1) / (v_2 − v_1)
    one value                    on this value         0
    none: always missing         on missing            0
    missing                      on missing            δ_missing − p: an effect
    ============================ ===================== ================================
    """

    values: Array  # (m,): the distinct values of the reference rows, increasing
    shares: Array  # (m,): the share p of each among rows with a number

    @classmethod
    def of(cls, column: Array, name: str) -> NumericLaw:
        """Estimate the law from a column of reference rows, NaN if missing."""
        observed = column[~np.isnan(column)] + 0.0
        values, counts = np.unique(observed, return_counts=True)
        with np.errstate(over="ignore"):
            extent = values[-1] - values[0] if len(values) > 1 else 1.0
            fits = np.isfinite(extent) and np.isfinite(1.0 / extent)
        if not fits:
            raise InvalidInput(
                f"data: the range of column {name} is {extent:.3g}, too large or too "
                "small for float64; give it in other units"
            )
        return cls(values, counts / max(len(observed), 1))

    @cached_property
    def extent(self) -> float:
        """The range v_m − v_1 of the values."""
        return float(self.values[-1] - self.values[0])

    @cached_property
    def spread(self) -> float:
        """The standard deviation s; 0 for a single value, NaN for none."""
        if len(self.values) < 2:
            return 0.0 if len(self.values) == 1 else np.nan
        return self.extent * deviation(self.values, self.shares)

    @cached_property
    def unit(self) -> float:
        """The unit √2 h₀ = s/√2 of distances."""
        return self.spread / math.sqrt(2.0)

    def has_slope(self, x: Array) -> Mask:
        """Whether the contrast at x is a slope over at least three values, (n,)."""
        return ~np.isnan(x) & (len(self.values) >= 3)

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Means and variances of the law at each x, (n,) and (n,)."""
        means = x.copy()
        variances = np.zeros(len(x))
        there = ~np.isnan(x)
        if len(self.values) < 2:
            means[there] = self.values[0] if len(self.values) == 1 else np.nan
            return means, variances
        for block, local in self._all_tempered(x, np.flatnonzero(there)):
            _, centers, scale = _centered(local)
            means[block] = self.values[local.nearest] + self.unit * centers
            variances[block] = self.unit**2 * scale / local.totals
        return means, variances

    def quantiles(self, x: Array, uniforms: Array) -> Array:
        """Draws by the inverse cdf at uniforms (S,), shape (n, S)."""
        samples = np.full((len(x), len(uniforms)), np.nan)
        there = np.flatnonzero(~np.isnan(x))
        if len(self.values) < 2:
            samples[there] = self.values[0] if len(self.values) == 1 else np.nan
            return samples
        # equal rows have equal draws
        _, first, where = np.unique(x[there], return_index=True, return_inverse=True)
        indices = there[first]
        for block, local in self._all_tempered(x, indices):
            cumulative = np.cumsum(local.masses, axis=1)
            cumulative /= cumulative[:, -1:]
            for n, cdf in zip(block, cumulative, strict=True):
                at = np.searchsorted(cdf, uniforms, side="right")
                samples[n] = self.values[np.minimum(at, len(self.values) - 1)]
        samples[there] = samples[indices[where]]
        return samples

    def mixing(self, factors: Factors) -> Mixing:
        """A function from x to Σ_v q(v) g(v) and Σ_v r(v) g(v) of factors g."""
        if isinstance(factors, Sets):
            ends = self.runs(factors)
            whole = np.array([0, len(self.values)])
            return of_runs(ends, factors.missing, whole, self._tables)
        return partial(self._mixed, factors)

    def _mixed(self, factors: Factors, x: Array) -> tuple[Array, Array]:
        """Means and contrasts of factors at x, in blocks of factors."""
        P, R = np.empty((2, len(factors), len(x)))
        numbers = np.arange(len(factors))
        for block in BATCH_BUDGET.blocks(len(factors), 8 * max(len(self.values), 1)):
            P[block], R[block] = self._summed(factors.take(numbers[block]), x)
        return P, R

    def _summed(self, factors: Factors, x: Array) -> tuple[Array, Array]:
        """Means and contrasts of factors at x, summed over all values."""
        of_missing = factors.at(np.array([np.nan]))
        P = np.repeat(of_missing, len(x), axis=1)
        R = np.zeros((len(factors), len(x)))
        if len(self.values) == 0:
            return P, R
        g = factors.at(self.values)
        absent = np.isnan(x)
        there = np.flatnonzero(~absent)
        R[:, absent] = of_missing - (g @ self.shares)[:, None]
        if len(self.values) == 1:
            P[:, there] = g
            return P, R
        if len(self.values) == 2:
            R[:, there] = ((g[:, 1] - g[:, 0]) / self.extent)[:, None]
        # contrasts sum to 0, so constants may be subtracted
        varying = g - np.median(g, axis=1, keepdims=True)
        for block, local in self._all_tempered(x, there):
            P[:, block] = g @ local.masses.T / local.totals
            if len(self.values) > 2:
                masses, _, scale = _centered(local)
                R[:, block] = varying @ masses.T / (scale * self.unit)
        return P, R

    def split_by(self, sets: Sets) -> Sets:
        """Sets of this column, equal ones for the same values in them."""
        start, stop = self.runs(sets)
        ends = np.append(-np.inf, self.values)
        high = np.where(stop == len(self.values), np.inf, ends[stop])
        return replace(sets, low=ends[start], high=high)

    def runs(self, sets: Sets) -> tuple[Indices, Indices]:
        """Start and stop of the values in each set; 0 and 0 for empty sets."""
        ends = np.stack([sets.low, sets.high])
        start, stop = np.searchsorted(self.values, ends, side="right")
        nonempty = start < stop
        return np.where(nonempty, start, 0), np.where(nonempty, stop, 0)

    def _tables(self, x: Array, cuts: Indices) -> tuple[Array, Array]:
        """Cumulative law and contrast at each x, then of NaN, (c + 1, n)."""
        law, contrast = np.empty((2, len(cuts) + 1, len(x)))
        law[-1] = contrast[-1] = np.isnan(x)
        if len(self.values) == 0:  # always missing, without contrast
            law[-1] = 1.0
            contrast[-1] = 0.0
        different, where = np.unique(x, return_inverse=True)
        sums, slopes = self.cumulative(different, cuts)
        law[:-1] = sums[where].T
        contrast[:-1] = slopes[where].T
        return law, contrast

    def cumulative(self, x: Array, cuts: Indices) -> tuple[Array, Array]:
        """Law and contrast of the first ``cuts`` = 0, ..., m values, (n, c) each."""
        law = np.zeros((len(x), len(cuts)))
        contrast = np.zeros((len(x), len(cuts)))
        absent = np.isnan(x)
        contrast[absent] = -self._cumulative_shares[cuts]
        there = np.flatnonzero(~absent)
        if len(self.values) < 2:
            law[there, -1] = min(len(self.values), 1)
            return law, contrast
        if len(self.values) == 2:
            contrast[there] = np.where(cuts == 1, -1.0 / self.extent, 0.0)
        for block, local in self._all_tempered(x, there):
            sums = _summed(local.masses, cuts)
            law[block] = sums / sums[:, -1:]
            if len(self.values) > 2:
                masses, _, scale = _centered(local)
                slopes = _summed(masses, cuts) / (scale * self.unit)[:, None]
                contrast[block, :-1] = slopes[:, :-1]
        return law, contrast

    @cached_property
    def _cumulative_shares(self) -> Array:
        sums = np.concatenate([[0.0], np.cumsum(self.shares)])
        sums[-1] = min(len(self.values), 1)
        return sums

    def _all_tempered(
        self, x: Array, rows: Indices
    ) -> Iterator[tuple[Indices, LocalWeights]]:
        """Yield the local weights at some of the points, in blocks."""
        for block in CACHE_BUDGET.blocks(len(rows), 8 * len(self.values)):
            selected = rows[block]
            yield selected, temper(self.values, self.shares, self.unit, x[selected])


def _centered(local: LocalWeights) -> tuple[Array, Array, Array]:
    """Centred masses q (z − z̄) of offsets z, the centers z̄, and Σ q (z − z̄)²."""
    # einsum would sum a single row in another order
    centers = (local.masses * local.offsets).sum(axis=1) / local.totals
    offsets = local.offsets - centers[:, None]
    masses = local.masses * offsets
    return masses, centers, (masses * offsets).sum(axis=1)


def _summed(masses: Array, cuts: Indices) -> Array:
    """Sums of the first ``cuts`` masses of each row; the first cut is 0, the last m."""
    parts = np.add.reduceat(masses, cuts[:-1], axis=1)
    sums = np.zeros((len(masses), len(cuts)))
    np.cumsum(parts, axis=1, out=sums[:, 1:])
    return sums


# ---- A column of categories: the category of a row, and its contrast


@final
@dataclass(frozen=True, eq=False)
class CodedLaw:
    """The law of a column of categories: δ_x, with the contrast δ_x − p."""

    shares: Array  # (K,): the share p of each code among the reference rows

    @classmethod
    def of(cls, column: Array, n_codes: int) -> CodedLaw:
        """Estimate the law from a column of codes of reference rows."""
        counts = np.bincount(column.astype(np.intp), minlength=n_codes)
        return cls(counts / len(column))

    def has_slope(self, x: Array) -> Mask:
        return np.zeros(len(x), dtype=bool)

    def moments(self, x: Array) -> tuple[Array, Array]:
        return x.copy(), np.zeros(len(x))

    def quantiles(self, x: Array, uniforms: Array) -> Array:
        return np.tile(x[:, None], (1, len(uniforms)))

    def mixing(self, factors: Factors) -> Mixing:
        """A function from x to g(x) and g(x) − Σ_v p(v) g(v) of factors g."""
        g = factors.at(np.arange(len(self.shares), dtype=np.float64))
        observed = np.where(self.shares > 0.0, g, 0.0)
        effects = g - (observed * self.shares).sum(axis=1)[:, None]
        return partial(_at_codes, g, effects)

    def split_by(self, sets: Sets) -> Sets:
        """Sets of codes, complete ones equal to sets of everything."""
        full = sets.members[sets.group][:, : len(self.shares)].all(axis=1)
        return replace(
            sets, missing=sets.missing | full, group=np.where(full, -1, sets.group)
        )


def _at_codes(law: Array, contrast: Array, x: Array) -> tuple[Array, Array]:
    codes = x.astype(np.intp)
    return law[:, codes], contrast[:, codes]


ColumnLaw: TypeAlias = NumericLaw | CodedLaw
"""The law of a column on observed values."""


# ---- A column of numbers with Gaussian noise


Observed: TypeAlias = tuple[ObservedValues | None, ...] | None
"""The observed values of each column of numbers (D,), if a table is given."""


@final
@dataclass(frozen=True, eq=False)
class NoisyColumn:
    """The law V ~ N(x, δ²) of a column of numbers, with slopes of means by x."""

    scale: float  # δ
    column: int
    observed: Observed

    def mixing(self, factors: Factors) -> Mixing:
        """A function from x to E g(V) and its derivative by x."""
        if isinstance(factors, Sets):
            ends = factors.low, np.maximum(factors.low, factors.high)
            whole = np.array([-np.inf, np.inf])
            return of_runs(ends, factors.missing, whole, self._tables)
        return partial(self._mixed, factors)

    def split_by(self, sets: Sets) -> Sets:
        """The sets unchanged; sets of only NaN get low ≥ high."""
        return replace(sets, high=np.maximum(sets.low, sets.high))

    def _mixed(self, factors: Factors, x: Array) -> tuple[Array, Array]:
        P = factors.at(x)
        R = np.zeros((len(factors), len(x)))
        absent = np.isnan(x)
        if self.scale > 0.0 and not absent.all():
            assert isinstance(factors, ClosedFactors), "others are sampled"
            normals = Normals.of(x[~absent], self.scale, -np.inf, np.inf)
            P[:, ~absent] = factors.under(normals)
            R[:, ~absent] = factors.slopes_under(normals)
        atoms = self._atoms if absent.any() else None
        if atoms is not None:  # g(NaN) − Σ_v p_v g(v)
            mean = factors.at(atoms.values) @ atoms.shares
            R[:, absent] = P[:, absent] - mean[:, None]
        return P, R

    def _tables(self, x: Array, ends: Array) -> tuple[Array, Array]:
        """Φ and its derivative by x at each end, then of NaN, (C + 1, n)."""
        law, contrast = np.zeros((2, len(ends) + 1, len(x)))
        if self.scale == 0.0:
            law[:-1] = x <= ends[:, None]
        else:
            z = (ends[:, None] - x) / self.scale
            with np.errstate(under="ignore"):
                density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
            law[:-1] = ndtr(z)
            contrast[:-1] = density / -self.scale
        absent = np.isnan(x)
        law[-1] = absent
        if absent.any():
            law[:-1, absent] = contrast[:, absent] = 0.0
            if self._atoms is not None:  # δ_missing − p up to each end
                share = self._atoms.share_up_to(ends)
                contrast[:, absent] = np.append(-share, 1.0)[:, None]
        return law, contrast

    @property
    def _atoms(self) -> ObservedValues | None:
        """The observed values of the column, or None."""
        if self.observed is None:
            return None
        atoms = observed_values_of(self.observed, self.column)
        return atoms if len(atoms.values) > 0 else None
