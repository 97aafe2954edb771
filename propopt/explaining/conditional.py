"""The optimum of more rows, each beside rows that stay as they are.

min over w of  a‖w − g‖² + 2b Σ_j s_j Σ_{d in j} (w_d − w_jd)²,

which are the terms that row w adds to an objective of ordered pairs. A fixed row counts
in all columns, or a document in the words that it has. With p_jd = 2b s_j where it
counts and 0 elsewhere,

    h_d = a + Σ_j p_jd,   w_d = (a g_d + Σ_j p_jd w_jd)/h_d.

Where the row has to add up, vᵀw = t, all terms together are F + Σ_d h_d (w_d − p_d)²
for this p, so that the optimum is the nearest complete point to it,

    w = p + H⁻¹v (t − vᵀp)/(vᵀH⁻¹v),   H = diag(h).

Nothing here is a product of matrices: BLAS adds in another order for other numbers of
rows, and an answer has to be the same to the last bit whoever else is asked. So all
sums are along the last axes, in memory, of arrays that have the rows in front.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Truths


TOLD: Final = (
    "losses",
    "value",
    "value_of_zero",
    "excess",
    "violation",
    "distance",
    "joint_excess",
    "joint_distance",
)
"""What an explanation tells of each row beside its optimum."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionalRows:
    """What is asked for rows (...,), or for a single one (), and their optima."""

    target: Array  # (..., D): g
    near: NDArray[np.intp]  # (..., k): places of the fixed rows that are near each
    similarities: Array  # (..., k): s_j ≥ 0
    fixed: Array  # (..., k, D): w_j
    weights: tuple[float, float]  # a > 0 and b ≥ 0
    shared: Truths | None = None  # (..., k, D): where fixed rows count; all if None
    # (D,) or (..., D): v, not all zero, of rows that add up; zero there, so are all
    axis: Array | None = None
    fixed_axis: Array | None = None  # (D,): v of the fixed rows
    total: float | Array = 0.0  # (...,): t

    @cached_property
    def stiffness(self) -> Array:
        """Half the curvature h, (..., D); (..., 1) where fixed rows count all over."""
        a, b = self.weights
        own = self.similarities[..., None]
        counted = own if self.shared is None else own * self.shared
        return np.asarray(a + 2.0 * b * counted.sum(axis=-2))

    @cached_property
    def w(self) -> Array:
        """The optimum (..., D)."""
        w = self.target + self._drawn(self.fixed, self.target) / self.stiffness
        if self.axis is not None:
            for _ in range(2):  # what rounding left of the sum, once more
                missed = (self.axis * w).sum(axis=-1) - self.total
                w = w - self._step * (missed / self._size)[..., None]
        return np.asarray(w)

    @cached_property
    def losses(self) -> Array:
        """‖w − g‖², and the ordered pairs 2 Σ_j s_j ‖w − w_j‖², (..., 2)."""
        losses = np.empty((*self.w.shape[:-1], 2))
        losses[..., 0] = _square(self.w - self.target)
        losses[..., 1] = 2.0 * (self.similarities * self._apart).sum(axis=-1)
        return losses

    @property
    def value(self) -> Array:
        """The objective of each row."""
        a, b = self.weights
        return np.asarray(a * self.losses[..., 0] + b * self.losses[..., 1])

    @property
    def value_of_zero(self) -> Array:
        """The objective of w = 0."""
        a, b = self.weights
        pairs = (self.similarities * _square(self.fixed)).sum(axis=-1)
        return np.asarray(a * _square(self.target) + 2.0 * b * pairs)

    @cached_property
    def slope(self) -> Array:
        """Half the slope of the objective at w, r (..., D)."""
        own = self.weights[0] * (self.w - self.target)
        return np.asarray(own - self._drawn(self.fixed, self.w))

    @property
    def excess(self) -> Array:
        """It is at most so much above the least objective: rᵀH⁻¹r.

        Of a row that adds up that of r without its part along v, and for the rounding δ
        of its sum what the objective falls along v in the meantime.
        """
        excess = (self._tangent**2 / self.stiffness).sum(axis=-1)
        if self.axis is None:
            return np.asarray(excess)
        along = (self._step * self.slope).sum(axis=-1) / self._size
        return np.asarray(excess + np.maximum(2.0 * self._missed * along, 0.0))

    @property
    def violation(self) -> Array:
        """|vᵀw − t| over the largest sum that the entries could have; 0 without one."""
        if self.axis is None:
            return np.zeros(self.w.shape[:-1])
        most = (np.abs(self.w) * np.abs(self.axis)).sum(axis=-1)
        scale = np.maximum(np.maximum(most, np.abs(self.total)), sys.float_info.min)
        return np.asarray(np.abs(self._missed) / scale)

    @property
    def distance(self) -> Array:
        """The optimum is no farther than this from w: ‖H⁻¹r‖, r along complete rows."""
        apart = np.sqrt(_square(self._tangent / self.stiffness))
        if self.axis is None:
            return np.asarray(apart)
        short = self._missed / self._size * np.sqrt(_square(self._step))
        return np.asarray(np.hypot(apart, short))

    def moved(self, deviations: Array) -> Array:
        """How optima move as their targets do, a H⁻¹E of each row of E (..., B, D)."""
        stiffness = self.stiffness[..., None, :]
        return np.asarray(self.weights[0] / stiffness * self.off_axis(deviations))

    def off_axis(self, E: Array) -> Array:
        """E − v (vᵀH⁻¹E)/(vᵀH⁻¹v) of E (..., D) or (..., B, D): what moves no sum."""
        if self.axis is None:
            return E
        axis, step, size = self.axis, self._step, self._size
        if E.ndim > step.ndim:
            axis, step, size = axis[..., None, :], step[..., None, :], size[..., None]
        along = (E * step).sum(axis=-1) / size
        return np.asarray(E - along[..., None] * axis)

    @property
    def joint_excess(self) -> Array:
        """(4b²/a) Σ_j s_j² ‖w_j − w‖²: what re-solving all rows together could gain.

        With the row appended to fixed rows that were the optimum without it, the slope
        of the joint objective is 4b s_j (w_j − w) at the rows that it touches, zero at
        all others, and its curvature at fixed rows is 2a or more. Where rows add up it
        is what that slope is along complete rows.
        """
        a, b = self.weights
        return np.asarray(4.0 * b**2 / a * self._touched)

    @property
    def joint_distance(self) -> Array:
        """(2b/a) (Σ_j s_j² ‖w_j − w‖²)^½: how far all rows together could move."""
        a, b = self.weights
        return np.asarray(2.0 * b / a * np.sqrt(self._touched))

    def _drawn(self, fixed: Array, w: Array) -> Array:
        """Σ_j p_jd of the differences of fixed rows (..., k, D) from w (..., D)."""
        return np.asarray((self._pulls * (fixed - w[..., None, :])).sum(axis=-2))

    @cached_property
    def _pulls(self) -> Array:
        pulls = 2.0 * self.weights[1] * self.similarities[..., None]
        return pulls if self.shared is None else pulls * self.shared

    @cached_property
    def _tangent(self) -> Array:
        """Half the slope, r, without what moves sums."""
        return self.off_axis(self.slope)

    @cached_property
    def _missed(self) -> Array:
        """Vᵀw − t."""
        assert self.axis is not None, "it adds up"
        return np.asarray((self.axis * self.w).sum(axis=-1) - self.total)

    @cached_property
    def _step(self) -> Array:
        """H⁻¹v, times the least h."""
        assert self.axis is not None, "it adds up"
        least = self.stiffness.min(axis=-1, keepdims=True)
        return np.asarray(self.axis * (least / self.stiffness))

    @cached_property
    def _size(self) -> Array:
        """VᵀH⁻¹v, times the least h."""
        assert self.axis is not None, "it adds up"
        return np.asarray((self.axis * self._step).sum(axis=-1))

    @cached_property
    def _touched(self) -> Array:
        """Σ_j s_j² ‖w_j − w‖², of what can move the fixed rows."""
        apart = self._apart
        if self.fixed_axis is not None:
            v = self.fixed_axis
            free = np.where(v != 0.0, self.fixed - self.w[..., None, :], 0.0)
            along = (free * v).sum(axis=-1) / (float(_square(v)) or 1.0)
            apart = _square(free - along[..., None] * v)
        return np.asarray((self.similarities**2 * apart).sum(axis=-1))

    @cached_property
    def _apart(self) -> Array:
        """‖w_j − w‖², of what both have, shape (..., k)."""
        squares = (self.fixed - self.w[..., None, :]) ** 2
        if self.shared is not None:
            squares = squares * self.shared
        return np.asarray(squares.sum(axis=-1))


def told_of(rows: Sequence[ConditionalRows]) -> Mapping[str, Array]:
    """What is told of single rows that have columns of their own, (m, ...) each."""
    return {name: np.array([getattr(row, name) for row in rows]) for name in TOLD}


def _square(w: Array) -> Array:
    return np.asarray((w**2).sum(axis=-1))
