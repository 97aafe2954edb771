"""Convex penalties φ ≥ 0 of residuals R: a loss is φ(A(W) − T).

Each knows its value, its cvxpy expression, its proximal operator and its conjugate. The
last two are what splitting solvers and lower bounds are made of: for any dual Y,
``weight·φ(R) ≥ ⟨Y, R⟩ − conjugate(Y, weight)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array


if TYPE_CHECKING:
    import cvxpy as cp


RowNorm: TypeAlias = Literal["l2", "l1", "linf"]


class Penalty(ABC):
    """A convex function φ ≥ 0 with φ(0) = 0 and φ(tR) = t^degree φ(R)."""

    degree: int

    @abstractmethod
    def value(self, R: Array) -> float:
        """φ(R)."""

    @final
    def expression(self, R: cp.Expression) -> cp.Expression:
        """φ(R) for a cvxpy expression; without entries it is zero, not a variable."""
        import cvxpy as cp

        return self._expression(R) if R.size else cp.Constant(0.0)

    @abstractmethod
    def _expression(self, R: cp.Expression) -> cp.Expression:
        """φ(R) for a cvxpy expression with entries."""

    @abstractmethod
    def prox(self, V: Array, step: float) -> Array:
        """argmin_R  step·φ(R) + ½‖R − V‖²."""

    @abstractmethod
    def conjugate(self, Y: Array, weight: float) -> float:
        """sup_R ⟨Y, R⟩ − weight·φ(R), for Y in the domain (see :meth:`shrink`)."""

    @abstractmethod
    def polar(self, Y: Array) -> float:
        """The smallest weight for which the conjugate at Y is finite."""

    @abstractmethod
    def shrink(self, Y: Array, weight: float) -> Array:
        """A point near Y where the conjugate is finite; Y itself if it is there."""


@final
@dataclass(frozen=True)
class Squared(Penalty):
    """Σ r²."""

    degree = 2

    def value(self, R: Array) -> float:
        return float(np.vdot(R, R))

    def _expression(self, R: cp.Expression) -> cp.Expression:
        import cvxpy as cp

        return cp.sum_squares(R)

    def prox(self, V: Array, step: float) -> Array:
        return V / (1.0 + 2.0 * step)

    def conjugate(self, Y: Array, weight: float) -> float:
        return float(np.vdot(Y, Y)) / (4.0 * weight)

    def polar(self, Y: Array) -> float:
        del Y
        return 0.0

    def shrink(self, Y: Array, weight: float) -> Array:
        del weight
        return Y


@final
@dataclass(frozen=True)
class Absolute(Penalty):
    """Σ |r|."""

    degree = 1

    def value(self, R: Array) -> float:
        return float(np.abs(R).sum())

    def _expression(self, R: cp.Expression) -> cp.Expression:
        import cvxpy as cp

        return cp.sum(cp.abs(R))

    def prox(self, V: Array, step: float) -> Array:
        return np.sign(V) * np.maximum(np.abs(V) - step, 0.0)

    def conjugate(self, Y: Array, weight: float) -> float:
        del Y, weight
        return 0.0

    def polar(self, Y: Array) -> float:
        return float(np.abs(Y).max(initial=0.0))

    def shrink(self, Y: Array, weight: float) -> Array:
        return np.clip(Y, -weight, weight)


@final
@dataclass(frozen=True, eq=False)
class GroupMax(Penalty):
    """Σ_g max_{e ∈ g} h(r_e) over groups of consecutive rows r_e of R (E, D).

    h is ‖·‖₂² (degree 2), or ‖·‖₁ or ‖·‖_∞ (degree 1, so that programs stay linear).

    Parameters
    ----------
    starts : array of int
        The first row of each group; groups are not empty.
    n_rows : int
        E.
    norm : {"l2", "l1", "linf"}
        The norm of a row.
    """

    starts: NDArray[np.intp]
    n_rows: int
    norm: RowNorm

    @property
    def degree(self) -> int:  # type: ignore[override]  # follows from the norm
        return 2 if self.norm == "l2" else 1

    def value(self, R: Array) -> float:
        return float((self._max(_row_norms(R, self.norm)) ** self.degree).sum())

    def _expression(self, R: cp.Expression) -> cp.Expression:
        import cvxpy as cp

        order = {"l2": 2, "l1": 1, "linf": "inf"}[self.norm]
        norms = cp.norm(R, order, axis=1)
        if len(self.starts) == 1:
            largest = cp.max(norms)
            return cp.square(largest) if self.degree == 2 else largest
        largest = cp.max(
            norms[self._members.ravel()].reshape(self._members.shape, "C"), axis=1
        )
        return cp.sum_squares(largest) if self.degree == 2 else cp.sum(largest)

    def prox(self, V: Array, step: float) -> Array:
        match self.norm:
            case "l2":
                return self._prox_l2(V, step)
            case "linf":
                return self._prox_linf(V, step)
            case "l1":
                return self._prox_l1(V, step)

    def conjugate(self, Y: Array, weight: float) -> float:
        if self.degree == 1:
            return 0.0
        return float((self._sum(_row_norms(Y, "l2")) ** 2).sum()) / (4.0 * weight)

    def polar(self, Y: Array) -> float:
        return 0.0 if self.degree == 2 else float(self._polars(Y).max())

    def shrink(self, Y: Array, weight: float) -> Array:
        if self.degree == 2:
            return Y
        shares = weight / np.maximum(self._polars(Y), weight)
        return Y * shares[self._group][:, None]

    def _polars(self, Y: Array) -> Array:
        """Per group, Σ_e ‖y_e‖_* in the dual of the row norm."""
        dual: RowNorm = "linf" if self.norm == "l1" else "l1"
        return self._sum(_row_norms(Y, dual))

    def _prox_l2(self, V: Array, step: float) -> Array:
        # rows longer than r are cut to r, where Σ_e (‖v_e‖ − r)₊ = 2·step·r
        norms = _row_norms(V, "l2")
        radius = self._level(norms, self._group, offset=0.0, slack=2.0 * step)
        bound = radius[self._group]
        shorter = np.divide(bound, norms, out=np.ones_like(norms), where=norms > bound)
        return V * shorter[:, None]

    def _prox_linf(self, V: Array, step: float) -> Array:
        # entries beyond r are cut to r, where Σ (|v| − r)₊ = step over the group
        groups = np.repeat(self._group, V.shape[1])
        level = self._level(np.abs(V).ravel(), groups, offset=step, slack=0.0)
        bound = np.maximum(level, 0.0)[self._group][:, None]
        return np.clip(V, -bound, bound)

    def _prox_l1(self, V: Array, step: float) -> Array:
        # rows go to the ℓ1 ball of radius r: soft threshold θ_e(r), Σ_e θ_e(r) = step.
        # Σ θ_e is convex and falls in r: Newton from r = 0 rises to the root, finitely.
        sums = np.cumsum(-np.sort(-np.abs(V), axis=1), axis=1)
        counts = np.arange(1, V.shape[1] + 1)
        radius = np.zeros(len(self.starts))
        for _ in range(100):
            thresholds = (sums - radius[self._group][:, None]) / counts
            active = thresholds.argmax(axis=1)
            theta = np.maximum(thresholds.max(axis=1), 0.0)
            excess = self._sum(theta) - step
            if (excess <= 1e-14 * step).all():
                break
            slope = self._sum(np.where(theta > 0, 1.0 / counts[active], 0.0))
            radius += np.maximum(excess, 0.0) / np.maximum(slope, np.finfo(float).tiny)
        return np.sign(V) * np.maximum(np.abs(V) - theta[:, None], 0.0)

    def _level(
        self, sizes: Array, groups: NDArray[np.intp], *, offset: float, slack: float
    ) -> Array:
        """Per group the root r of Σ (s − r)₊ = offset + slack·r.

        With the k largest active, r_k = (Σ_{i≤k} s_i − offset)/(k + slack) never
        exceeds the root and equals it for the right k: the root is their maximum.
        """
        if len(self.starts) == 1:
            totals = np.cumsum(-np.sort(-sizes)) - offset
            return np.asarray([(totals / (np.arange(1, len(sizes) + 1) + slack)).max()])
        order = np.lexsort((-sizes, groups))
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        totals = np.cumsum(sizes[order])
        before = np.concatenate([[0.0], totals])[starts]
        rank = np.arange(len(sizes)) - starts[groups] + 1
        roots = (totals - before[groups] - offset) / (rank + slack)
        return np.maximum.reduceat(roots, starts)

    def _max(self, rows: Array) -> Array:
        return np.maximum.reduceat(rows, self.starts)

    def _sum(self, rows: Array) -> Array:
        return np.add.reduceat(rows, self.starts)

    @cached_property
    def _group(self) -> NDArray[np.intp]:
        """The group of each row."""
        sizes = np.diff(self.starts, append=self.n_rows)
        return np.repeat(np.arange(len(self.starts)), sizes)

    @cached_property
    def _members(self) -> NDArray[np.intp]:
        """Rows of each group, (groups, largest size): short ones repeat their last."""
        sizes = np.diff(self.starts, append=self.n_rows)
        offsets = np.minimum(np.arange(sizes.max()), sizes[:, None] - 1)
        return self.starts[:, None] + offsets


def _row_norms(R: Array, norm: RowNorm) -> Array:
    match norm:
        case "l2":
            return np.sqrt(np.einsum("ed,ed->e", R, R))
        case "l1":
            return np.abs(R).sum(axis=1)
        case "linf":
            return np.abs(R).max(axis=1)
