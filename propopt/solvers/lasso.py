"""Sparsity with quadratic losses, by Newton's method.

    min_W  a‖W − G‖² + b tr(Wᵀ P W) + c tr(W Q Wᵀ) + λ‖W‖₁,   P = BᵀB,  Q = CᵀC.

There is no P, or it is sparse (graphs) or an operator: conjugate gradients on the
non-zeros (:mod:`propopt.solvers.lasso_newton`), without a factorisation, a dozen
products a weight. On a dense P (a kernel's precision), which has eigenvalues of all
sizes, they are slow, so that alternating directions (:mod:`propopt.solvers.splitting`)
take it. Newton's method stops at a proven relative gap, and leaves exact zeros. The
dual of the ℓ1 loss, which the certificate needs, comes with the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import largest_entry
from propopt.base.resources import memory_refusal
from propopt.losses import Program
from propopt.losses.maps import (
    OverPoints,
)
from propopt.proofs.curvature import (
    Quadratic,
    bounds_refusal,
    quadratic_refusal,
)
from propopt.solvers.lasso_newton import (
    Curvature,
    for_products,
    lasso_optimum,
)
from propopt.solvers.solver import Prepared, Solution, Solver


# ---- Gradient matching, robustness and smoothness with an ℓ1 loss: sparse attributions


@final
@dataclass(frozen=True)
class Lasso(Solver):
    """Sparse attributions by Newton's method; see the module."""

    name = "lasso"

    def refusal(self, program: Program) -> str | None:
        return (
            bounds_refusal(program)
            or _sparsity_refusal(program)
            or _dense_refusal(program)
            or quadratic_refusal(program)
            or _memory_refusal(program)
        )

    def prepare(self, program: Program) -> Prepared:
        quadratic = Quadratic.of(program)
        [sparsity] = program.kinds["sparsity"]
        return _Sparse(quadratic, program.losses.index(sparsity), sparsity.name)


def _sparsity_refusal(program: Program) -> str | None:
    for loss in program.kinds["rest"]:
        return f"{loss.name} is neither a squared loss nor sparsity"
    count = len(program.kinds["sparsity"])
    return None if count == 1 else f"it takes one sparsity loss, and there are {count}"


def _dense_refusal(program: Program) -> str | None:
    for loss in program.kinds["robustness"]:
        if isinstance(loss.map, OverPoints) and isinstance(loss.map.matrix, np.ndarray):
            return f"{loss.name} has a dense matrix; solver='splitting' takes it"
    return None


def _memory_refusal(program: Program) -> str | None:
    n_points, n_features = program.shape
    n_bytes = 8.0 * ARRAYS * n_points * n_features
    label = f"the lasso of {n_points} points and {n_features} features"
    return memory_refusal(n_bytes, label, "use fewer points")


ARRAYS = 24  # arrays of the size of W in memory, by measurement


class _Sparse(Prepared):
    """Newton's method for the program divided by a, with shortcuts for zero."""

    def __init__(self, quadratic: Quadratic, sparsity_index: int, name: str) -> None:
        self._P = for_products(quadratic.P)
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
        if 2.0 * a * largest_entry(G) <= weight:  # 0 ∈ −2aG + λ∂‖0‖₁
            return self._solution(np.zeros_like(G), (2.0 * a) * G)
        H = Curvature.of(self._P, self._quadratic.Q, b / a, c / a)
        begin = None if start is None else start.W
        W, Y = lasso_optimum(H, G, weight / a, tolerance, begin)
        # clip again: by rounding a·Y may exceed λ
        return self._solution(W, np.clip(a * Y, -weight, weight))

    def _solution(self, W: Attributions, Y: Array) -> Solution:
        return Solution(W=W, duals={self._name: Y})
