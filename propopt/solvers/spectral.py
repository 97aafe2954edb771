"""Gradient matching, one robustness and one smoothness loss, in closed form.

With a‖W − G‖² + b‖K W‖² + c‖W Cᵀ‖², KᵀK = U diag(μ) Uᵀ and CᵀC = V diag(ν) Vᵀ, the
optimality condition a(W − G) + b KᵀK W + c W CᵀC = 0 is diagonal in U ⊗ V:
Ŵ_ij = a Ĝ_ij / (a + b μ_i + c ν_j), where Ĝ = Uᵀ G V (Tadesse et al. 2024, Eq. 10).
Each loss is a sum of N·D terms in that basis: the matching loss Σ (Ŵ − Ĝ)², the others
Σ μ_i Ŵ_ij² and Σ ν_j Ŵ_ij². Preparing costs O(N³ + D³), the losses for one weight
vector O(N·D), its attributions O(N·D·(N + D)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy.linalg as la

from propopt._typing import Array, Sparse
from propopt.losses import Program
from propopt.maps import dense
from propopt.memory import memory_refusal
from propopt.operators import Operator
from propopt.solvers.base import Curve, Measurement, Prepared, Solution, Solver
from propopt.solvers.quadratic import Quadratic, curve_refusal


@final
@dataclass(frozen=True)
class Spectral(Solver):
    """Closed form in the eigenbasis of the two graphs; see the module's formula."""

    @property
    def name(self) -> str:
        return "spectral"

    def refusal(self, program: Program) -> str | None:
        return curve_refusal(program) or _memory_refusal(program)

    def prepare(self, program: Program) -> Prepared:
        return _Diagonal(Quadratic.of(program.losses, program.shape))


def _memory_refusal(program: Program) -> str | None:
    # a Gram matrix, its eigenvectors and LAPACK's workspace for each axis
    n_bytes = sum(32.0 * size**2 for size in program.shape)
    n_points, n_features = program.shape
    what = f"the eigenbasis of {n_points} points and {n_features} features"
    return memory_refusal(n_bytes, what, "the krylov solver works without it")


class _Diagonal(Curve):
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
        return Solution(W=self._U @ self._shrunk(weights) @ self._V.T)

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        del tolerance
        a, b, c = self._quadratic.coefficients(weights)
        W_hat = self._shrunk(weights)
        squares = W_hat**2
        own = float(((W_hat - self._G_hat) ** 2).sum())
        over_points = float(self._mu @ squares.sum(axis=1))
        over_features = float(squares.sum(axis=0) @ self._nu)
        losses = self._quadratic.placed(own, over_points, over_features)
        # K'K U − U diag(μ) = E leaves a slope of at most 2(b‖E‖ + c‖E'‖)‖W‖ at W
        error = b * self._errors[0] + c * self._errors[1]
        return Measurement(losses=losses, excess=error**2 * float(squares.sum()) / a)

    def _shrunk(self, weights: Array) -> Array:
        a, b, c = self._quadratic.coefficients(weights)
        # a (W − G) + b KᵀK W + c W CᵀC = 0
        return a * self._G_hat / (a + b * self._mu[:, None] + c * self._nu)

    @cached_property
    def _errors(self) -> tuple[float, float]:
        """‖KᵀK U − U diag(μ)‖ and its like for the features: what rounding left."""
        points = _residual(self._quadratic.points, self._mu, self._U)
        return points, _residual(self._quadratic.features, self._nu, self._V)


def _residual(
    gram: Sparse | Array | Operator | None, values: Array, vectors: Array
) -> float:
    if gram is None:
        return 0.0
    return float(np.linalg.norm(gram @ vectors - vectors * values))


def eigenbasis(
    gram: Sparse | Array | Operator | None, size: int
) -> tuple[Array, Array]:
    """Eigenvalues ≥ 0 and eigenvectors of a Gram matrix; of zero where it is None."""
    if gram is None:
        return np.zeros(size), np.eye(size)
    values, vectors = la.eigh(dense(gram))
    # what rounding alone explains is zero: constants of each component cost nothing
    rounding = np.finfo(float).eps * np.sqrt(size) * np.abs(values).max(initial=0.0)
    return np.where(values > rounding, values, 0.0), vectors
