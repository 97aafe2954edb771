"""The optimum of one more row, beside rows that stay as they are.

min over w of  a‖w − g‖² + 2b Σ_j s_j ‖w − w_j‖² + c wᵀQw,   Q = 2M = V diag(ν) Vᵀ,

which are the terms that row w adds to an objective of ordered pairs. With σ = Σ_j s_j,
h = a + 2bσ and the mean p = (a g + 2b Σ_j s_j w_j)/h,

    (h I + c Q) w = h p,   w = p − V diag(cν/(h + cν)) Vᵀ p.

Where the row has to add up, vᵀw = t (and c = 0), all terms together are F + h‖w − p‖²,
so that the optimum is the nearest complete point to p,

    w = p + v (t − vᵀp)/‖v‖².

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
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions
from propopt.losses import PropertyLoss
from propopt.losses.graphs.points import Graph
from propopt.losses.maps import LinearMap, OverPoints, Squared
from propopt.results.curvature import Eigenbasis


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureModes:
    """The eigenbasis of a graph of features, taken apart once."""

    similarities: Array  # (D, D): S, symmetric with zero diagonal
    values: Array  # (D,): ν, of twice the Laplacian
    vectors: Array  # (D, D): V, in columns

    @classmethod
    def of(cls, graph: Graph) -> FeatureModes:
        """The modes of a graph."""
        D = graph.n_nodes
        basis = Eigenbasis(2.0 * graph.laplacian, graph.components, D)
        return cls(
            similarities=graph.similarities.toarray(),
            values=basis.values,
            vectors=basis.backward(np.eye(D)),
        )

    def shrunk(self, p: Array, keep: float, weight: float) -> Array:
        """(keep·I + weight·Q)⁻¹ keep·p, for p (D,)."""
        along = (self.vectors * p[:, None]).sum(axis=0)
        loss = weight * self.values / (keep + weight * self.values)
        return np.asarray(p - (self.vectors * (loss * along)).sum(axis=1))

    def product(self, w: Array) -> Array:
        """Q w, by exact differences."""
        return np.asarray(2.0 * (self.similarities * self._differences(w)).sum(axis=1))

    def energy(self, w: Array) -> float:
        """wᵀQw = Σ_{d,e} S_de (w_d − w_e)²."""
        return float((self.similarities * self._differences(w) ** 2).sum())

    @staticmethod
    def _differences(w: Array) -> Array:
        return w[:, None] - w[None, :]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RowTotal:
    """What a row adds up to, beside fixed rows that add up too."""

    # (D,): v, not all zero; where it is zero, so are the row and the fixed rows
    axis: Array
    fixed_axis: Array  # (D,): v of the fixed rows
    total: float  # t

    def missed(self, w: Array) -> float:
        """Vᵀw − t."""
        return float((self.axis * w).sum()) - self.total

    def nearest(self, p: Array) -> Array:
        """The complete point that is nearest to p, exact to rounding."""
        size = float((self.axis**2).sum())
        w = p - self.axis * (self.missed(p) / size)
        # what rounding left of the sum, once more
        return np.asarray(w - self.axis * (self.missed(w) / size))


def off_axis(E: Array, axis: Array) -> Array:
    """E − (E v) vᵀ/‖v‖² of each row of E (..., D): what moves no sum."""
    size = float((axis**2).sum())
    if size == 0.0:
        return E
    return np.asarray(E - ((E * axis).sum(axis=-1) / size)[..., None] * axis)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionalRow:
    """What is asked for one row, and its optimum."""

    # (D,): g; None for a row without a target of its own, whose first term is left out
    target: Array | None
    similarities: Array  # (k,): s_j ≥ 0, some above zero where there is no target
    fixed: Attributions  # (k, D): w_j
    weights: tuple[float, float, float]  # a > 0, b and c ≥ 0
    # those of the feature graph, where c is above zero
    modes: FeatureModes | None = None
    adds_up: RowTotal | None = None  # what w has to add up to; without feature graphs

    @cached_property
    def stiffness(self) -> float:
        """H = a + 2bσ, a only with a target: no curvature of the row is smaller."""
        a, b, _ = self.weights
        own = 0.0 if self.target is None else a
        return own + 2.0 * b * float(self.similarities.sum())

    @cached_property
    def w(self) -> Array:
        """The optimum (D,)."""
        origin = self.fixed[0] if self.target is None else self.target
        shift = (self._pulls * (self.fixed - origin)).sum(axis=0) / self.stiffness
        mean: Array = origin + shift
        if self.adds_up is not None:
            return self.adds_up.nearest(mean)
        if self.modes is None:
            return mean
        return self.modes.shrunk(mean, self.stiffness, self.weights[2])

    @cached_property
    def losses(self) -> tuple[float, float, float]:
        """‖w − g‖², the ordered pairs 2 Σ_j s_j ‖w − w_j‖², and wᵀQw."""
        own = 0.0 if self.target is None else _square(self.w - self.target)
        pairs = 2.0 * float((self.similarities * self._apart).sum())
        return own, pairs, 0.0 if self.modes is None else self.modes.energy(self.w)

    @property
    def value(self) -> float:
        """The objective of the row."""
        return sum(c * loss for c, loss in zip(self.weights, self.losses, strict=True))

    @property
    def value_of_zero(self) -> float:
        """The objective of w = 0."""
        a, b, _ = self.weights
        own = 0.0 if self.target is None else a * _square(self.target)
        pairs = float((self.similarities * (self.fixed**2).sum(axis=1)).sum())
        return own + 2.0 * b * pairs

    @cached_property
    def slope(self) -> Array:
        """Half the slope of the objective at w, r (D,)."""
        r = (self._pulls * (self.w - self.fixed)).sum(axis=0)
        if self.target is not None:
            r = r + self.weights[0] * (self.w - self.target)
        if self.modes is not None:
            r = r + self.weights[2] * self.modes.product(self.w)
        return np.asarray(r)

    @cached_property
    def excess(self) -> float:
        """It is at most so much above the least objective: ‖r‖²/h.

        Of a row that adds up ‖r − v vᵀr/‖v‖²‖²/h, and for the rounding δ of its sum
        what the objective falls along v in the meantime, 2 δ vᵀr/‖v‖².
        """
        if self.adds_up is None:
            return _square(self.slope) / self.stiffness
        v = self.adds_up.axis
        along = float((v * self.slope).sum()) / _square(v)
        rounding = 2.0 * self.adds_up.missed(self.w) * along
        return self._tangential / self.stiffness + max(rounding, 0.0)

    @property
    def violation(self) -> float:
        """|vᵀw − t| over the largest sum that the entries could have; 0 without one."""
        if self.adds_up is None:
            return 0.0
        most = float((np.abs(self.w) * np.abs(self.adds_up.axis)).sum())
        scale = max(most, abs(self.adds_up.total), sys.float_info.min)
        return abs(self.adds_up.missed(self.w)) / scale

    @property
    def distance(self) -> float:
        """The optimum is no farther than this from w: ‖r‖/h, r along complete rows."""
        apart = float(np.sqrt(self._tangential)) / self.stiffness
        if self.adds_up is None:
            return apart
        v = self.adds_up.axis
        return math.hypot(apart, self.adds_up.missed(self.w) / math.sqrt(_square(v)))

    def moved(self, deviations: Array) -> Array:
        """How the optimum moves as its target does, a H⁻¹ E of each row of E (B, D)."""
        free = deviations
        if self.adds_up is not None:
            free = off_axis(deviations, self.adds_up.axis)
        return np.asarray(self.weights[0] / self.stiffness * free)

    @property
    def joint_excess(self) -> float:
        """(4b²/a) Σ_j s_j² ‖w_j − w‖²: what re-solving all rows together could gain.

        With the row appended to fixed rows that were the optimum without it, the slope
        of the joint objective is 4b s_j (w_j − w) at the rows that it touches, zero at
        all others, and its curvature at fixed rows is 2a or more. Where rows add up it
        is what that slope is along complete rows.
        """
        a, b, _ = self.weights
        return 4.0 * b**2 / a * self._touched

    @property
    def joint_distance(self) -> float:
        """(2b/a) (Σ_j s_j² ‖w_j − w‖²)^½: how far all rows together could move."""
        a, b, _ = self.weights
        return float(2.0 * b / a * np.sqrt(self._touched))

    @cached_property
    def _pulls(self) -> Array:
        """2b s_j, shape (k, 1)."""
        return 2.0 * self.weights[1] * self.similarities[:, None]

    @cached_property
    def _tangential(self) -> float:
        """‖r‖², of a row that adds up without its part along v."""
        if self.adds_up is None:
            return _square(self.slope)
        return _square(off_axis(self.slope, self.adds_up.axis))

    @cached_property
    def _touched(self) -> float:
        """Σ_j s_j² ‖w_j − w‖², of what can move the fixed rows."""
        apart = self._apart
        if self.adds_up is not None:
            v = self.adds_up.fixed_axis
            free = np.where(v != 0.0, self.fixed - self.w, 0.0)
            apart = (off_axis(free, v) ** 2).sum(axis=1)
        return float((self.similarities**2 * apart).sum())

    @cached_property
    def _apart(self) -> Array:
        """‖w_j − w‖², shape (k,)."""
        return np.asarray(((self.fixed - self.w) ** 2).sum(axis=1))


def _square(w: Array) -> float:
    return float((w**2).sum())


# ---- Robustness towards rows that stay as they are


@final
class AnchoredRobustness(PropertyLoss):
    """2 Σ_n Σ_j s_nj ‖w_n − v_j‖²: rows are drawn to fixed ones, not to each other.

    What the ordered pairs of :class:`propopt.PairwiseRobustness` are where one of two
    is fixed.
    """

    penalty = Squared()

    def __init__(
        self,
        fixed: Attributions,  # (n, D): v_j
        # (m, k): places of the fixed rows to which each row is drawn
        near: NDArray[np.intp],
        similarities: Array,  # (m, k): s_nj ≥ 0, not all of them zero
        *,
        # what the loss is called in weights and results
        name: str = "pairwise_robustness",
    ) -> None:
        self.name = name
        self.n_points, self.n_features = len(near), fixed.shape[1]
        self._rows, indices = np.nonzero(similarities)
        self._roots = np.sqrt(2.0 * similarities[self._rows, indices])
        self._ends = fixed[near[self._rows, indices]]

    @cached_property
    def map(self) -> LinearMap:
        n_pairs = len(self._rows)
        starts = np.arange(n_pairs + 1)
        shape = (n_pairs, self.n_points)
        return OverPoints(sp.csr_array((self._roots, self._rows, starts), shape=shape))

    @cached_property
    def target(self) -> Array:
        return np.asarray(self._roots[:, None] * self._ends)
