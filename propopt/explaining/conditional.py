"""The optimum of one more row, beside rows that stay as they are.

min over w of  a‖w − g‖² + 2b Σ_j s_j Σ_{d in j} (w_d − w_jd)²,

which are the terms that row w adds to an objective of ordered pairs. A fixed row counts
in all columns, or a document in the words that it has. With p_jd = 2b s_j where it
counts and 0 elsewhere,

    h_d = a + Σ_j p_jd,   w_d = (a g_d + Σ_j p_jd w_jd)/h_d.

Where the row has to add up, vᵀw = t, all terms together are F + Σ_d h_d (w_d − p_d)²
for this p, so that the optimum is the nearest complete point to it,

    w = p + H⁻¹v (t − vᵀp)/(vᵀH⁻¹v),   H = diag(h).

Nothing here is a product of matrices: BLAS adds in another order for other numbers of
rows, and an answer has to be the same to the last bit whoever else is asked.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Truths


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionalRow:
    """What is asked for one row, and its optimum."""

    target: Array  # (D,): g
    near: NDArray[np.intp]  # (k,): places of the fixed rows that are near it
    similarities: Array  # (k,): s_j ≥ 0
    fixed: Attributions  # (k, D): w_j
    weights: tuple[float, float]  # a > 0 and b ≥ 0
    shared: Truths | None = None  # (k, D): where fixed rows count; everywhere if None
    # (D,): v, not all zero, of a row that adds up; where it is zero, so are all rows
    axis: Array | None = None
    fixed_axis: Array | None = None  # (D,): v of the fixed rows
    total: float = 0.0  # t

    @cached_property
    def stiffness(self) -> Array:
        """Half the curvature h, (D,), or (1,) where fixed rows count everywhere."""
        a, b = self.weights
        own = self.similarities[:, None]
        return a + 2.0 * b * (own if self.shared is None else own * self.shared).sum(0)

    @cached_property
    def w(self) -> Array:
        """The optimum (D,)."""
        w = self.target + self._drawn(self.fixed - self.target) / self.stiffness
        if self.axis is not None:
            for _ in range(2):  # what rounding left of the sum, once more
                missed = float((self.axis * w).sum()) - self.total
                w = w - self._step * (missed / self._size)
        return np.asarray(w)

    @cached_property
    def losses(self) -> tuple[float, float]:
        """‖w − g‖², and the ordered pairs 2 Σ_j s_j ‖w − w_j‖²."""
        pairs = 2.0 * float((self.similarities * self._apart).sum())
        return _square(self.w - self.target), pairs

    @property
    def value(self) -> float:
        """The objective of the row."""
        return sum(c * loss for c, loss in zip(self.weights, self.losses, strict=True))

    @property
    def value_of_zero(self) -> float:
        """The objective of w = 0."""
        a, b = self.weights
        pairs = float((self.similarities * (self.fixed**2).sum(axis=1)).sum())
        return a * _square(self.target) + 2.0 * b * pairs

    @cached_property
    def slope(self) -> Array:
        """Half the slope of the objective at w, r (D,)."""
        own = self.weights[0] * (self.w - self.target)
        return np.asarray(own - self._drawn(self.fixed - self.w))

    @property
    def excess(self) -> float:
        """It is at most so much above the least objective: rᵀH⁻¹r.

        Of a row that adds up that of r without its part along v, and for the rounding δ
        of its sum what the objective falls along v in the meantime.
        """
        rounding = 0.0
        if self.axis is not None:
            along = float((self._step * self.slope).sum()) / self._size
            rounding = max(2.0 * self._missed * along, 0.0)
        return float((self._tangent**2 / self.stiffness).sum()) + rounding

    @property
    def violation(self) -> float:
        """|vᵀw − t| over the largest sum that the entries could have; 0 without one."""
        if self.axis is None:
            return 0.0
        most = float((np.abs(self.w) * np.abs(self.axis)).sum())
        scale = max(most, abs(self.total), sys.float_info.min)
        return abs(self._missed) / scale

    @property
    def distance(self) -> float:
        """The optimum is no farther than this from w: ‖H⁻¹r‖, r along complete rows."""
        apart = math.sqrt(_square(self._tangent / self.stiffness))
        if self.axis is None:
            return apart
        short = self._missed / self._size * math.sqrt(_square(self._step))
        return math.hypot(apart, short)

    def moved(self, deviations: Array) -> Array:
        """How the optimum moves as its target does, a H⁻¹E of each row of E (B, D)."""
        return np.asarray(self.weights[0] / self.stiffness * self.off_axis(deviations))

    def off_axis(self, E: Array) -> Array:
        """E − v (vᵀH⁻¹E)/(vᵀH⁻¹v) of each row of E (..., D): what moves no sum."""
        if self.axis is None:
            return E
        along = (E * self._step).sum(axis=-1) / self._size
        return np.asarray(E - along[..., None] * self.axis)

    @property
    def joint_excess(self) -> float:
        """(4b²/a) Σ_j s_j² ‖w_j − w‖²: what re-solving all rows together could gain.

        With the row appended to fixed rows that were the optimum without it, the slope
        of the joint objective is 4b s_j (w_j − w) at the rows that it touches, zero at
        all others, and its curvature at fixed rows is 2a or more. Where rows add up it
        is what that slope is along complete rows.
        """
        a, b = self.weights
        return 4.0 * b**2 / a * self._touched

    @property
    def joint_distance(self) -> float:
        """(2b/a) (Σ_j s_j² ‖w_j − w‖²)^½: how far all rows together could move."""
        a, b = self.weights
        return float(2.0 * b / a * np.sqrt(self._touched))

    def _drawn(self, apart: Array) -> Array:
        """Σ_j p_jd of differences (k, D) from the fixed rows."""
        pulls = 2.0 * self.weights[1] * self.similarities[:, None]
        if self.shared is not None:
            pulls = pulls * self.shared
        return np.asarray((pulls * apart).sum(axis=0))

    @cached_property
    def _tangent(self) -> Array:
        """Half the slope, r, without what moves sums."""
        return self.off_axis(self.slope)

    @cached_property
    def _missed(self) -> float:
        """Vᵀw − t."""
        assert self.axis is not None, "it adds up"
        return float((self.axis * self.w).sum()) - self.total

    @cached_property
    def _step(self) -> Array:
        """H⁻¹v, times the least h."""
        assert self.axis is not None, "it adds up"
        return np.asarray(self.axis * (self.stiffness.min() / self.stiffness))

    @cached_property
    def _size(self) -> float:
        """VᵀH⁻¹v, times the least h."""
        assert self.axis is not None, "it adds up"
        return float((self.axis * self._step).sum())

    @cached_property
    def _touched(self) -> float:
        """Σ_j s_j² ‖w_j − w‖², of what can move the fixed rows."""
        apart = self._apart
        if self.fixed_axis is not None:
            v, size = self.fixed_axis, _square(self.fixed_axis) or 1.0
            free = np.where(v != 0.0, self.fixed - self.w, 0.0)
            free = free - ((free * v).sum(axis=1) / size)[:, None] * v
            apart = (free**2).sum(axis=1)
        return float((self.similarities**2 * apart).sum())

    @cached_property
    def _apart(self) -> Array:
        """‖w_j − w‖², of what both have, shape (k,)."""
        squares = (self.fixed - self.w) ** 2
        if self.shared is not None:
            squares = squares * self.shared
        return np.asarray(squares.sum(axis=1))


def _square(w: Array) -> float:
    return float((w**2).sum())
