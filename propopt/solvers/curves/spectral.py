"""Gradient matching, one robustness and one smoothness loss, in closed form.

With a‖W − G‖² + b‖B W‖² + c‖W Cᵀ‖², BᵀB = U diag(θ) Uᵀ and CᵀC = V diag(ν) Vᵀ, the
optimality condition a(W − G) + b BᵀB W + c W CᵀC = 0 is diagonal in U ⊗ V:
Ŵ_ij = a Ĝ_ij / (a + b θ_i + c ν_j), where Ĝ = Uᵀ G V (Tadesse et al. 2024, Eq. 10).
Each loss is a sum of N·D terms in that basis (``nodes``). Preparing costs O(N³ + D³),
the losses for one weight vector O(N·D), its attributions O(N·D·(N + D)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.curvature.eigenbasis import Eigenbasis
from propopt.curvature.quadratic import Quadratic, curve_refusal
from propopt.losses import Program
from propopt.memory import memory_refusal
from propopt.solvers.base import Curve, Measurement, Prepared, Solution, Solver
from propopt.solvers.curves.nodes import Nodes


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
        return Diagonal(Quadratic.of(program.losses, program.shape))


def _memory_refusal(program: Program) -> str | None:
    # a Gram matrix, its eigenvectors and LAPACK's workspace for each axis
    n_bytes = sum(32.0 * size**2 for size in program.shape)
    n_points, n_features = program.shape
    what = f"the eigenbasis of {n_points} points and {n_features} features"
    return memory_refusal(n_bytes, what, "the krylov solver works without it")


@final
class Diagonal(Curve):
    """The program in both eigenbases."""

    def __init__(self, quadratic: Quadratic) -> None:
        self._quadratic = quadratic
        n_points, n_features = quadratic.G.shape
        self._over_points = Eigenbasis(quadratic.P, quadratic.point_parts, n_points)
        self._over_features = Eigenbasis(
            quadratic.Q, quadratic.feature_parts, n_features
        )
        turned = self._over_points.forward(quadratic.G - quadratic.constants)
        self._G_hat = self._over_features.forward(turned.T).T

    @property
    def bases(self) -> tuple[Eigenbasis, Eigenbasis]:
        """U over points and V over features."""
        return self._over_points, self._over_features

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        del tolerance, start  # a closed form is exact, and needs no start
        a, b, c = self._quadratic.coefficients(weights)
        # a (W − G) + b BᵀB W + c W CᵀC = 0
        theta, nu = self._over_points.values[:, None], self._over_features.values
        W_hat = a * self._G_hat / (a + b * theta + c * nu)
        turned = self._over_features.backward(W_hat.T).T
        W = self._over_points.backward(turned)
        W += self._quadratic.constants
        return Solution(W=W)

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        del tolerance
        abc = np.array(self._quadratic.coefficients(weights))
        losses = self._quadratic.in_program_order(*self._nodes.losses(abc).tolist())
        return Measurement(losses=losses, excess=self._nodes.rounding(abc))

    @cached_property
    def _nodes(self) -> Nodes:
        return Nodes(
            theta=self._over_points.values[:, None],
            nu=self._over_features.values,
            tau=self._G_hat**2,
            theta_error=self._over_points.errors[:, None],
            nu_error=self._over_features.errors,
        )
