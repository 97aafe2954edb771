"""The law of columns of numbers by tables: power series in x on panels.

At x the weight of a value v is n_v exp(−(v − x)²/2h²), and means of sets ask for its
cumulative sums and first moments. A panel is as wide as h, with center x₀. With
z = (v − x₀)/h, the mean z̄ of these under the weights at x₀, y = z − z̄, and
d = (x − x₀)/h,

    exp(−(v − x)²/2h²) ∝ exp(−z²/2) exp(d y),  |d| ≤ 1/2,

where the omitted factor depends only on x and cancels in means. So the cumulative sums
are A(d) = Σ_q M_q dᵠ, with M_q the cumulative sums of e_v yᵠ/q! and e_v the weights at
x₀, of sum 1. Cumulative first moments are A′(d), and second ones A″(d). Cut
behind the degree K, A⁽ʲ⁾ lacks terms from p = K + 1 − j on. With t = |y|/2 it is wrong
by at most

    E_j = Σ_v e_v |y|ʲ tᵖ/p! min(exp(t), 1/(1 − t/(p + 1))),  E_0 < E_1 < E_2.

By Jensen's inequality A(d) ≥ 1. The variance at d is half the mean of (y_v − y_w)²
over pairs of values. By the same inequality it is at least
V = σ² exp(−|κ|/2σ²)/γ², with σ² and κ the second and third moment of y at d = 0, and
γ = Σ_v e_v exp(t) ≥ A(d). A panel has a table if E_2 ≤ 10⁻¹³ V and if the law is not
widened in it. Rounding grows little there: t²⁴ is convex in exp(t), so that once more
by the same inequality E_2/V ≥ γ² (ln γ)²²/22!, and γ < 7.1. In other panels, outside of
them and for missing x, the law of this column is computed value by value.
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
"""The degree K of the series."""

TRUNCATION: Final = 1e-13
"""The largest E_2/V of a panel with a table."""

BEYOND: Final = 4
"""Panels on each side of the observed values."""

TABLES: Final = Budget(2**28)
"""Memory of all tables; other columns are computed value by value."""

_FEW_CUTS: Final = 256
_VALUES_PER_CUT: Final = 5
"""More cuts pay with this many values for each cut."""

_LANE: Final = 8
"""The number of cuts in tables is padded to a multiple of this."""

_NOT_MADE = 0
_MADE = 1
_EXACT = 2


class Cuts(NamedTuple):
    """Sets of a column as differences of cumulative sums of its law."""

    part: int  # the number of these sets
    column: int
    law: NumericLaw
    cuts: Indices  # (c,): numbers of values, from 0 to m, increasing
    factors: Indices  # (u,): the numbers of these sets among all factors
    start: Indices  # (u,): start and stop of each set among the cuts
    stop: Indices

    @classmethod
    def of(
        cls, part: int, column: int, law: NumericLaw, sets: Sets, factors: Indices
    ) -> Self:
        """Make the cuts of the sets of a column, with their numbers."""
        start, stop = law.runs(sets)
        cuts = np.unique(np.concatenate([start, stop, [0, len(law.values)]]))
        ends = np.searchsorted(cuts, start), np.searchsorted(cuts, stop)
        return cls(part, column, law, cuts, factors, *ends)

    @property
    def extent(self) -> tuple[float, float, float]:
        """The start, the width and the number of panels."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            width = np.float64(self.law.spread) / 2.0
            number = np.ceil(self.law.extent / width) + 2 * BEYOND
            return float(self.law.values[0] - BEYOND * width), float(width), number

    @property
    def pays(self) -> bool:
        """Whether a table is possible and faster than value by value."""
        n_values = len(self.law.values)
        n_cuts = len(self.cuts)
        if n_values < 3 or n_cuts > max(_FEW_CUTS, n_values // _VALUES_PER_CUT):
            return False
        low, width, number = self.extent
        return bool(np.isfinite([low, low + number * width, 1.0 / width]).all())

    @property
    def n_bytes(self) -> int:
        """Memory of all tables."""
        return 8 * (DEGREE + 1) * self.stride * int(self.extent[2])

    @property
    def stride(self) -> int:
        """The padded number of entries of each term of a table."""
        return -(-len(self.cuts) // _LANE) * _LANE


@final
@dataclass(eq=False)
class Panels:
    """Tables of C columns; the table of a panel is made when first needed.

    The panels with tables depend on the law and the cuts, not on rows.
    """

    columns: tuple[Cuts, ...]
    # M of all panels, column by column; memory is used on demand
    moments: Array = field(init=False, repr=False)
    _state: NDArray[np.int8] = field(init=False, repr=False)

    @classmethod
    def of(cls, parts: Iterable[Cuts], budget: Budget = TABLES) -> Panels:
        """Make tables for the columns where they pay, small ones first, in a budget."""
        chosen = []
        used = 0
        sized = [(cuts.n_bytes, cuts.part, cuts) for cuts in parts if cuts.pays]
        for n_bytes, _, cuts in sorted(sized, key=lambda item: item[:2]):
            used += n_bytes
            if used > budget.n_bytes:
                break
            chosen.append(cuts)
        return cls(tuple(chosen))

    def __post_init__(self) -> None:
        # eagerly, as threads share them
        self.moments = np.empty(int(self._offset[-1]))
        self._state = np.full(int(self._n_panels.sum()), _NOT_MADE, np.int8)

    def __reduce__(self) -> tuple[type[Panels], tuple[tuple[Cuts, ...]]]:
        """Pickle without tables, which are remade on demand."""
        return type(self), (self.columns,)

    @cached_property
    def parts(self) -> Indices:
        """The part number of each column, (C,)."""
        return np.array([cuts.part for cuts in self.columns], np.intp)

    def measures(self, x: Points, P: Array, R: Array) -> Mask:
        """Write means and contrasts of factors at rows (n, D) into P and R, (U, n).

        Returns where (C, n) they were written.
        """
        panels, shift = self._panels_of(x)
        compiled = kernel("panels")
        if compiled is not None:
            strides = [cuts.stride for cuts in self.columns]
            n_cuts = np.array([len(cuts.cuts) for cuts in self.columns], np.intp)
            scratch = np.empty(2 * max(strides, default=0))
            compiled(
                *(*panels.shape, DEGREE, panels, shift, self.moments, self._offset),
                *(n_cuts, self._width, *self._sets, P, R, scratch),
            )
        else:
            for c, cuts in enumerate(self.columns):
                rows = np.flatnonzero(panels[c] >= 0)
                if len(rows) > 0:
                    law, contrast = self._cumulative(c, panels[c, rows], shift[c, rows])
                    at = cuts.factors[:, None], rows
                    P[at] = law[cuts.stop] - law[cuts.start]
                    R[at] = contrast[cuts.stop] - contrast[cuts.start]
        return panels >= 0

    def _panels_of(self, x: Points) -> tuple[Indices, Array]:
        """The panel of each x, −1 for none, and d, (C, n) each; makes tables."""
        values = np.ascontiguousarray(x.T[self._column])
        within = (values >= self._low) & (
            values < self._low + self._n_panels * self._width
        )
        values = np.where(within, values, self._low)
        panels = ((values - self._low) / self._width).astype(np.intp)
        panels = np.minimum(panels, self._n_panels - 1)
        shift = (values - self._center(panels)) / self._width
        numbers = self._first_panel + panels
        new = within & (self._state[numbers] == _NOT_MADE)
        if new.any():
            for c, panel in np.unique([np.nonzero(new)[0], panels[new]], axis=1).T:
                self._make(int(c), int(panel))
        within &= self._state[numbers] == _MADE
        return np.where(within, panels, -1), shift

    def _center(self, panels: Indices) -> Array:
        """The center x₀ of a panel of each column, (C, n)."""
        return self._low + (panels + 0.5) * self._width

    def _make(self, c: int, panel: int) -> None:
        """Make the table of a panel, if it has one, and record its state."""
        law = self.columns[c].law
        cuts = self.columns[c].cuts
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
        # in one assignment, so that another thread may safely repeat it
        self._table(c)[panel] = table
        self._state[number] = _MADE

    def _cumulative(self, c: int, panels: Indices, shift: Array) -> tuple[Array, Array]:
        """Law and contrast of one column up to each cut, (c, n) each."""
        # a small matrix product for each row: digits do not depend on other rows
        tables = self._table(c)[panels]
        sums = (_series(shift) @ tables)[:, :, : len(self.columns[c].cuts)]
        mass = sums[:, 0]
        moment = sums[:, 1]
        second = sums[:, 2, -1:]
        mean = moment[:, -1:] / mass[:, -1:]
        variance = second - mean * moment[:, -1:]
        contrast = (moment - mean * mass) / (variance * self._width[c])
        contrast[:, -1] = 0.0  # contrasts sum to 0
        return (mass / mass[:, -1:]).T, contrast.T

    # ---- The tables of all columns, concatenated for the kernel

    @cached_property
    def _column(self) -> Indices:
        return np.array([cuts.column for cuts in self.columns], np.intp)

    @cached_property
    def _extents(self) -> Array:
        """Start, width and number of panels of each column, (3, C, 1)."""
        return (
            np.array([cuts.extent for cuts in self.columns])
            .reshape(-1, 3, 1)
            .swapaxes(0, 1)
        )

    @cached_property
    def _low(self) -> Array:
        return np.ascontiguousarray(self._extents[0])

    @cached_property
    def _width(self) -> Array:
        """The width h of panels, (C, 1)."""
        return np.ascontiguousarray(self._extents[1])

    @cached_property
    def _n_panels(self) -> Indices:
        return self._extents[2].astype(np.intp)

    @cached_property
    def _first_panel(self) -> Indices:
        """The number of the first panel of each column among all, (C, 1)."""
        return np.cumsum(self._n_panels, axis=0) - self._n_panels

    @cached_property
    def _offset(self) -> Indices:
        """Offsets of the tables of each column, (C + 1,)."""
        return np.cumsum([0, *(cuts.n_bytes // 8 for cuts in self.columns)])

    def _table(self, c: int) -> Array:
        """The tables M of the panels of a column, (panels, K + 1, stride)."""
        moments = self.moments[self._offset[c] : self._offset[c + 1]]
        return moments.reshape(-1, DEGREE + 1, self.columns[c].stride)

    @cached_property
    def _sets(self) -> tuple[Indices, Indices, Indices, Indices]:
        """Offsets of the sets of each column (C + 1,), their numbers and ends."""
        first = np.cumsum([0, *(len(cuts.factors) for cuts in self.columns)])
        nothing = np.zeros(0, np.intp)
        return (
            first,
            np.concatenate([nothing, *(cuts.factors for cuts in self.columns)]),
            np.concatenate([nothing, *(cuts.start for cuts in self.columns)]),
            np.concatenate([nothing, *(cuts.stop for cuts in self.columns)]),
        )


_ORDERS: Final = np.arange(DEGREE + 1.0)
_SLOPES: Final = (np.ones(DEGREE + 1), _ORDERS, _ORDERS * (_ORDERS - 1.0))


def _series(shift: Array) -> Array:
    """The factors of M in A, A′ and A″ at each d, (n, 3, K + 1)."""
    powers = np.ones((len(shift), DEGREE + 1))
    np.cumprod(np.repeat(shift[:, None], DEGREE, axis=1), axis=1, out=powers[:, 1:])
    series = np.zeros((len(shift), 3, DEGREE + 1))
    for j, slopes in enumerate(_SLOPES):
        series[:, j, j:] = slopes[j:] * powers[:, : DEGREE + 1 - j]
    return series


def has_table(weights: Array, y: Array, least_share: float) -> bool:
    """Whether the series of a panel are accurate and the law is not widened there.

    ``weights`` e and ``y`` are (m,); ``least_share`` is ρ.
    """
    # weights are divided by A(d) ≥ 1
    if (weights * np.exp(0.5 * np.abs(y))).max() >= 1.0 - least_share:
        return False
    error, variance = truncation(weights, y)
    return error < TRUNCATION * variance


def truncation(weights: Array, y: Array) -> tuple[float, float]:
    """The bounds E_2 and V of a panel, from its weights e and y, (m,) each."""
    t = 0.5 * np.abs(y)
    growth = np.exp(t)
    p = DEGREE - 1
    # 1/(1 − t/(p + 1)) if smaller
    tail = np.minimum(growth, 1.0 / np.maximum(1.0 - t / (p + 1), 1.0 / growth))
    error = weights @ (y**2 * t**p * tail) / math.factorial(p)
    square = weights @ y**2
    cube = weights @ y**3
    if square == 0.0:
        return float(error), 0.0
    lower = square * math.exp(-abs(cube) / (2.0 * square)) / (weights @ growth) ** 2
    return float(error), float(lower)
