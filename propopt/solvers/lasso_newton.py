"""Newton's method on the non-zeros of a lasso, with a proven gap.

    F(W) = q(W) + λ‖W‖₁,   q(W) = ‖W − G‖² + β tr(Wᵀ P W) + γ tr(W Q Wᵀ),

that is, ½⟨W, HW⟩ − 2⟨G, W⟩ + ‖G‖² with H = 2(I + βP + γQ) ≽ 2I: all weights are divided
by that of gradient matching. So for any |Y| ≤ λ

    F(W) − min F ≤ λ‖W‖₁ − ⟨Y, W⟩ + ‖∇q(W) + Y‖²/4,

and the Y for which that is smallest is 2W − ∇q(W), cut to ±λ, entry by entry.

It needs products with H, a diagonal bound M ≽ H for its gradient steps, and an
approximate inverse for conjugate gradients. Attributions are stored in the fastest
layout for products: points in rows for stored matrices, features in rows (columns of W
contiguous) for operators, which take one column at a time, on two threads.

1. A gradient step in the metric M ≽ H, V = soft(W − M⁻¹∇q(W), λM⁻¹), gives the
   set A of nonzero attributions and their signs s.
2. On these, F is quadratic: H_AA x = (2G − λs)_A by preconditioned conjugate gradients,
   as accurately as the step needs.
3. W moves towards x as far as F falls: F is piecewise quadratic on the way, and its
   minimum is computed exactly. If x has the same signs, the minimum is x. If not, x
   with the entries of wrong sign set to zero is tried too. If F does not fall enough, W
   moves to V, where it does.

Once A and s are those of the optimum, x is the optimum. F falls at every step by a
share of the guarantee of a gradient step, so the method converges from any start; from
the optimum for similar weights it takes two or three steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from propopt.base.arrays import Array, Attributions, Sparse
from propopt.base.resources import few_threads, for_each_column
from propopt.losses.algebra import objective_scale
from propopt.losses.linear_algebra import Action, conjugate_gradients
from propopt.losses.maps import dense_matrix
from propopt.losses.operators import LatticeLaplacian, Operator, ProductKernelLaplacian


def best_dual(W: Array, slope: Array, weight: float) -> Array:
    """The |Y| ≤ λ with the smallest proven gap at W, where q has this slope."""
    return np.clip(2.0 * W - slope, -weight, weight)


# ---- The curvature of squared losses, H = 2(I + βP + γQ), as products and bounds


DENSITY = 0.1  # products with a stored matrix are faster dense from here on
PRECONDITIONED = 30.0  # β‖P‖ from which two cosine transforms a step pay for themselves


@dataclass(frozen=True, eq=False)
class Curvature:
    """H = 2(I + βP + γQ) on attributions stored with points in rows; P a matrix."""

    P: Any  # None without robustness
    Q: Array | None  # None without smoothness, or where γ is zero
    beta: float  # β, γ ≥ 0
    gamma: float

    @classmethod
    def of(cls, P: Any, Q: Array | None, beta: float, gamma: float) -> Curvature:
        """The curvature for a matrix, or for an operator."""
        kind = OperatorCurvature if isinstance(P, Operator) else cls
        return kind(P, Q if gamma else None, beta, gamma)

    def in_layout(self, W: Attributions) -> Array:
        """A contiguous copy of W (N, D) in this layout."""
        return np.array(W, order="C")

    def restored(self, X: Array) -> Attributions:
        """Return W (N, D) from this layout."""
        return X

    def product(self, X: Array) -> Array:
        """The product H X, a new array."""
        product = 2.0 * X
        if self.P is not None and self.beta:
            coupled = self.P @ X
            coupled *= 2.0 * self.beta
            product += coupled
        if self.Q is not None:
            product += X @ ((2.0 * self.gamma) * self.Q)
        return product

    @cached_property
    def bound(self) -> Array:
        """A diagonal M ≽ H, of a shape that broadcasts."""
        # |P|1 bounds P, for symmetric P (Gershgorin)
        over_points = _row_sums(self.P) * self.beta
        over_features = _row_sums(self.Q) * self.gamma
        return 2.0 + 2.0 * np.add.outer(over_points, over_features)

    def precondition(self, R: Array) -> Array:
        """An approximation of H⁻¹R, symmetric and positive definite; a new array."""
        _, V = self._feature_basis
        if V is None:
            return R * self._inverse_diagonal
        return ((R @ V) * self._inverse_diagonal) @ V.T

    @cached_property
    def _inverse_diagonal(self) -> Array:
        diagonal_of_P = np.zeros(1) if self.P is None else diagonal(self.P)
        over_points = diagonal_of_P * self.beta
        over_features = self._feature_basis[0] * self.gamma
        return 0.5 / (1.0 + np.add.outer(over_points, over_features))

    @cached_property
    def _feature_basis(self) -> tuple[Array, Array | None]:
        if self.Q is None:
            return np.zeros(1), None
        values, vectors = la.eigh(self.Q)
        return np.maximum(values, 0.0), vectors

    def guess(self, X: Array) -> Array | None:
        """H⁻¹X if it has a closed form, else None."""
        del X
        return None


@final
class OperatorCurvature(Curvature):
    """The curvature for an operator P, with features in rows.

    A lattice is diagonal under the cosine transform, which then is the preconditioner.
    """

    @property
    def _lattice(self) -> LatticeLaplacian | None:
        """P if the cosine transform pays, else None."""
        stiff = self.beta * self.P.largest >= PRECONDITIONED
        return self.P if stiff and isinstance(self.P, LatticeLaplacian) else None

    def in_layout(self, W: Attributions) -> Array:
        return np.array(W.T, order="C")

    def restored(self, X: Array) -> Attributions:
        return np.ascontiguousarray(X.T)

    def product(self, X: Array) -> Array:
        product = np.empty_like(X)

        def fill(column: int) -> None:
            row = product[column]
            self.P.apply(X[column], row)
            row *= 2.0 * self.beta
            row += X[column]
            row += X[column]

        for_each_column(fill, *X.shape)
        if self.Q is not None:
            product += ((2.0 * self.gamma) * self.Q) @ X
        return product

    @cached_property
    def bound(self) -> Array:
        over_features = _row_sums(self.Q) * self.gamma
        # P ≼ 2·diag(P) for a Laplacian of similarities ≥ 0
        over_points = (2.0 * self.beta) * diagonal(self.P)
        return 2.0 + 2.0 * np.add.outer(over_features, over_points)

    def precondition(self, R: Array) -> Array:
        inverse = self.guess(R)
        return R / (0.5 * (2.0 + self.bound)) if inverse is None else inverse

    def guess(self, X: Array) -> Array | None:
        lattice = self._lattice
        if lattice is None:
            return None
        values, V = self._feature_basis
        nu = np.broadcast_to(values, len(X))
        turned = X.copy() if V is None else V.T @ X

        def divide(column: int) -> None:
            eigenvalues = (2.0 * self.beta) * lattice.eigenvalues
            eigenvalues += 2.0 * (1.0 + self.gamma * nu[column])
            spectrum = lattice.forward(turned[column])
            spectrum /= eigenvalues
            turned[column] = lattice.backward(spectrum)

        for_each_column(divide, *X.shape)
        return turned if V is None else V @ turned


def _row_sums(matrix: Sparse | Array | None) -> Array:
    if matrix is None:
        return np.zeros(1)
    return abs(matrix).sum(axis=1).ravel()


def diagonal(matrix: Sparse | Array | Operator) -> Array:
    """The diagonal; of an operator without one, half of its largest eigenvalue."""
    if isinstance(matrix, ProductKernelLaplacian):
        return 2.0 * matrix.degrees
    if isinstance(matrix, Operator):
        return np.array([0.5 * matrix.largest])
    return matrix.diagonal()


# ---- Newton's method on the non-zeros of a lasso, with conjugate gradients


_MOST_STEPS = 300
_INNER_STEPS = 3_000
_FORCING = 0.2  # the remaining residual of a Newton system
_DESCENT = 0.05  # of the decrease that a gradient step guarantees


def lasso_optimum(
    H: Curvature,
    target: Attributions,
    weight: float,  # λ ≥ 0
    tolerance: float,  # the gap, relative to objective_scale of F(W) and F(0)
    start: Attributions | None,  # the optimum for weights nearby
) -> tuple[Attributions, Array]:
    """W (N, D) with exact zeros, and its dual Y: |Y| ≤ λ, close to −∇q(W)."""
    G = H.in_layout(target)
    W = np.zeros_like(G) if start is None else H.in_layout(start)
    # the optimum for λ = 0, if available, minus the shift by λ
    if start is None and (guess := H.guess(2.0 * G)) is not None:
        W = _soft(guess, np.array(0.5 * weight))
    # sparse products do not use BLAS threads
    with few_threads(len(H.P) if isinstance(H.P, np.ndarray) else 0):
        point = _descend(_Objective(H, G, weight), W, tolerance)
    Y = best_dual(point.W, point.slope, weight)
    return H.restored(point.W), H.restored(Y)


def for_products(P: Sparse | Array | Operator | None) -> Any:
    """P in the format with the fastest products."""
    if P is None or isinstance(P, np.ndarray | Operator):
        return P
    rows = sp.csr_array(P)  # products write each row once
    return dense_matrix(rows) if rows.nnz > DENSITY * rows.shape[0] ** 2 else rows


@dataclass(frozen=True, eq=False)
class _Point:
    """Attributions W and the slope ∇q(W)."""

    W: Array
    slope: Array


@dataclass(frozen=True, eq=False)
class _Objective:
    """The objective F, with steps that decrease it."""

    H: Curvature
    G: Array
    weight: float

    def at(self, W: Array) -> _Point:
        """The point W, with ∇q(W) = HW − 2G."""
        slope = self.H.product(W)
        slope -= self.G
        slope -= self.G
        return _Point(W, slope)

    def scale(self, point: _Point) -> float:
        """The scale of the relative gap at W."""
        zero = float(np.vdot(self.G, self.G))
        # ½⟨W, HW⟩ − 2⟨G, W⟩ + ‖G‖² = ½⟨W, ∇q(W)⟩ − ⟨G, W⟩ + ‖G‖²
        smooth = 0.5 * float(np.vdot(point.W, point.slope)) + zero
        smooth -= float(np.vdot(self.G, point.W))
        value = smooth + self.weight * float(np.abs(point.W).sum())
        return objective_scale(value, zero)

    def gap(self, point: _Point) -> float:
        """The gap λ‖W‖₁ − ⟨Y, W⟩ + ‖∇q(W) + Y‖²/4 for the best Y."""
        Y = best_dual(point.W, point.slope, self.weight)
        excess = self.weight * float(np.abs(point.W).sum())
        excess -= float(np.vdot(Y, point.W))
        Y += point.slope
        return max(excess, 0.0) + 0.25 * float(np.vdot(Y, Y))

    def change(self, point: _Point, other: _Point) -> float:
        """F(other) − F(point) = ½⟨∇q + ∇q', W' − W⟩ + λ(‖W'‖₁ − ‖W‖₁)."""
        rise = np.abs(other.W)
        rise -= np.abs(point.W)
        smooth = float(np.vdot(point.slope + other.slope, other.W - point.W))
        return 0.5 * smooth + self.weight * float(rise.sum())

    def lower(self, point: _Point, goal: float) -> _Point | None:
        """A point with a smaller objective; None if only rounding is left."""
        bound = self.H.bound
        gradient_step = _soft(point.W - point.slope / bound, self.weight / bound)
        signs = np.sign(gradient_step)
        gradient_step -= point.W
        needed = 0.5 * _DESCENT * float(np.vdot(gradient_step, bound * gradient_step))
        lower = self._newton(point, signs, goal)
        if self.change(point, lower) <= -needed:
            return lower
        gradient_step += point.W
        lower = self.at(gradient_step)
        return lower if self.change(point, lower) < 0.0 else None

    def _newton(self, point: _Point, signs: Array, goal: float) -> _Point:
        """The better step to x: as far as F falls, or x with wrong signs at zero."""
        end = self.at(self._orthant_minimum(point, signs, goal))
        crossing = end.W * signs < 0.0
        if not crossing.any():
            return self._along(point, end)
        cut = self.at(np.where(crossing, 0.0, end.W))
        part = self._along(point, end)
        return min(part, cut, key=lambda other: self.change(point, other))

    def _orthant_minimum(self, point: _Point, signs: Array, goal: float) -> Array:
        """The x with H_AA x_A ≈ (2G − λs)_A, zero where the sign s is zero."""
        active = np.abs(signs)
        x = np.where(point.W * signs > 0.0, point.W, 0.0)
        start = point if np.array_equal(x, point.W) else self.at(x)
        residual = (-self.weight) * signs - start.slope
        residual *= active
        square = float(np.vdot(residual, residual))
        enough = max(_FORCING**2 * square, goal)
        conjugate_gradients(
            _masked(self.H.product, active),
            x,
            residual,
            precondition=_masked(self.H.precondition, active),
            most_steps=_INNER_STEPS,
            is_enough=lambda _, R: float(np.vdot(R, R)) <= enough,
        )
        return x

    def _along(self, point: _Point, end: _Point) -> _Point:
        """The minimum of F between a point and an end, which is overwritten."""
        share = _line_minimum(point, end, self.weight)
        if share == 1.0:
            return end
        for moved, origin in ((end.W, point.W), (end.slope, point.slope)):
            moved -= origin
            moved *= share
            moved += origin
        return end


def _descend(objective: _Objective, W: Array, tolerance: float) -> _Point:
    """A minimiser to a relative gap, or the best that rounding and steps allow."""
    point = best = objective.at(W)
    smallest = np.inf
    for _ in range(_MOST_STEPS):
        gap = objective.gap(point)
        scale = objective.scale(point)
        if gap < smallest:
            smallest = gap
            best = point
        if gap <= 0.5 * tolerance * scale:
            break
        lower = objective.lower(point, tolerance * scale)
        if lower is None:
            break
        point = lower
    return best


def _masked(action: Action, mask: Array) -> Action:
    """The action on the entries of a mask of zeros and ones, into the same."""

    def masked(V: Array) -> Array:
        image = action(V)
        image *= mask
        return image

    return masked


def _line_minimum(point: _Point, end: _Point, weight: float) -> float:
    """The t in [0, 1] with the smallest F(W + t(x − W)).

    The derivative rises linearly, and jumps by 2λ|x − W| where an entry changes sign.
    """
    W = point.W
    x = end.W
    step = x - W
    crossing = W * x < 0.0
    signs = np.where(W == 0.0, np.sign(x), np.sign(W))
    initial = float(np.vdot(point.slope, step))
    rate = float(np.vdot(end.slope, step)) - initial
    initial += weight * float(np.vdot(signs, step))
    breaks = W[crossing] / (W[crossing] - x[crossing])
    order = np.argsort(breaks)
    jumps = 2.0 * weight * np.abs(step[crossing])[order]
    levels = initial + np.concatenate([[0.0], np.cumsum(jumps)])
    ends = np.concatenate([breaks[order], [1.0]])
    rising = np.flatnonzero(levels + rate * ends >= 0.0)
    if len(rising) == 0:
        return 1.0
    piece = rising[0]
    first = float(ends[piece - 1]) if piece else 0.0
    root = -levels[piece] / rate if rate > 0.0 else first
    return float(np.clip(root, first, ends[piece]))


def _soft(V: Array, threshold: Array) -> Array:
    """sign(V)·max(|V| − threshold, 0), with exact zeros; overwrites V."""
    V -= np.clip(V, -threshold, threshold)
    return V
