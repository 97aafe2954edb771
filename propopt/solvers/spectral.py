"""Gradient matching, one robustness and one smoothness loss, in closed form.

With a‖W − G‖² + b‖K W‖² + c‖W Cᵀ‖², KᵀK = U diag(μ) Uᵀ and CᵀC = V diag(ν) Vᵀ, the
optimality condition a(W − G) + b KᵀK W + c W CᵀC = 0 is diagonal in U ⊗ V:
Ŵ_ij = a Ĝ_ij / (a + b μ_i + c ν_j), where Ĝ = Uᵀ G V (Tadesse et al. 2024, Eq. 10).
Preparing costs O(N³ + D³), each weight vector O(N·D·(N + D)).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg as la

from propopt._typing import Array
from propopt.losses import Program, PropertyLoss
from propopt.maps import Identity, LinearMap, OverFeatures, OverPoints
from propopt.memory import memory_refusal
from propopt.penalties import Squared
from propopt.solvers.base import Prepared, Solution, Solver


_AXES: dict[type[LinearMap], str] = {
    Identity: "gradient-matching",
    OverPoints: "robustness",
    OverFeatures: "smoothness",
}


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
        for loss in program.losses:
            if not isinstance(loss.penalty, Squared):
                return f"{loss.name} is not a squared loss"
            if type(loss.map) not in _AXES:
                return f"{loss.name} has a linear map of its own at each point"
        counts = Counter(type(loss.map) for loss in program.losses)
        for kind, noun in _AXES.items():
            if counts[kind] > 1:
                return f"it takes one {noun} loss, and there are {counts[kind]}"
        if counts[Identity] == 0:
            return "there is no gradient-matching loss"
        return _memory_refusal(program)

    def prepare(self, program: Program) -> Prepared:
        return _Diagonal(program)


def _memory_refusal(program: Program) -> str | None:
    # a Gram matrix, its eigenvectors and LAPACK's workspace for each axis
    n_bytes = sum(32.0 * size**2 for size in program.shape)
    what = (
        f"the eigenbasis of {program.shape[0]} points and {program.shape[1]} features"
    )
    return memory_refusal(n_bytes, what, "the conic solver works without it")


class _Diagonal(Prepared):
    def __init__(self, program: Program) -> None:
        n_points, n_features = program.shape
        axes: dict[type[LinearMap], int] = {
            type(loss.map): place for place, loss in enumerate(program.losses)
        }
        self._axes = axes
        self._mu, self._U = _eigenbasis(program.losses, axes.get(OverPoints), n_points)
        self._nu, self._V = _eigenbasis(
            program.losses, axes.get(OverFeatures), n_features
        )
        G = program.losses[axes[Identity]].target
        self._G_hat = self._U.T @ np.broadcast_to(G, program.shape) @ self._V

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        del tolerance, start  # a closed form is exact, and needs no start
        a = weights[self._axes[Identity]]
        b = self._weight(weights, OverPoints)
        c = self._weight(weights, OverFeatures)
        # a (W − G) + b KᵀK W + c W CᵀC = 0
        W_hat = a * self._G_hat / (a + b * self._mu[:, None] + c * self._nu)
        return Solution(W=self._U @ W_hat @ self._V.T)

    def _weight(self, weights: Array, axis: type[LinearMap]) -> float:
        place = self._axes.get(axis)
        return 0.0 if place is None else float(weights[place])


def _eigenbasis(
    losses: tuple[PropertyLoss, ...], place: int | None, size: int
) -> tuple[Array, Array]:
    """Eigenvalues ≥ 0 and eigenvectors of the Gram matrix of one axis."""
    if place is None:
        return np.zeros(size), np.eye(size)
    match losses[place].map:
        case OverPoints() | OverFeatures() as over:
            values, vectors = la.eigh(over.gram)
            return np.maximum(values, 0.0), vectors
        case other:
            raise TypeError(f"no Gram matrix for {type(other).__name__}")
