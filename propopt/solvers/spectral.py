"""Gradient matching, one robustness and one smoothness loss, in closed form.

With a‖W − G‖² + b‖K W‖² + c‖W Cᵀ‖², KᵀK = U diag(μ) Uᵀ and CᵀC = V diag(ν) Vᵀ, the
optimality condition a(W − G) + b KᵀK W + c W CᵀC = 0 is diagonal in U ⊗ V:
Ŵ_ij = a Ĝ_ij / (a + b μ_i + c ν_j), where Ĝ = Uᵀ G V (Tadesse et al. 2024, Eq. 10).
Preparing costs O(N³ + D³), each weight vector O(N·D·(N + D)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg as la

from propopt._typing import Array, Sparse
from propopt.losses import Program
from propopt.maps import dense
from propopt.memory import memory_refusal
from propopt.operators import Operator
from propopt.solvers.base import Prepared, Solution, Solver
from propopt.solvers.quadratic import (
    Quadratic,
    all_squared_refusal,
    quadratic_refusal,
)


@final
@dataclass(frozen=True)
class Spectral(Solver):
    """Closed form in the eigenbasis of the two graphs; see the module's formula."""

    @property
    def name(self) -> str:
        return "spectral"

    def refusal(self, program: Program) -> str | None:
        if program.bounds:
            return f"it takes no bounds, and {program.bounds[0]} is one"
        return (
            all_squared_refusal(program.losses)
            or quadratic_refusal(program.losses)
            or _memory_refusal(program)
        )

    def prepare(self, program: Program) -> Prepared:
        return _Diagonal(Quadratic.of(program.losses, program.shape))


def _memory_refusal(program: Program) -> str | None:
    # a Gram matrix, its eigenvectors and LAPACK's workspace for each axis
    n_bytes = sum(32.0 * size**2 for size in program.shape)
    n_points, n_features = program.shape
    what = f"the eigenbasis of {n_points} points and {n_features} features"
    return memory_refusal(n_bytes, what, "the krylov solver works without it")


class _Diagonal(Prepared):
    def __init__(self, quadratic: Quadratic) -> None:
        self._quadratic = quadratic
        n_points, n_features = quadratic.G.shape
        self._mu, self._U = eigenbasis(quadratic.points, n_points)
        self._nu, self._V = eigenbasis(quadratic.features, n_features)
        self._G_hat = self._U.T @ quadratic.G @ self._V

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        del tolerance, start  # a closed form is exact, and needs no start
        a, b, c = self._quadratic.coefficients(weights)
        # a (W − G) + b KᵀK W + c W CᵀC = 0
        W_hat = a * self._G_hat / (a + b * self._mu[:, None] + c * self._nu)
        return Solution(W=self._U @ W_hat @ self._V.T)


def eigenbasis(
    gram: Sparse | Array | Operator | None, size: int
) -> tuple[Array, Array]:
    """Eigenvalues ≥ 0 and eigenvectors of a Gram matrix; of zero where it is None."""
    if gram is None:
        return np.zeros(size), np.eye(size)
    values, vectors = la.eigh(dense(gram))
    return np.maximum(values, 0.0), vectors
