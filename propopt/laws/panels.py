"""The law of columns of numbers by tables: series in the place x, by panels.

At x the weight of a value v is n_v exp(−(v − x)²/2h²), and means of sets ask for its
cumulative sums and first moments. A panel is as wide as h, with center x₀. With
z = (v − x₀)/h, the mean z̄ of these under the weights at x₀, y = z − z̄, and
d = (x − x₀)/h,

    exp(−(v − x)²/2h²) ∝ exp(−z²/2) exp(d y),  |d| ≤ 1/2,

where what is left out depends on x alone and cancels in means. So the cumulative sums
are A(d) = Σ_q M_q dᵠ, with M_q the cumulative sums of e_v yᵠ/q! and e_v the weights at
x₀, which add up to 1. Cumulative first moments are A′(d), and second ones A″(d). Cut
behind the degree K, A⁽ʲ⁾ lacks terms from p = K + 1 − j on. With t = |y|/2 it is wrong
by at most

    E_j = Σ_v e_v |y|ʲ tᵖ/p! min(exp(t), 1/(1 − t/(p + 1))),  E_0 < E_1 < E_2.

By Jensen's inequality A(d) ≥ 1. The variance at d is half the mean of (y_v − y_w)²
over pairs of values. By the same inequality it is at least
V = σ² exp(−|κ|/2σ²)/γ², with σ² and κ the second and third moment of y at d = 0, and
γ = Σ_v e_v exp(t) ≥ A(d). A panel has a table if E_2 ≤ 10⁻¹³ V, if γ is small, as then
rounding grows little, and if nowhere in it the law is widened. In other panels, beyond
them and where x is missing, the law of this column is found value by value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Indices, Mask, Points
from propopt.base.kernels import kernel
from propopt.base.resources import Budget
from propopt.laws.column_laws import NumericLaw, least_spread_share
from propopt.structures.boxes.sets import Sets


DEGREE: Final = 23
"""K, where series are cut."""

TRUNCATION: Final = 1e-13
"""The largest E_2/V of a panel with a table."""

MOST_GROWN: Final = 8.0
"""The largest Σ e_v exp(|y|/2): terms are so much larger than their sum."""

BEYOND: Final = 4
"""Panels on each side of the observed values."""

TABLES: Final = Budget(2**28)
"""Of all columns; those beyond it are found value by value."""

_FEW_CUTS: Final = 256
_VALUES_PER_CUT: Final = 5
"""More cuts pay if so many values would be added up for each."""

_LANE: Final = 8
"""Cuts in tables are rounded up to it, by zeros."""

_NOT_MADE, _MADE, _EXACT = 0, 1, 2


class Cuts(NamedTuple):
    """Sets of a column as differences of cumulative sums of its law."""

    part: int  # a number that tells these sets from others
    column: int
    law: NumericLaw
    cuts: Indices  # (c,): numbers of values, from 0 to m, increasing
    factors: Indices  # (u,): the numbers of these sets among all factors
    start: Indices  # (u,): where each set starts and stops among the cuts
    stop: Indices

    @classmethod
    def of(
        cls, part: int, column: int, law: NumericLaw, sets: Sets, factors: Indices
    ) -> Self:
        """Sets of a column, and their numbers."""
        start, stop = law.runs(sets)
        cuts = np.unique(np.concatenate([start, stop, [0, len(law.values)]]))
        ends = np.searchsorted(cuts, start), np.searchsorted(cuts, stop)
        return cls(part, column, law, cuts, factors, *ends)

    @property
    def extent(self) -> tuple[float, float, float]:
        """Where panels start, how wide and how many they are."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            width = np.float64(self.law.spread) / 2.0
            number = np.ceil(self.law.extent / width) + 2 * BEYOND
            return float(self.law.values[0] - BEYOND * width), float(width), number

    @property
    def pays(self) -> bool:
        """Whether there is a spread, and a table is faster than value by value."""
        n_values, n_cuts = len(self.law.values), len(self.cuts)
        if n_values < 3 or n_cuts > max(_FEW_CUTS, n_values // _VALUES_PER_CUT):
            return False
        low, width, number = self.extent
        return bool(np.isfinite([low, low + number * width, 1.0 / width]).all())

    @property
    def n_bytes(self) -> int:
        """Those of all tables."""
        return 8 * (DEGREE + 1) * self.stride * int(self.extent[2])

    @property
    def stride(self) -> int:
        """Entries for each term of a table."""
        return -(-len(self.cuts) // _LANE) * _LANE


@final
@dataclass(eq=False)
class Panels:
    """Tables of C columns; that of a panel is made when a row asks for it first.

    Which panels have one follows from the law and the cuts, not from rows.
    """

    columns: tuple[Cuts, ...]
    # M of all panels, column by column; memory is taken as they are made
    moments: Array = field(init=False, repr=False)
    _state: NDArray[np.int8] = field(init=False, repr=False)

    @classmethod
    def of(cls, parts: Iterable[Cuts], budget: Budget = TABLES) -> Panels:
        """Of those columns where tables pay, small ones first, within the budget."""
        chosen, used = [], 0
        sized = [(own.n_bytes, own.part, own) for own in parts if own.pays]
        for n_bytes, _, own in sorted(sized, key=lambda one: one[:2]):
            used += n_bytes
            if used > budget.n_bytes:
                break
            chosen.append(own)
        return cls(tuple(chosen))

    def __post_init__(self) -> None:
        # at once, and not when first read: threads share them
        self.moments = np.empty(int(self._offset[-1]))
        self._state = np.full(int(self._n_panels.sum()), _NOT_MADE, np.int8)

    def __reduce__(self) -> tuple[type[Panels], tuple[tuple[Cuts, ...]]]:
        """Without tables, which are made anew where they are asked for."""
        return type(self), (self.columns,)

    @cached_property
    def parts(self) -> Indices:
        """The part that each column is, (C,)."""
        return np.array([own.part for own in self.columns], np.intp)

    def measures(self, x: Points, P: Array, R: Array) -> Mask:
        """Write means and contrasts of factors at rows (n, D) into P and R, (U, n).

        Where it says False, (C, n), nothing is written.
        """
        place, shift = self._placed(x)
        compiled = kernel("panels")
        if compiled is not None:
            compiled(
                *(*place.shape, DEGREE, place, shift, self.moments, self._offset),
                *(self._n_cuts, self._width, *self._sets, P, R, self._scratch()),
            )
        else:
            for c, own in enumerate(self.columns):
                rows = np.flatnonzero(place[c] >= 0)
                if len(rows) > 0:
                    law, contrast = self._cumulative(c, place[c, rows], shift[c, rows])
                    at = own.factors[:, None], rows
                    P[at] = law[own.stop] - law[own.start]
                    R[at] = contrast[own.stop] - contrast[own.start]
        return place >= 0

    def _placed(self, x: Points) -> tuple[Indices, Array]:
        """The panel of each place, −1 for none, and d, (C, n) each; makes tables."""
        own = np.ascontiguousarray(x.T[self._column])
        within = (own >= self._low) & (own < self._low + self._n_panels * self._width)
        own = np.where(within, own, self._low)
        place = ((own - self._low) / self._width).astype(np.intp)
        place = np.minimum(place, self._n_panels - 1)
        shift = (own - self._center(place)) / self._width
        numbers = self._first_panel + place
        new = within & (self._state[numbers] == _NOT_MADE)
        if new.any():
            for c, panel in np.unique([np.nonzero(new)[0], place[new]], axis=1).T:
                self._make(int(c), int(panel))
        within &= self._state[numbers] == _MADE
        return np.where(within, place, -1), shift

    def _center(self, place: Indices) -> Array:
        """x₀ of a panel of each column, (C, n)."""
        return np.asarray(self._low + (place + 0.5) * self._width)

    def _make(self, c: int, panel: int) -> None:
        """Write the table of a panel, if it has one, and that it was looked at."""
        law, cuts = self.columns[c].law, self.columns[c].cuts
        center = self._center(np.full((len(self.columns), 1), panel))[c]
        z = (law.values - center) / self._width[c]
        nearest = np.abs(z).min()
        with np.errstate(under="ignore"):
            weights = law.shares * np.exp(0.5 * (nearest - z) * (nearest + z))
            weights /= weights.sum()
            y = z - weights @ z
            number = int(self._first_panel[c, 0]) + panel
            if not has_table(weights, y, least_spread_share(law.shares)):
                self._state[number] = _EXACT
                return
            terms = np.empty((DEGREE + 1, len(y)))
            terms[0] = weights
            for q in range(1, DEGREE + 1):
                np.multiply(terms[q - 1], y / q, out=terms[q])
            table = np.zeros((DEGREE + 1, self.columns[c].stride))
            sums = np.add.reduceat(terms, cuts[:-1], axis=1)
            np.cumsum(sums, axis=1, out=table[:, 1 : len(cuts)])
        # whole, so that another thread that makes it again changes nothing
        self._table(c)[panel] = table
        self._state[number] = _MADE

    def _cumulative(self, c: int, place: Indices, shift: Array) -> tuple[Array, Array]:
        """Law and contrast of one column up to each cut, (c, n) each."""
        # a product of small matrices for each row: the same bits in any company
        tables = self._table(c)[place]
        sums = (_series(shift) @ tables)[:, :, : len(self.columns[c].cuts)]
        mass, moment, second = sums[:, 0], sums[:, 1], sums[:, 2, -1:]
        mean = moment[:, -1:] / mass[:, -1:]
        variance = second - mean * moment[:, -1:]
        contrast = (moment - mean * mass) / (variance * self._width[c])
        contrast[:, -1] = 0.0  # contrasts add up to 0
        return (mass / mass[:, -1:]).T, contrast.T

    # ---- The tables of all columns, one behind the other, as the kernel takes them

    @cached_property
    def _column(self) -> Indices:
        return np.array([own.column for own in self.columns], np.intp)

    @cached_property
    def _extents(self) -> Array:
        """Where panels start, how wide and how many they are, (3, C, 1)."""
        return (
            np.array([own.extent for own in self.columns])
            .reshape(-1, 3, 1)
            .swapaxes(0, 1)
        )

    @cached_property
    def _low(self) -> Array:
        return np.ascontiguousarray(self._extents[0])

    @cached_property
    def _width(self) -> Array:
        """h, (C, 1)."""
        return np.ascontiguousarray(self._extents[1])

    @cached_property
    def _n_panels(self) -> Indices:
        return self._extents[2].astype(np.intp)

    @cached_property
    def _first_panel(self) -> Indices:
        """The number of the first panel of each column among all, (C, 1)."""
        return np.asarray(np.cumsum(self._n_panels, axis=0) - self._n_panels)

    @cached_property
    def _n_cuts(self) -> Indices:
        return np.array([len(own.cuts) for own in self.columns], np.intp)

    @cached_property
    def _offset(self) -> Indices:
        """Where the tables of each column start, and where the last end, (C + 1,)."""
        return np.cumsum([0, *(own.n_bytes // 8 for own in self.columns)])

    def _table(self, c: int) -> Array:
        """M of the panels of a column, (panels, K + 1, stride)."""
        own = self.moments[self._offset[c] : self._offset[c + 1]]
        return own.reshape(-1, DEGREE + 1, self.columns[c].stride)

    @cached_property
    def _sets(self) -> tuple[Indices, Indices, Indices, Indices]:
        """Where the sets of each column start (C + 1,); their numbers and ends."""
        first = np.cumsum([0, *(len(own.factors) for own in self.columns)])
        nothing = np.zeros(0, np.intp)
        return (
            first,
            np.concatenate([nothing, *(own.factors for own in self.columns)]),
            np.concatenate([nothing, *(own.start for own in self.columns)]),
            np.concatenate([nothing, *(own.stop for own in self.columns)]),
        )

    def _scratch(self) -> Array:
        return np.empty(2 * max((own.stride for own in self.columns), default=0))


_ORDERS: Final = np.arange(DEGREE + 1.0)
_SLOPES: Final = (np.ones(DEGREE + 1), _ORDERS, _ORDERS * (_ORDERS - 1.0))


def _series(shift: Array) -> Array:
    """Of each d the factors of M in A, A′ and A″, (n, 3, K + 1)."""
    powers = np.ones((len(shift), DEGREE + 1))
    np.cumprod(np.repeat(shift[:, None], DEGREE, axis=1), axis=1, out=powers[:, 1:])
    series = np.zeros((len(shift), 3, DEGREE + 1))
    for j, slopes in enumerate(_SLOPES):
        series[:, j, j:] = slopes[j:] * powers[:, : DEGREE + 1 - j]
    return series


def has_table(weights: Array, y: Array, beside: float) -> bool:
    """Whether the series of a panel are near enough, and the law is not widened there.

    ``weights`` e and ``y`` are (m,); ``beside`` is ρ.
    """
    grown = weights * np.exp(0.5 * np.abs(y))
    # divided by A(d) ≥ 1 weights are at most as large
    if grown.sum() > MOST_GROWN or grown.max() >= 1.0 - beside:
        return False
    error, variance = truncation(weights, y)
    return error < TRUNCATION * variance


def truncation(weights: Array, y: Array) -> tuple[float, float]:
    """E_2 and V of a panel, by its weights e and y, (m,) each."""
    t = 0.5 * np.abs(y)
    growth = np.exp(t)
    p = DEGREE - 1
    # 1/(1 − t/(p + 1)) where that is smaller
    rest = np.minimum(growth, 1.0 / np.maximum(1.0 - t / (p + 1), 1.0 / growth))
    error = weights @ (y**2 * t**p * rest) / math.factorial(p)
    square, cube = weights @ y**2, weights @ y**3
    if square == 0.0:
        return float(error), 0.0
    least = square * math.exp(-abs(cube) / (2.0 * square)) / (weights @ growth) ** 2
    return float(error), float(least)
