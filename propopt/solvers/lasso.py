"""Sparsity with quadratic losses: Newton's method or an eigenbasis.

    min_W  a‖W − G‖² + b tr(Wᵀ P W) + c tr(W Q Wᵀ) + λ‖W‖₁,   P = BᵀB,  Q = CᵀC.

Where there is no P, or it is sparse (graphs) or an operator: Newton's method on the
non-zeros with conjugate gradients (:mod:`propopt.solvers.lasso_newton`), without a
factorisation, a dozen products a weight. Where P is a dense array (a kernel's
precision), which has eigenvalues of all sizes, on which conjugate gradients are slow:
alternating directions in the eigenbasis. Both stop at a proven relative gap and leave
exact zeros. The dual of the ℓ1 loss, which the certificate needs, comes with the
solution.

The alternating direction method minimises ½⟨W, HW⟩ − 2⟨G, W⟩ + ‖G‖² + λ‖W‖₁ where
H = 2(I + βP + γQ) has eigenvalues h_ij = 2(1 + βθ_i + γν_j) in the basis U ⊗ V. With
hats for coefficients in that basis:

    X̂ = (2Ĝ + ρẐ − Ŷ)/(h + ρ),  X ← 1.7X − 0.7Z,  Z = soft(X + Y/ρ, λ/ρ),
    Y ← Y + ρ(X − Z).

Each step takes two rotations for any ρ, and depends on the condition of H only through
the choice of ρ, which balances the relative changes of both residuals. As Y is a
subgradient of λ‖Z‖₁, the gap at (Z, Y) is at most ‖hẐ − 2Ĝ + Ŷ‖²/4, at no extra cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from propopt.base.arrays import Array, Attributions
from propopt.base.resources import few_threads, memory_refusal
from propopt.losses import Program
from propopt.losses.algebra import objective_scale
from propopt.losses.maps import (
    OverPoints,
)
from propopt.proofs.curvature import (
    Quadratic,
    bounds_refusal,
    eigenbases,
    quadratic_refusal,
)
from propopt.solvers.lasso_newton import (
    LassoMethod,
    LassoOptimum,
    LassoProblem,
    NewtonLasso,
    best_dual,
)
from propopt.solvers.solver import Prepared, Solution, Solver


# ---- Gradient matching, robustness and smoothness with an ℓ1 loss: sparse attributions


_MOST_STEPS = 20_000
_RELAXATION = 1.7
_BALANCED_EVERY = 10


@final
class DiagonalLasso:
    """Lasso problems by alternating directions in the eigenbasis of a quadratic."""

    def __init__(self, quadratic: Quadratic) -> None:
        self._over_points, self._over_features = eigenbases(quadratic)
        self._theta = self._over_points.values
        self._nu = self._over_features.values
        self._zero = float(np.vdot(quadratic.G, quadratic.G))
        self._pull = 2.0 * self._forward(quadratic.G)

    def minimum(self, lasso: LassoProblem, start: LassoOptimum | None) -> LassoOptimum:
        """The optimum, started at that of similar weights if given."""
        with few_threads(len(self._theta)):
            h = 2.0 * (1.0 + lasso.beta * self._theta[:, None] + lasso.gamma * self._nu)
            weight = lasso.weight
            smooth = self._backward(self._pull / h)
            if weight == 0.0:
                return smooth, np.zeros_like(smooth)
            Z, Y = (smooth, 0.0 * smooth) if start is None else start
            Y = np.clip(Y, -weight, weight)
            Z_hat = self._forward(Z)
            Y_hat = self._forward(Y)
            rho = float(np.sqrt(h.min() * np.quantile(h, 0.9)))
            for step in range(1, _MOST_STEPS + 1):
                X_hat = (self._pull + rho * Z_hat - Y_hat) / (h + rho)
                X_hat = _RELAXATION * X_hat + (1.0 - _RELAXATION) * Z_hat
                Y += rho * self._backward(X_hat)
                # λ∂‖Z‖₁ ∋ Y: the part that soft thresholding of Y/ρ removes
                Z = Y.copy()
                np.clip(Y, -weight, weight, out=Y)
                Z -= Y
                Z /= rho
                last = Z_hat
                Z_hat = self._forward(Z)
                apart = X_hat - Z_hat
                Y_hat += rho * apart
                proven = self._relative_gap(h, Z_hat, Y_hat, Z, weight)
                if proven <= 0.5 * lasso.tolerance:
                    break
                if step % _BALANCED_EVERY == 0 and step < 0.8 * _MOST_STEPS:
                    rho *= _imbalance(apart, Z_hat - last, Z_hat, Y_hat, rho)
            slope = self._backward(h * Z_hat - self._pull)
            return Z, best_dual(Z, slope, weight)

    def _relative_gap(
        self, h: Array, Z_hat: Array, Y_hat: Array, Z: Array, weight: float
    ) -> float:
        slope = h * Z_hat - self._pull
        value = 0.5 * float(np.vdot(Z_hat, slope - self._pull)) + self._zero
        value += weight * float(np.abs(Z).sum())
        slope += Y_hat
        excess = 0.25 * float(np.vdot(slope, slope))
        return excess / objective_scale(value, self._zero)

    def _forward(self, W: Attributions) -> Array:
        return self._over_features.forward(self._over_points.forward(W).T).T

    def _backward(self, W_hat: Array) -> Attributions:
        return self._over_points.backward(self._over_features.backward(W_hat.T).T)


def _imbalance(apart: Array, moved: Array, Z: Array, Y: Array, rho: float) -> float:
    """The factor for ρ: the root of ‖X − Z‖/‖Z‖ over ρ‖ΔZ‖/‖Y‖."""
    primal = float(np.linalg.norm(apart) * np.linalg.norm(Y))
    dual = rho * float(np.linalg.norm(moved) * np.linalg.norm(Z))
    if primal > 1e4 * dual:
        return 1e2
    ratio = max(primal / dual, 1e-4) ** 0.5 if dual > 0.0 else 1.0
    return ratio if abs(np.log(ratio)) > np.log(1.5) else 1.0


@final
@dataclass(frozen=True)
class Lasso(Solver):
    """Sparse attributions by Newton's method or in an eigenbasis; see the module."""

    name = "lasso"

    def refusal(self, program: Program) -> str | None:
        return (
            bounds_refusal(program)
            or _sparsity_refusal(program)
            or quadratic_refusal(program)
            or _memory_refusal(program)
        )

    def prepare(self, program: Program) -> Prepared:
        quadratic = Quadratic.of(program)
        [sparsity] = program.kinds["sparsity"]
        sparsity_index = program.losses.index(sparsity)
        # a dense Gram matrix has an eigenbasis
        is_dense = isinstance(quadratic.P, np.ndarray)
        lasso: Any = DiagonalLasso if is_dense else NewtonLasso
        method = lasso(quadratic).minimum
        return _Sparse(method, quadratic, sparsity_index, sparsity.name)


def _sparsity_refusal(program: Program) -> str | None:
    for loss in program.kinds["rest"]:
        return f"{loss.name} is neither a squared loss nor sparsity"
    count = len(program.kinds["sparsity"])
    return None if count == 1 else f"it takes one sparsity loss, and there are {count}"


def _memory_refusal(program: Program) -> str | None:
    n_points, n_features = program.shape
    n_bytes = 8.0 * ARRAYS * n_points * n_features
    instead = "use fewer points"
    if any(
        isinstance(loss.map, OverPoints) and isinstance(loss.map.matrix, np.ndarray)
        for loss in program.losses
    ):
        # a Gram matrix, its eigenvectors and LAPACK's workspace
        n_bytes += 32.0 * n_points**2
        instead = "use a sparse graph (knn_graph, or a cutoff)"
    label = f"the lasso of {n_points} points and {n_features} features"
    return memory_refusal(n_bytes, label, instead)


ARRAYS = 24  # arrays of the size of W in memory, by measurement


class _Sparse(Prepared):
    """A lasso method for the program divided by a, with shortcuts for zero."""

    def __init__(
        self, method: LassoMethod, quadratic: Quadratic, sparsity_index: int, name: str
    ) -> None:
        self._method = method
        self._quadratic = quadratic
        self._sparsity_index = sparsity_index
        self._name = name

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        a, b, c = self._quadratic.coefficients(weights)
        weight = float(weights[self._sparsity_index])
        G = self._quadratic.G
        if a == 0.0:  # W = 0 minimises all other losses
            return self._solution(np.zeros_like(G), np.zeros_like(G))
        if 2.0 * a * float(np.abs(G).max()) <= weight:  # 0 ∈ −2aG + λ∂‖0‖₁
            return self._solution(np.zeros_like(G), (2.0 * a) * G)
        lasso = LassoProblem(
            beta=b / a, gamma=c / a, weight=weight / a, tolerance=tolerance
        )
        W, Y = self._method(lasso, self._begin(start, a))
        # clip again: by rounding a·Y may exceed λ
        return self._solution(W, np.clip(a * Y, -weight, weight))

    def _begin(self, start: Solution | None, a: float) -> LassoOptimum | None:
        if start is None:
            return None
        dual = start.duals.get(self._name, np.zeros_like(start.W))
        return start.W, dual / a

    def _solution(self, W: Attributions, Y: Array) -> Solution:
        return Solution(W=W, duals={self._name: Y})
