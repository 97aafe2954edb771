"""Gradient matching, robustness and smoothness with an ℓ1 loss: sparse attributions.

    min_W  a‖W − G‖² + b tr(Wᵀ P W) + c tr(W Q Wᵀ) + λ‖W‖₁,   P = BᵀB,  Q = CᵀC.

Two methods, chosen by how P is known:

======================================  ==============================================
P                                       method
======================================  ==============================================
none, sparse (graphs), or an operator   Newton's method on the non-zeros with conjugate
                                        gradients (``lasso.newton``): no
                                        factorisation, a dozen products a weight; the
                                        second method where it stalls and N ≤ 2,000
a dense array (a kernel's precision)    alternating directions in the eigenbasis
                                        (``lasso.eigenbasis``): such P have
                                        eigenvalues of all sizes, on which conjugate
                                        gradients are slow
======================================  ==============================================

Features whose attributions cannot change sign, as those beside a large offset, are
apart (:mod:`propopt.solvers.lasso.one_signed`).

Both stop at a proven relative gap and leave exact zeros. The dual of the ℓ1 loss, which
the certificate needs, comes with the solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions
from propopt.curvature.quadratic import Quadratic, bounds_refusal, quadratic_refusal
from propopt.losses import Program, PropertyLoss
from propopt.maps import Identity, OverPoints
from propopt.memory import memory_refusal
from propopt.penalties import Absolute, Squared
from propopt.solvers.base import Prepared, Solution, Solver
from propopt.solvers.lasso.base import LassoMethod, LassoOptimum, LassoProblem
from propopt.solvers.lasso.eigenbasis import DiagonalLasso
from propopt.solvers.lasso.newton import NewtonLasso
from propopt.solvers.lasso.one_signed import OneSigned, averaging_parts


@final
@dataclass(frozen=True)
class Lasso(Solver):
    """Sparse attributions by Newton's method or in an eigenbasis; see the module."""

    @property
    def name(self) -> str:
        return "lasso"

    def refusal(self, program: Program) -> str | None:
        return (
            bounds_refusal(program)
            or _sparsity_refusal(program.losses)
            or quadratic_refusal(program.losses)
            or _memory_refusal(program)
        )

    def prepare(self, program: Program) -> Prepared:
        quadratic = Quadratic.of(program.losses, program.shape)
        place = next(
            i for i, loss in enumerate(program.losses) if not _is_squared(loss)
        )
        name = program.losses[place].name

        def lasso(columns: NDArray[np.bool_]) -> Prepared:
            part = replace(quadratic, G=quadratic.G[:, columns])
            return _Sparse(_method(part), part, place, name)

        if averaging_parts(program) is None:
            return lasso(np.ones(program.shape[1], dtype=bool))
        return OneSigned(program, place, quadratic.G, lasso)


def _method(quadratic: Quadratic) -> LassoMethod:
    if isinstance(quadratic.P, np.ndarray):
        return DiagonalLasso(quadratic)
    if max(quadratic.G.shape) <= SECOND_METHOD:
        return _InTurn(quadratic)
    return NewtonLasso(quadratic)


SECOND_METHOD = 2_000  # points or features up to which there is a second method


class _InTurn(LassoMethod):
    """Newton's method; where it stalls, the eigenbasis.

    It stalls where points or features are tied so stiffly that many attributions have
    to change sign at once: from weights of 1e7 times that of gradient matching.
    """

    def __init__(self, quadratic: Quadratic) -> None:
        self._quadratic = quadratic
        self._newton = NewtonLasso(quadratic)

    def minimum(self, lasso: LassoProblem, start: LassoOptimum | None) -> LassoOptimum:
        first = self._newton.minimum(lasso, start)
        if first.gap <= lasso.tolerance:
            return first
        second = self._diagonal.minimum(lasso, first)
        return min(first, second, key=lambda optimum: optimum.gap)

    @cached_property
    def _diagonal(self) -> DiagonalLasso:
        return DiagonalLasso(self._quadratic)


def _is_squared(loss: PropertyLoss) -> bool:
    return isinstance(loss.penalty, Squared)


def _sparsity_refusal(losses: tuple[PropertyLoss, ...]) -> str | None:
    others = [loss for loss in losses if not _is_squared(loss)]
    for loss in others:
        direct = isinstance(loss.map, Identity) and isinstance(loss.penalty, Absolute)
        if not direct or loss.has_target:
            return f"{loss.name} is neither a squared loss nor sparsity"
    if len(others) != 1:
        return f"it takes one sparsity loss, and there are {len(others)}"
    return None


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
    what = f"the lasso of {n_points} points and {n_features} features"
    return memory_refusal(n_bytes, what, instead)


ARRAYS = 24  # arrays of the size of W that are alive at once, by measurement


class _Sparse(Prepared):
    """A method for the program divided by a, and the answers that need none."""

    def __init__(
        self, method: LassoMethod, quadratic: Quadratic, place: int, name: str
    ) -> None:
        self._method = method
        self._quadratic = quadratic
        self._place = place
        self._name = name

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        a, b, c = self._quadratic.coefficients(weights)
        weight = float(weights[self._place])
        G = self._quadratic.G
        if a == 0.0:  # all other losses are zero at zero
            return self._solution(np.zeros_like(G), np.zeros_like(G))
        if 2.0 * a * float(np.abs(G).max()) <= weight:  # 0 ∈ −2aG + λ∂‖0‖₁
            return self._solution(np.zeros_like(G), (2.0 * a) * G)
        lasso = LassoProblem(
            beta=b / a, gamma=c / a, weight=weight / a, tolerance=tolerance
        )
        optimum = self._method.minimum(lasso, self._begin(start, a))
        # cut again: rounding may have put a·Y beyond λ
        return self._solution(optimum.W, np.clip(a * optimum.Y, -weight, weight))

    def _begin(self, start: Solution | None, a: float) -> LassoOptimum | None:
        if start is None:
            return None
        dual = start.duals.get(self._name, np.zeros_like(start.W))
        return LassoOptimum(W=start.W, Y=dual / a, gap=np.inf)

    def _solution(self, W: Attributions, Y: Array) -> Solution:
        return Solution(W=W, duals={self._name: Y})
