"""Lower bounds on a weighted sum of losses, from attributions and duals.

Write F(W) = q(W) + Σ_i c_i φ_i(A_i W − T_i), where q collects the squared losses. For
any duals Y_i, Fenchel's inequality c_i φ_i(R) ≥ ⟨Y_i, R⟩ − (c_i φ_i)*(Y_i) gives

    F(V) ≥ q(V) + Σ_i ⟨Y_i, A_i V − T_i⟩ − Σ_i (c_i φ_i)*(Y_i)  for every V.

* **strong convexity**: if q is m-strongly convex (m = 2a where gradient matching has
  weight a), the right side is at least its value at W less ‖g‖²/2m, for its gradient
  g = ∇q(W) + Σ_i A_iᵀ Y_i.
* **dual**: if an ℓ1 loss acts on W itself, its own dual can take up g, so that
  Σ A_iᵀ Y_i is zero over all losses and the bound is −Σ_i (c_i φ_i)*(Y_i) + ⟨Y_i, T_i⟩.
* **projected dual**: otherwise duals are moved to the nearest with that sum zero (to
  rounding), by least squares.

Both duals are evaluated at W, as Σ_i ⟨Y_i, A_i W − T_i⟩ − (c_i φ_i)*(Y_i): the same
number as at zero, without the cancellation of large targets. What rounding may have
added to residuals and gradients (:meth:`LinearMap.rounding`) is taken off each bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from propopt._typing import Array, Attributions, Sparse
from propopt.linear.rounding import Rounding
from propopt.losses import PropertyLoss
from propopt.maps import Identity
from propopt.penalties import Absolute, Squared


DENSE_LIMIT = 1500  # unknowns up to which a dense eigenvalue routine is used
LOST = 1e-13
"""Of what cancels in a bound: rounding leaves no more of it."""


class Lagrangian:
    """Lower bounds on Σ c·loss over all V, from what is known at W."""

    def __init__(
        self,
        terms: Sequence[tuple[float, PropertyLoss]],
        W: Attributions,
        duals: Mapping[str, Array],
        values: Mapping[int, float],
    ) -> None:
        self.W = W
        self.duals = duals
        self.values = values
        own = (isinstance(loss.map, Identity) for _, loss in terms if _is_squared(loss))
        self._has_modulus = any(own)
        self.squared = [t for t in terms if self._in_q(t[1])]
        self.others = [t for t in terms if not self._in_q(t[1])]

    def _in_q(self, loss: PropertyLoss) -> bool:
        """True if it is squared, unless its dual is given and q is convex without it.

        A dual knows the forces between neighbours better than W does, whose last digits
        a large weight makes much of.
        """
        if isinstance(loss.map, Identity) or not self._has_modulus:
            return _is_squared(loss)
        return _is_squared(loss) and loss.name not in self.duals

    def lower_bound(self) -> tuple[float, str, float | None]:
        """The bound, its kind, and the distance to the optimum that it implies."""
        modulus = sum(
            2 * c for c, loss in self.squared if isinstance(loss.map, Identity)
        )
        absorber = self._absorber()
        if modulus == 0.0 and absorber is not None:
            return self._dual_bound(absorber) - self._rounding, "dual", None
        # with squared losses alone, the projected dual is exact, and costs far less
        eigenvalues = bool(self.others) or self.W.size <= DENSE_LIMIT
        if modulus == 0.0 and self.squared and eigenvalues:
            modulus = smallest_curvature(self.squared, self.W.shape)
        if modulus > 0.0:
            lower, distance = self._strongly_convex_bound(modulus)
            return lower - self._rounding, "strong convexity", distance
        return self._projected_bound() - self._rounding, "projected dual", None

    @cached_property
    def _roundings(self) -> list[tuple[float, PropertyLoss, Rounding]]:
        """Of the squared losses; all others have exact residuals."""
        terms = [t for t in self.squared + self.others if _is_squared(t[1])]
        return [(c, loss, loss.map.rounding(self.W)) for c, loss in terms]

    @cached_property
    def _rounding(self) -> float:
        """Σ c (2‖R‖δ + δ²): what errors δ of residuals R do to squared losses."""
        parts = []
        for c, loss, rounding in self._roundings:
            size = math.sqrt(self.values[id(loss)])
            parts.append(c * rounding.residual * (2.0 * size + rounding.residual))
        return math.fsum(parts)

    def _absorber(self) -> PropertyLoss | None:
        """An ℓ1 loss of W itself, rather one whose dual is not given."""
        losses = [
            loss
            for _, loss in self.others
            if isinstance(loss.map, Identity) and isinstance(loss.penalty, Absolute)
        ]
        return min(losses, key=lambda loss: loss.name in self.duals, default=None)

    def _strongly_convex_bound(self, modulus: float) -> tuple[float, float]:
        """The bound, and the distance to the optimum that it implies."""
        slope = self._smooth_gradient()
        gaps = []
        for c, loss in sorted(self.others, key=lambda t: t[1].name not in self.duals):
            residual = loss.residual(self.W)
            wanted = self._dual(loss, residual, slope, modulus)
            Y = loss.penalty.shrink(wanted, c)
            slope = slope + loss.map.adjoint(Y)
            # Fenchel-Young: c φ(R) + (c φ)*(Y) − ⟨Y, R⟩ ≥ 0
            gaps.append(c * loss.penalty.value(residual) + loss.penalty.conjugate(Y, c))
            gaps.append(-float(np.vdot(Y, residual)))
        size = float(np.linalg.norm(slope))
        size += math.fsum(
            2 * c * error.gradient
            for c, loss, error in self._roundings
            if self._in_q(loss)  # the others have duals instead of gradients
        )
        excess = max(math.fsum(gaps), 0.0) + size**2 / (2 * modulus)
        excess *= 1.0 + LOST
        return self._value() - excess, math.sqrt(2 * excess / modulus)

    def _dual(
        self, loss: PropertyLoss, residual: Array, slope: Array, modulus: float
    ) -> Array:
        """The given dual; else the best where the map is the identity; else zero."""
        if loss.name in self.duals:
            return self.duals[loss.name]
        if isinstance(loss.map, Identity):
            # the largest bound, at max_Y ⟨Y, R⟩ − ‖slope + Y‖²/2m
            return modulus * residual - slope
        return np.zeros_like(residual)

    def _dual_bound(self, absorber: PropertyLoss) -> float:
        duals = self._subgradients()
        others = [dual for dual in duals if dual.loss is not absorber]
        taken = [dual.loss.map.adjoint(dual.Y) for dual in others]
        rest = -sum(taken, np.zeros_like(self.W))
        own = next(dual for dual in duals if dual.loss is absorber)
        return _conjugate_bound([*others, replace(own, Y=rest)])

    def _projected_bound(self) -> float:
        """Duals moved to the nearest with Σ AᵀY = 0: Y − c A z for least squares z.

        A rest r of that sum changes the bound at the optimum V by ⟨r, V − W⟩. Where
        all losses are squared, V = W − z/2.
        """
        duals = self._subgradients()
        roots = [math.sqrt(dual.weight) for dual in duals]
        flats = [
            root * dual.loss.map.flat(self.W.shape)
            for root, dual in zip(roots, duals, strict=True)
        ]
        stacked = np.concatenate(
            [dual.Y.ravel() / root for root, dual in zip(roots, duals, strict=True)]
        )
        matrix = sp.csr_array(sp.vstack(flats))
        widest = math.sqrt(matrix.power(2).sum(axis=0).max())
        rounding = 1e-10 * widest * float(np.linalg.norm(stacked))
        kept, moved = stacked, 0.0
        if np.linalg.norm(matrix.T @ kept) > rounding:
            limit = 20 * max(matrix.shape)
            z = spla.lsmr(
                matrix, stacked, atol=1e-15, btol=1e-15, conlim=0.0, maxiter=limit
            )[0]
            kept, moved = stacked - matrix @ z, float(np.linalg.norm(z))
        rest = float(np.linalg.norm(matrix.T @ kept))
        if rest > rounding:
            return 0.0
        parts = np.split(kept, np.cumsum([flat.shape[0] for flat in flats])[:-1])
        bound = _conjugate_bound(
            [
                replace(dual, Y=root * part.reshape(dual.Y.shape))
                for root, dual, part in zip(roots, duals, parts, strict=True)
            ]
        )
        return bound - rest * moved

    def _subgradients(self) -> list[_Dual]:
        """The given duals; else 2cR for squared losses and zero for the others."""
        duals = []
        for c, loss in [*self.squared, *self.others]:
            R = loss.residual(self.W)
            own = 2 * c * R if _is_squared(loss) else np.zeros_like(R)
            duals.append(_Dual(c, loss, R, self.duals.get(loss.name, own)))
        return duals

    def _smooth_gradient(self) -> Attributions:
        parts = (c * loss.gradient_at(self.W) for c, loss in self.squared)
        return sum(parts, np.zeros_like(self.W))

    def _value(self) -> float:
        return math.fsum(
            c * self.values[id(loss)] for c, loss in self.squared + self.others
        )


def _is_squared(loss: PropertyLoss) -> bool:
    return isinstance(loss.penalty, Squared)


def values_at(
    losses: Sequence[PropertyLoss], W: Attributions, by_name: Mapping[str, float]
) -> dict[int, float]:
    """The value of each loss at W; those known by name are not computed again."""
    return {
        id(loss): by_name[loss.name] if loss.name in by_name else loss.value_at(W)
        for loss in losses
    }


@dataclass(frozen=True, eq=False)
class _Dual:
    """Y for the loss c φ(R), where R = A(W) − T."""

    weight: float
    loss: PropertyLoss
    R: Array
    Y: Array


def _conjugate_bound(duals: list[_Dual]) -> float:
    """Σ ⟨Y, R⟩ − (cφ)*(Y): a lower bound where Σ AᵀY = 0.

    Scaling all duals alike keeps that sum zero and brings each into its domain.
    """
    theta = min(d.weight / max(d.loss.penalty.polar(d.Y), d.weight) for d in duals)
    bound = math.fsum(
        theta * float(np.vdot(d.Y, d.R))
        - d.loss.penalty.conjugate(theta * d.Y, d.weight)
        for d in duals
    )
    size = theta * math.fsum(float(np.abs(d.Y * d.R).sum()) for d in duals)
    return bound - LOST * (size - bound)


def smallest_curvature(
    terms: Sequence[tuple[float, PropertyLoss]], shape: tuple[int, ...]
) -> float:
    """The smallest eigenvalue of Σ 2c AᵀA; zero if it is zero to rounding."""
    flats = [(c, loss.map.flat((shape[0], shape[1]))) for c, loss in terms]
    hessian = sp.csc_array(sum((2 * c) * (A.T @ A) for c, A in flats))
    largest = float(abs(hessian).sum(axis=1).max())  # no eigenvalue is larger
    rounding = 1e-13 * largest * math.sqrt(hessian.shape[0])
    return max(_lowest_eigenvalue(hessian, largest) - rounding, 0.0)


def _lowest_eigenvalue(hessian: Sparse, largest: float) -> float:
    if hessian.shape[0] <= DENSE_LIMIT or largest == 0.0:
        return float(la.eigvalsh(hessian.toarray(), subset_by_index=[0, 0])[0])
    shift = -1e-6 * largest  # just below the spectrum, so that the factor exists
    start = np.ones(hessian.shape[0])
    lowest = spla.eigsh(
        hessian, k=1, sigma=shift, v0=start, return_eigenvectors=False, tol=1e-3
    )[0]
    return float(lowest - 1e-2 * abs(lowest))
