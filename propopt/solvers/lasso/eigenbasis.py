"""The alternating direction method for a lasso whose quadratic is diagonal.

Minimises ½⟨W, HW⟩ − 2⟨G, W⟩ + ‖G‖² + λ‖W‖₁ where H = 2(I + βP + γQ) has eigenvalues
h_ij = 2(1 + βθ_i + γν_j) in the basis U ⊗ V. With hats for coefficients in that basis:

    X̂ = (2Ĝ + ρẐ − Ŷ)/(h + ρ),  X ← 1.7X − 0.7Z,  Z = soft(X + Y/ρ, λ/ρ),
    Y ← Y + ρ(X − Z).

Two rotations a step, whatever ρ is, and no dependence on the condition of H but through
the choice of ρ, which keeps the relative changes of both residuals alike. As Y is a
subgradient of λ‖Z‖₁, the gap at (Z, Y) is at most ‖hẐ − 2Ĝ + Ŷ‖²/4, at no extra cost.
"""

from __future__ import annotations

from typing import final

import numpy as np

from propopt._typing import Array, Attributions
from propopt.curvature.eigenbasis import Eigenbasis
from propopt.curvature.quadratic import Quadratic
from propopt.losses.effortless import objective_scale
from propopt.solvers.lasso.base import (
    LassoMethod,
    LassoOptimum,
    LassoProblem,
    best_dual,
)
from propopt.threads import few_threads


_MOST_STEPS = 20_000
_RELAXATION = 1.7
_BALANCED_EVERY = 10


@final
class DiagonalLasso(LassoMethod):
    """The eigenbasis of a quadratic, and lassos in it."""

    def __init__(self, quadratic: Quadratic) -> None:
        n_points, n_features = quadratic.G.shape
        self._over_points = Eigenbasis(quadratic.P, quadratic.point_parts, n_points)
        self._over_features = Eigenbasis(
            quadratic.Q, quadratic.feature_parts, n_features
        )
        self._theta, self._nu = self._over_points.values, self._over_features.values
        self._zero = float(np.vdot(quadratic.G, quadratic.G))
        self._pull = 2.0 * self._forward(quadratic.G)

    def minimum(self, lasso: LassoProblem, start: LassoOptimum | None) -> LassoOptimum:
        with few_threads(len(self._theta)):
            return self._minimum(lasso, start)

    def _minimum(self, lasso: LassoProblem, start: LassoOptimum | None) -> LassoOptimum:
        h = 2.0 * (1.0 + lasso.beta * self._theta[:, None] + lasso.gamma * self._nu)
        weight = lasso.weight
        smooth = self._backward(self._pull / h)
        if weight == 0.0:
            return LassoOptimum(W=smooth, Y=np.zeros_like(smooth), gap=0.0)
        Z, Y = (smooth, 0.0 * smooth) if start is None else (start.W, start.Y)
        Y = np.clip(Y, -weight, weight)
        Z_hat, Y_hat = self._forward(Z), self._forward(Y)
        rho = float(np.sqrt(h.min() * np.quantile(h, 0.9)))
        for step in range(1, _MOST_STEPS + 1):
            X_hat = (self._pull + rho * Z_hat - Y_hat) / (h + rho)
            X_hat = _RELAXATION * X_hat + (1.0 - _RELAXATION) * Z_hat
            Y += rho * self._backward(X_hat)
            # λ∂‖Z‖₁ ∋ Y: what soft thresholding of Y/ρ takes off
            Z = Y.copy()
            np.clip(Y, -weight, weight, out=Y)
            Z -= Y
            Z /= rho
            last, Z_hat = Z_hat, self._forward(Z)
            apart = X_hat - Z_hat
            Y_hat += rho * apart
            proven = self._relative_gap(h, Z_hat, Y_hat, Z, weight)
            if proven <= 0.5 * lasso.tolerance:
                break
            if step % _BALANCED_EVERY == 0 and step < 0.8 * _MOST_STEPS:
                rho *= _imbalance(apart, Z_hat - last, Z_hat, Y_hat, rho)
        slope = self._backward(h * Z_hat - self._pull)
        return LassoOptimum(W=Z, Y=best_dual(Z, slope, weight), gap=proven)

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
    """By how much to change ρ: the root of ‖X − Z‖/‖Z‖ over ρ‖ΔZ‖/‖Y‖."""
    primal = float(np.linalg.norm(apart) * np.linalg.norm(Y))
    dual = rho * float(np.linalg.norm(moved) * np.linalg.norm(Z))
    if primal > 1e4 * dual:
        return 1e2
    ratio = max(primal / dual, 1e-4) ** 0.5 if dual > 0.0 else 1.0
    return ratio if abs(np.log(ratio)) > np.log(1.5) else 1.0
