"""The law of one column: numbers, codes, and the intervals it tells apart.

Observed values weighed by how near they are, never by one of them alone. At x the
weights of values v with counts n are q_v ∝ n_v exp(−t (v − x)²), t = 1/2h². The
bandwidth h starts at half a standard deviation, h₀, and is widened where more than
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
"""The share ρ that stays beside the nearest value; less if nearly all rows have it."""

MOST_HALVINGS: Final = 200

_FAR: Final = 1e40
"""So many bandwidths away is as far as any: the weights are those of the limit."""


class LocalWeights(NamedTuple):
    """Weights of m values at n places x, around the value v_k nearest to each."""

    masses: Array  # (n, m): q, but for a factor of each row
    totals: Array  # (n,): their sums
    offsets: Array  # (n, m): (v − v_k) / (√2 h₀)
    widening: Array  # (n,): h/h₀ ≥ 1
    nearest: Indices  # (n,): k


def least_spread_share(shares: Array) -> float:
    """The share ρ that stays beside the nearest value."""
    return min(LEAST_SPREAD_SHARE, (1.0 - float(shares.max())) / 2.0)


def deviation(values: Array, shares: Array) -> float:
    """The standard deviation of values, over their range (values increase)."""
    offsets = (values - values[0]) / (values[-1] - values[0])
    centered = offsets - shares @ offsets
    return float(np.sqrt(shares @ centered**2))


def temper(values: Array, shares: Array, unit: float, x: Array) -> LocalWeights:
    """Weights of observed values at places x; values (m,), shares (m,), x (n,)."""
    nearest = _nearest(values, x)
    offsets = (values - values[nearest, None]) / unit
    with np.errstate(over="ignore"):
        place = np.clip((x - values[nearest]) / unit, -_FAR, _FAR)
    # t₀ ((v_k − x)² − (v − x)²) ≤ 0, as v_k is nearest
    gain = 2.0 * place[:, None] - offsets
    gain *= offsets
    masses = np.exp(gain)
    masses *= shares
    totals = masses.sum(axis=1)
    slack = np.ones(len(x))
    beside = least_spread_share(shares)
    narrow = np.flatnonzero(1.0 - shares[nearest] / totals < beside)
    if len(narrow) > 0:
        slack[narrow] = _slack(gain[narrow], shares, nearest[narrow], beside)
        masses[narrow] = shares * np.exp(slack[narrow, None] * gain[narrow])
        totals[narrow] = masses[narrow].sum(axis=1)
    with np.errstate(divide="ignore"):
        return LocalWeights(masses, totals, offsets, 1.0 / np.sqrt(slack), nearest)


def _nearest(values: Array, x: Array) -> Indices:
    """The position of the value nearest to each x, of two the smaller one."""
    above = np.clip(np.searchsorted(values, x), 1, len(values) - 1)
    with np.errstate(over="ignore"):
        lower = x - values[above - 1] <= values[above] - x
    return above - lower


def _slack(gain: Array, shares: Array, nearest: Indices, beside: float) -> Array:
    """The largest t/t₀ with ρ beside the nearest value, by bisection, (n,)."""
    low, high = np.zeros(len(gain)), np.ones(len(gain))
    for _ in range(MOST_HALVINGS):
        middle = 0.5 * (low + high)
        open_ = np.flatnonzero((low < middle) & (middle < high))
        if len(open_) == 0:
            break
        at = middle[open_]
        narrow = _beside(gain[open_], shares, nearest[open_], at) < beside
        high[open_[narrow]] = at[narrow]
        low[open_[~narrow]] = at[~narrow]
    return low


def _beside(gain: Array, shares: Array, nearest: Indices, slack: Array) -> Array:
    """The mass that is not on the nearest value, shape (n,)."""
    masses = shares * np.exp(slack[:, None] * gain)
    masses[np.arange(len(gain)), nearest] = 0.0
    others = masses.sum(axis=1)
    return np.asarray(others / (others + shares[nearest]))


# ---- What a law of a column makes of factors: means, and contrasts


def of_runs(
    ends: tuple[Array, Array] | tuple[Indices, Indices],
    missing: Mask,
    whole: Array | Indices,
    tables: Callable[[Array, Any], tuple[Array, Array]],
) -> Mixing:
    """What a law makes of sets of numbers: runs between ends, some with missing.

    Tables take places (n,), and ends as numbers or positions of values, to law and
    contrast of what is up to each of these, then of NaN.
    """
    every = np.unique(np.concatenate([whole, *ends]))
    start, stop = (np.searchsorted(every, end) for end in ends)
    return partial(_between, tables, every, start, stop, np.flatnonzero(missing))


def _between(
    tables: Callable[[Array, Any], tuple[Array, Array]],
    every: Any,  # the ends
    start: Indices,  # (U,): among these, of each set
    stop: Indices,
    also: Indices,  # sets that have NaN
    x: Array,
) -> tuple[Array, Array]:
    """What tables have between two ends, and of NaN where that is in the set."""
    law, contrast = tables(x, every)
    P, R = law.take(stop, 0), contrast.take(stop, 0)
    P -= law.take(start, 0)
    R -= contrast.take(start, 0)
    P[also] += law[-1]
    R[also] += contrast[-1]
    return P, R


FEW_VALUES: Final = 32
"""Of a column of so many values at most measures are kept for each."""


@final
@dataclass(frozen=True, eq=False)
class ValueMixings:
    """Measures of sets, kept at each value of a column, and found elsewhere."""

    mixing: Mixing
    values: Array  # (m,): increasing

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Both measures at places x (n,), (U, n) each."""
        place = np.minimum(np.searchsorted(self.values, x), len(self.values) - 1)
        other = np.flatnonzero(self.values[place] != x)
        P, R = (measure.take(place, 1) for measure in self._kept)
        if len(other) > 0:
            P[:, other], R[:, other] = self.mixing(x[other])
        return P, R

    @cached_property
    def _kept(self) -> tuple[Array, Array]:
        """At each value, (U, m) each."""
        return self.mixing(self.values)


# ---- A column of numbers: its law near a row, and its contrast


NEAR: Final = Budget(2**18)
"""Weights of rows that are made at once: they stay near the processor."""


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
    """

    values: Array  # (m,): the different values of the reference rows, increasing
    shares: Array  # (m,): the share p of each among the rows that are not missing

    @classmethod
    def of(cls, column: Array, name: str) -> NumericLaw:
        """That of a column of reference rows, NaN where it is missing."""
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

    @cached_property
    def spread(self) -> float:
        """The standard deviation s; 0 for a single value, NaN for none."""
        if len(self.values) < 2:
            return 0.0 if len(self.values) == 1 else np.nan
        return self.extent * deviation(self.values, self.shares)

    @cached_property
    def unit(self) -> float:
        """√2 h₀ = s/√2, in which distances are measured."""
        return self.spread / math.sqrt(2.0)

    def has_slope(self, x: Array) -> Mask:
        """Where the contrast is a slope over three values or more, shape (n,)."""
        return ~np.isnan(x) & (len(self.values) >= 3)

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Means and variances of the law at each x, (n,) and (n,)."""
        means, variances = x.copy(), np.zeros(len(x))
        there = ~np.isnan(x)
        if len(self.values) < 2:
            means[there] = self.values[0] if len(self.values) == 1 else np.nan
            return means, variances
        for some, local in self._all_tempered(x, np.flatnonzero(there)):
            _, centers, scale = _centered(local)
            means[some] = self.values[local.nearest] + self.unit * centers
            variances[some] = self.unit**2 * scale / local.totals
        return means, variances

    def quantiles(self, x: Array, uniforms: Array) -> Array:
        """Draws: the inverse of the law's cdf at uniforms (S,), shape (n, S)."""
        samples = np.full((len(x), len(uniforms)), np.nan)
        there = np.flatnonzero(~np.isnan(x))
        if len(self.values) < 2:
            samples[there] = self.values[0] if len(self.values) == 1 else np.nan
            return samples
        # equal rows have equal draws
        _, first, where = np.unique(x[there], return_index=True, return_inverse=True)
        indices = there[first]
        for some, local in self._all_tempered(x, indices):
            cumulative = np.cumsum(local.masses, axis=1)
            cumulative /= cumulative[:, -1:]
            for n, own in zip(some, cumulative, strict=True):
                at = np.searchsorted(own, uniforms, side="right")
                samples[n] = self.values[np.minimum(at, len(self.values) - 1)]
        samples[there] = samples[indices[where]]
        return samples

    def mixing(self, factors: Factors) -> Mixing:
        """Σ_v q(v) g(v) and Σ_v r(v) g(v); of sets from cumulative sums."""
        if isinstance(factors, Sets):
            ends, whole = self.runs(factors), np.array([0, len(self.values)])
            runs = of_runs(ends, factors.missing, whole, self._tables)
            few = 0 < len(self.values) <= FEW_VALUES
            return ValueMixings(runs, self.values) if few else runs
        return partial(self._mixed, factors)

    def _mixed(self, factors: Factors, x: Array) -> tuple[Array, Array]:
        """As :meth:`mixing`, of so many factors at once that their tables fit."""
        P, R = np.empty((2, len(factors), len(x)))
        numbers = np.arange(len(factors))
        for some in BATCH_BUDGET.blocks(len(factors), 8 * max(len(self.values), 1)):
            P[some], R[some] = self._summed(factors.take(numbers[some]), x)
        return P, R

    def _summed(self, factors: Factors, x: Array) -> tuple[Array, Array]:
        """Value by value."""
        of_missing = factors.at(np.array([np.nan]))
        P, R = np.repeat(of_missing, len(x), axis=1), np.zeros((len(factors), len(x)))
        if len(self.values) == 0:
            return P, R
        g, absent = factors.at(self.values), np.isnan(x)
        there = np.flatnonzero(~absent)
        R[:, absent] = of_missing - (g @ self.shares)[:, None]
        if len(self.values) == 1:
            P[:, there] = g
            return P, R
        if len(self.values) == 2:
            R[:, there] = ((g[:, 1] - g[:, 0]) / self.extent)[:, None]
        # contrasts add up to 0: what all values share is no part of them
        varying = g - np.median(g, axis=1, keepdims=True)
        for some, local in self._all_tempered(x, there):
            P[:, some] = g @ local.masses.T / local.totals
            if len(self.values) > 2:
                masses, _, scale = _centered(local)
                R[:, some] = varying @ masses.T / (scale * self.unit)
        return P, R

    def split_by(self, sets: Sets) -> Sets:
        """Sets of numbers of this column, those that hold the same values alike."""
        start, stop = self.runs(sets)
        ends = np.append(-np.inf, self.values)
        high = np.where(stop == len(self.values), np.inf, ends[stop])
        return replace(sets, low=ends[start], high=high)

    def runs(self, sets: Sets) -> tuple[Indices, Indices]:
        """Where the values in each set start and stop; 0 and 0 where there are none."""
        ends = np.stack([sets.low, sets.high])
        start, stop = np.searchsorted(self.values, ends, side="right")
        some = start < stop
        return np.where(some, start, 0), np.where(some, stop, 0)

    def _tables(self, x: Array, cuts: Indices) -> tuple[Array, Array]:
        """Cumulative law and contrast at each x, then those of missing, (c + 1, n)."""
        law, contrast = np.empty((2, len(cuts) + 1, len(x)))
        law[-1] = contrast[-1] = np.isnan(x)
        if len(self.values) == 0:  # always missing, held against nothing
            law[-1], contrast[-1] = 1.0, 0.0
        different, where = np.unique(x, return_inverse=True)
        if len(different) == len(x):
            different, where = x, np.arange(len(x))
        sums, slopes = self.cumulative(different, cuts)
        law[:-1], contrast[:-1] = sums[where].T, slopes[where].T
        return law, contrast

    def cumulative(self, x: Array, cuts: Indices) -> tuple[Array, Array]:
        """Law and contrast of the first ``cuts`` = 0, ..., m values, (n, c) each."""
        law, contrast = np.zeros((len(x), len(cuts))), np.zeros((len(x), len(cuts)))
        absent = np.isnan(x)
        contrast[absent] = -self._cumulative_shares[cuts]
        there = np.flatnonzero(~absent)
        if len(self.values) < 2:
            law[there, -1] = min(len(self.values), 1)
            return law, contrast
        if len(self.values) == 2:
            contrast[there] = np.where(cuts == 1, -1.0 / self.extent, 0.0)
        for some, local in self._all_tempered(x, there):
            sums = _summed(local.masses, cuts)
            law[some] = sums / sums[:, -1:]
            if len(self.values) > 2:
                masses, _, scale = _centered(local)
                slopes = _summed(masses, cuts) / (scale * self.unit)[:, None]
                contrast[some, :-1] = slopes[:, :-1]
        return law, contrast

    @cached_property
    def _cumulative_shares(self) -> Array:
        sums = np.concatenate([[0.0], np.cumsum(self.shares)])
        sums[-1] = min(len(self.values), 1)
        return sums

    def _all_tempered(
        self, x: Array, rows: Indices
    ) -> Iterator[tuple[Indices, LocalWeights]]:
        """The law at some of the places, a few at once."""
        for block in NEAR.blocks(len(rows), 8 * len(self.values)):
            some = rows[block]
            yield some, temper(self.values, self.shares, self.unit, x[some])


def _centered(local: LocalWeights) -> tuple[Array, Array, Array]:
    """With offsets z: masses q (z − z̄), the centers z̄, and Σ q (z − z̄)²."""
    # einsum would add up one row alone in another order
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


# ---- A column of categories: the category of a row, and its contrast with all others


@final
@dataclass(frozen=True, eq=False)
class CodedLaw:
    """A category stays what it is; its contrast is δ_x − p: an effect."""

    shares: Array  # (K,): the share p of each code among the reference rows

    @classmethod
    def of(cls, column: Array, n_codes: int) -> CodedLaw:
        """That of a column of codes of reference rows."""
        counts = np.bincount(column.astype(np.intp), minlength=n_codes)
        return cls(counts / len(column))

    def has_slope(self, x: Array) -> Mask:
        return np.zeros(len(x), dtype=bool)

    def moments(self, x: Array) -> tuple[Array, Array]:
        return x.copy(), np.zeros(len(x))

    def quantiles(self, x: Array, uniforms: Array) -> Array:
        return np.tile(x[:, None], (1, len(uniforms)))

    def mixing(self, factors: Factors) -> Mixing:
        """g(x) and g(x) − Σ_v p(v) g(v); g may be NaN of codes that nothing has."""
        g = factors.at(np.arange(len(self.shares), dtype=np.float64))
        known = np.where(self.shares > 0.0, g, 0.0)
        effects = g - (known * self.shares).sum(axis=1)[:, None]
        return partial(_at_codes, g, effects)

    def split_by(self, sets: Sets) -> Sets:
        """Sets of codes; those that hold all are as sets that hold everything."""
        full = sets.members[sets.group][:, : len(self.shares)].all(axis=1)
        return replace(
            sets, missing=sets.missing | full, group=np.where(full, -1, sets.group)
        )


def _at_codes(law: Array, contrast: Array, x: Array) -> tuple[Array, Array]:
    codes = x.astype(np.intp)
    return law[:, codes], contrast[:, codes]


ColumnLaw: TypeAlias = NumericLaw | CodedLaw
"""A law on observed values."""


# ---- A column of numbers with gaussian noise


Observed: TypeAlias = tuple[ObservedValues | None, ...] | None
"""The observed values of each column of numbers (D,), where a table tells them."""


@final
@dataclass(frozen=True, eq=False)
class NoisyColumn:
    """V ~ N(x, δ²) of numbers, and the slope of its means by x; V = x if δ = 0."""

    scale: float  # δ
    column: int
    observed: Observed

    def mixing(self, factors: Factors) -> Mixing:
        """E g(V) and its derivative by x."""
        if isinstance(factors, Sets):
            ends = factors.low, np.maximum(factors.low, factors.high)
            whole = np.array([-np.inf, np.inf])
            return of_runs(ends, factors.missing, whole, self._tables)
        return partial(self._mixed, factors)

    def split_by(self, sets: Sets) -> Sets:
        """Sets as they are; of NaN alone those have low ≥ high."""
        return replace(sets, high=np.maximum(sets.low, sets.high))

    def _mixed(self, factors: Factors, x: Array) -> tuple[Array, Array]:
        P, R, absent = factors.at(x), np.zeros((len(factors), len(x))), np.isnan(x)
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
        """Φ and its derivative by x at each end, then those of missing, (C + 1, n)."""
        law, contrast = np.zeros((2, len(ends) + 1, len(x)))
        if self.scale == 0.0:
            law[:-1] = x <= ends[:, None]
        else:
            z = (ends[:, None] - x) / self.scale
            with np.errstate(under="ignore"):
                density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
            law[:-1], contrast[:-1] = ndtr(z), density / -self.scale
        absent = np.isnan(x)
        law[-1] = absent
        if absent.any():
            law[:-1, absent] = contrast[:, absent] = 0.0
            if self._atoms is not None:  # δ_missing − p up to each end
                share = self._atoms.share_between(np.full(len(ends), -np.inf), ends)
                contrast[:, absent] = np.append(-share, 1.0)[:, None]
        return law, contrast

    @property
    def _atoms(self) -> ObservedValues | None:
        """The observed values; None where no table tells, or has any."""
        if self.observed is None:
            return None
        atoms = observed_values_of(self.observed, self.column)
        return atoms if len(atoms.values) > 0 else None
