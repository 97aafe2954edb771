"""The law of one column: numbers, codes, and the intervals it tells apart.

Observed values weighed by how near they are, never by one of them alone. At x the
weights of values v with counts n are q_v ∝ n_v exp(−t (v − x)²), t = 1/2h². The
bandwidth h starts at half a standard deviation, h₀, and is widened where more than
1 − ρ of the mass would be on the nearest value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, final

import numpy as np
from scipy.special import ndtr

from propopt.base.arrays import Array, Positions, Truths
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.algebra import ranks
from propopt.tables.columns import Atoms, atoms_of


# ---- Measures on single values of a column


class Measure(NamedTuple):
    """Masses on finitely many values of one column."""

    values: Array
    """Numbers or codes, NaN where a number is missing, (m,)."""

    masses: Array
    """One for each, (m,)."""


# ---- Observed values weighed by how near they are, never by one of them alone


LEAST_BESIDE: Final = 0.02
"""The share ρ that stays beside the nearest value; less if nearly all rows have it."""

MOST_HALVINGS: Final = 200

_FAR: Final = 1e40
"""So many bandwidths away is as far as any: the weights are those of the limit."""


class Tempered(NamedTuple):
    """Weights of m values at n places x, around the value v_k nearest to each."""

    masses: Array
    """q, but for a factor of each row, (n, m)."""

    totals: Array
    """Their sums, (n,)."""

    offsets: Array
    """(v − v_k) / (√2 h₀), (n, m)."""

    widening: Array
    """h/h₀ ≥ 1, (n,)."""

    nearest: Positions
    """k, (n,)."""


def deviation(values: Array, shares: Array) -> float:
    """The standard deviation of values, over their range (values increase)."""
    offsets = (values - values[0]) / (values[-1] - values[0])
    centered = offsets - shares @ offsets
    return float(np.sqrt(shares @ centered**2))


def temper(values: Array, shares: Array, unit: float, x: Array) -> Tempered:
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
    beside = min(LEAST_BESIDE, (1.0 - shares.max()) / 2.0)
    narrow = np.flatnonzero(1.0 - shares[nearest] / totals < beside)
    if len(narrow) > 0:
        slack[narrow] = _slack(gain[narrow], shares, nearest[narrow], beside)
        masses[narrow] = shares * np.exp(slack[narrow, None] * gain[narrow])
        totals[narrow] = masses[narrow].sum(axis=1)
    with np.errstate(divide="ignore"):
        return Tempered(masses, totals, offsets, 1.0 / np.sqrt(slack), nearest)


def _nearest(values: Array, x: Array) -> Positions:
    """The position of the value nearest to each x, of two the smaller one."""
    above = np.clip(np.searchsorted(values, x), 1, len(values) - 1)
    with np.errstate(over="ignore"):
        lower = x - values[above - 1] <= values[above] - x
    return above - lower


def _slack(gain: Array, shares: Array, nearest: Positions, beside: float) -> Array:
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


def _beside(gain: Array, shares: Array, nearest: Positions, slack: Array) -> Array:
    """The mass that is not on the nearest value, shape (n,)."""
    masses = shares * np.exp(slack[:, None] * gain)
    masses[np.arange(len(gain)), nearest] = 0.0
    others = masses.sum(axis=1)
    return np.asarray(others / (others + shares[nearest]))


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

    def has_slope(self, x: Array) -> Truths:
        """Where the contrast is a slope over three values or more, shape (n,)."""
        return ~np.isnan(x) & (len(self.values) >= 3)

    def law(self, x: float) -> Measure:
        """The law q at one value x, NaN if it is missing."""
        if np.isnan(x) or len(self.values) == 0:
            return Measure(np.array([np.nan]), np.ones(1))
        if len(self.values) == 1:
            return Measure(self.values, np.ones(1))
        local = self._tempered(np.array([x]))
        return Measure(self.values, local.masses[0] / local.totals[0])

    def contrast(self, x: float) -> Measure:
        """The contrast r at one value x, NaN if it is missing."""
        if len(self.values) == 0:
            return Measure(np.array([np.nan]), np.zeros(1))
        if np.isnan(x):
            return Measure(np.append(self.values, np.nan), np.append(-self.shares, 1.0))
        if len(self.values) < 3:
            return Measure(self.values, self._difference[: len(self.values)])
        local = self._tempered(np.array([x]))
        slopes = _centered(local)
        return Measure(self.values, slopes.masses[0] / (slopes.scale[0] * self.unit))

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Means and variances of the law at each x, (n,) and (n,)."""
        means, variances = x.copy(), np.zeros(len(x))
        there = ~np.isnan(x)
        if len(self.values) < 2:
            means[there] = self.values[0] if len(self.values) == 1 else np.nan
            return means, variances
        for some, local in self._all_tempered(x, np.flatnonzero(there)):
            slopes = _centered(local)
            means[some] = self.values[local.nearest] + self.unit * slopes.centers
            variances[some] = self.unit**2 * slopes.scale / local.totals
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

    def cumulative(self, x: Array, cuts: Positions) -> tuple[Array, Array]:
        """Law and contrast of the first ``cuts`` values (c,), each of shape (n, c).

        The first cut is 0 and the last m: there the law is 0 and 1, the contrast 0.
        Where x is missing the law is 0, and the contrast that of no missing values.
        """
        law, contrast = np.zeros((len(x), len(cuts))), np.zeros((len(x), len(cuts)))
        absent = np.isnan(x)
        contrast[absent] = -self._cumulative_shares[cuts]
        there = np.flatnonzero(~absent)
        if len(self.values) < 2:
            law[there, -1] = min(len(self.values), 1)
            return law, contrast
        if len(self.values) == 2:
            contrast[there] = np.where(cuts == 1, self._difference[0], 0.0)
        for some, local in self._all_tempered(x, there):
            sums = _summed(local.masses, cuts)
            law[some] = sums / sums[:, -1:]
            if len(self.values) > 2:
                contrast[some, :-1] = self._slopes_of_first(local, cuts)[:, :-1]
        return law, contrast

    def _slopes_of_first(self, local: Tempered, cuts: Positions) -> Array:
        """Σ q_v (v − v̄) / Var_q of the first ``cuts`` values, (n, c)."""
        slopes = _centered(local)
        scale = slopes.scale * self.unit
        return np.asarray(_summed(slopes.masses, cuts) / scale[:, None])

    @cached_property
    def _difference(self) -> Array:
        """The contrast of two values, (−1, +1) / (v_2 − v_1), or of one, 0."""
        if len(self.values) < 2:
            return np.zeros(len(self.values))
        return np.array([-1.0, 1.0]) / self.extent

    @cached_property
    def _cumulative_shares(self) -> Array:
        sums = np.concatenate([[0.0], np.cumsum(self.shares)])
        sums[-1] = min(len(self.values), 1)
        return sums

    def _tempered(self, x: Array) -> Tempered:
        return temper(self.values, self.shares, self.unit, x)

    def _all_tempered(
        self, x: Array, rows: Positions
    ) -> Iterator[tuple[Positions, Tempered]]:
        """The law at some of the places, a few at once."""
        for block in NEAR.blocks(len(rows), 8 * len(self.values)):
            some = rows[block]
            yield some, self._tempered(x[some])


@final
@dataclass(frozen=True, eq=False)
class NumericCells:
    """Sets of a column of numbers: runs of its values, with or without missing."""

    law: NumericLaw
    # (U,): positions of values: from start on, before stop; 0, 0 for none
    start: Positions
    stop: Positions  # shape (U,)
    missing: Truths  # (U,): whether NaN is in

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

    def take(self, chosen: Positions) -> NumericCells:
        return NumericCells(
            self.law, self.start[chosen], self.stop[chosen], self.missing[chosen]
        )

    @cached_property
    def _cuts(self) -> Positions:
        """The different ends of runs, from 0 to m."""
        ends = ([0, len(self.law.values)], self.start, self.stop)
        return np.unique(np.concatenate(ends))

    @property
    def n_entries(self) -> int:
        """Those of its tables: one for each cut, and one for missing."""
        return len(self._cuts) + 1

    @property
    def entries(self) -> tuple[Positions, Positions, Positions]:
        return (
            np.searchsorted(self._cuts, self.start),
            np.searchsorted(self._cuts, self.stop),
            np.where(self.missing, len(self._cuts), -1),
        )

    def fill(self, x: Array, law: Array, contrast: Array) -> None:
        """Fill tables (entries, n): cumulative law and contrast at each x."""
        absent = effect = np.isnan(x).astype(float)
        if len(self.law.values) == 0:  # always missing, held against nothing
            absent, effect = np.ones(len(x)), np.zeros(len(x))
        law[-1], contrast[-1] = absent, effect
        different, where = np.unique(x, return_inverse=True)
        if len(different) == len(x):
            different, where = x, np.arange(len(x))
        sums, slopes = self.law.cumulative(different, self._cuts)
        law[:-1], contrast[:-1] = sums[where].T, slopes[where].T


class _Slopes(NamedTuple):
    """Masses times offsets from the mean."""

    masses: Array
    """q_v (z_v − z̄), but for the factor of each row that q has, (n, m)."""

    centers: Array
    """z̄, (n,)."""

    scale: Array
    """What the masses are divided by for slopes per unit of z, (n,)."""


def _centered(local: Tempered) -> _Slopes:
    """With offsets z: masses q (z − z̄), and their scale Σ q (z − z̄)²."""
    centers = np.einsum("nm,nm->n", local.masses, local.offsets) / local.totals
    offsets = local.offsets - centers[:, None]
    masses = local.masses * offsets
    return _Slopes(masses, centers, np.einsum("nm,nm->n", masses, offsets))


def _summed(masses: Array, cuts: Positions) -> Array:
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

    @property
    def spread(self) -> float:
        """Always 1: effects are not scaled."""
        return 1.0

    def has_slope(self, x: Array) -> Truths:
        """Nowhere."""
        return np.zeros(len(x), dtype=bool)

    def law(self, x: float) -> Measure:
        """All on x."""
        return Measure(np.array([x]), np.ones(1))

    def contrast(self, x: float) -> Measure:
        """1 on x, less the shares of all codes."""
        masses = -self.shares
        masses[int(x)] += 1.0
        return Measure(np.arange(len(masses), dtype=np.float64), masses)

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Codes have no scatter."""
        return x.copy(), np.zeros(len(x))

    def quantiles(self, x: Array, uniforms: Array) -> Array:
        """Draws, all of them x, shape (n, S)."""
        return np.tile(x[:, None], (1, len(uniforms)))

    def cells(self, sets: Sets) -> CodedCells:
        """Sets of codes of this column."""
        return CodedCells(self, sets.members[sets.group][:, : len(self.shares)])


@final
@dataclass(frozen=True, eq=False)
class CodedCells:
    """Sets of codes of a column."""

    law: CodedLaw
    members: Truths  # (U, K): which codes are in

    @property
    def keys(self) -> tuple[Positions]:
        return (ranks(self.members.T),)

    @property
    def full(self) -> Truths:
        """Which hold all codes."""
        return np.asarray(self.members.all(axis=1))

    @property
    def empty(self) -> Truths:
        """Which hold none."""
        return np.asarray((~self.members).all(axis=1))

    def take(self, chosen: Positions) -> CodedCells:
        return CodedCells(self.law, self.members[chosen])

    @cached_property
    def _tables(self) -> tuple[Array, Array]:
        """P and R of each set at each code, (U, K)."""
        inside = self.members.astype(float)
        shares = np.where(self.members, self.law.shares, 0.0).sum(axis=1)
        return inside, inside - shares[:, None]

    @property
    def n_entries(self) -> int:
        """Those of its tables: one for each set."""
        return len(self.members)

    @property
    def entries(self) -> tuple[Positions, Positions, Positions]:
        """Of each set its own, −1 for none, (U,)."""
        nothing = np.full(len(self.members), -1)
        return nothing, np.arange(len(self.members)), nothing

    def fill(self, x: Array, law: Array, contrast: Array) -> None:
        """Fill tables (U, n): law and contrast of each set at each code."""
        codes = x.astype(np.intp)
        P, R = self._tables
        law[:], contrast[:] = P[:, codes], R[:, codes]


# ---- Intervals of numbers under gaussian noise


@final
@dataclass(frozen=True, eq=False)
class IntervalCells:
    """Sets low < V ≤ high, with or without missing, of V ~ N(x, δ²), V = x if δ = 0."""

    low: Array  # (U,): ends, low ≤ high
    high: Array  # shape (U,)
    missing: Truths  # (U,): whether NaN is in
    scale: float  # δ
    column: int  # the position of the column
    # (D,): the observed values of numbers, against which a missing one is held
    observed: tuple[Atoms | None, ...] | None

    @classmethod
    def of(
        cls,
        sets: Sets,
        scale: float,
        column: int,
        observed: tuple[Atoms | None, ...] | None,
    ) -> IntervalCells:
        """Those of a column of numbers; a set of NaN alone has low ≥ high there."""
        high = np.maximum(sets.low, sets.high)
        return cls(sets.low, high, sets.missing, scale, column, observed)

    @property
    def keys(self) -> tuple[Array, Array, Truths]:
        return self.low, self.high, self.missing

    @property
    def full(self) -> Truths:
        """Which hold all numbers and missing."""
        return (self.low == -np.inf) & (self.high == np.inf) & self.missing

    @property
    def empty(self) -> Truths:
        """Which hold nothing."""
        return (self.low >= self.high) & ~self.missing

    def take(self, chosen: Positions) -> IntervalCells:
        return IntervalCells(
            self.low[chosen],
            self.high[chosen],
            self.missing[chosen],
            self.scale,
            self.column,
            self.observed,
        )

    @cached_property
    def _ends(self) -> Array:
        return np.unique(np.concatenate([self.low, self.high]))

    @property
    def n_entries(self) -> int:
        """Those of its tables: one for each end, and one for missing."""
        return len(self._ends) + 1

    @property
    def entries(self) -> tuple[Positions, Positions, Positions]:
        return (
            np.searchsorted(self._ends, self.low),
            np.searchsorted(self._ends, self.high),
            np.where(self.missing, len(self._ends), -1),
        )

    def fill(self, x: Array, law: Array, contrast: Array) -> None:
        """Fill tables (entries, n): Φ and its derivative by x at each end."""
        if self.scale == 0.0:  # a number that gets no noise
            law[:-1], contrast[:-1] = x <= self._ends[:, None], 0.0
        else:
            z = (self._ends[:, None] - x) / self.scale
            law[:-1], contrast[:-1] = ndtr(z), _density(z) / -self.scale
        absent = np.isnan(x)
        law[-1], contrast[-1] = absent, 0.0
        if absent.any():
            law[:-1, absent] = 0.0
            contrast[:, absent] = self._effect[:, None]

    @cached_property
    def _effect(self) -> Array:
        """δ_missing − p up to each end, and of missing; 0 where nothing is observed."""
        nothing = np.zeros(self.n_entries)
        if self.observed is None:
            return nothing
        atoms = atoms_of(self.observed, self.column)
        if len(atoms.values) == 0:
            return nothing
        below = np.full(len(self._ends), -np.inf)
        return np.append(-atoms.share_between(below, self._ends), 1.0)


def _density(z: Array) -> Array:
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi))
