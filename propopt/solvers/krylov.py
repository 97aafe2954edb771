"""The same losses as the closed form, for graphs too large for an eigenbasis.

Rotating the columns of G by the eigenvectors of CᵀC decouples the features: column j of
W solves the shifted system (s_j + b P) w = a g with P = KᵀK and s_j = a + c ν_j.

**Curves.** Krylov spaces do not depend on the shift. One Lanczos run with P from g_j
gives a tridiagonal T with eigenvalues θ_k and weights τ_k (squared first components of
its eigenvectors) such that, for every a, b and c at once, the losses of the
conjugate-gradient iterate of that many steps are exactly

    ‖g‖² Σ τ (1 − h)²,   ‖g‖² Σ τ θ h²,   ν_j ‖g‖² Σ τ h²   with h = a/(s_j + b θ).

With one node moved to zero (Gauss–Radau), the same sum of a − a h bounds the optimum
from below: P is positive semidefinite and 1/(s + b p) completely monotone in p. The
difference is the certified gap, and Lanczos goes on until it is small enough (Golub and
Meurant, "Matrices, Moments and Quadrature with Applications", 2010).

**Attributions.** Preconditioned conjugate gradients, for weights that are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array
from propopt.errors import SolverFailure
from propopt.losses import Program
from propopt.memory import memory_refusal
from propopt.solvers.base import Curve, Measurement, Prepared, Solution, Solver
from propopt.solvers.gradients import PreconditionerName, ShiftedSystem
from propopt.solvers.lanczos import NO_NODES, Lanczos, Nodes, typical_size
from propopt.solvers.quadratic import Quadratic, curve_refusal
from propopt.solvers.spectral import eigenbasis
from propopt.threads import for_each_column


MOST_STEPS = 10_000
"""Graphs of a million points took a few hundred steps of Lanczos."""


@final
@dataclass(frozen=True)
class Krylov(Solver):
    """Lanczos curves and conjugate gradients; see the module's formulas.

    Parameters
    ----------
    preconditioner : {"jacobi", "multigrid"}
        Of the conjugate gradients. ``"multigrid"`` needs the ``pyamg`` package and a
        stored graph; up to robustness weights of 1e4 it was not faster, so that it is
        worth a try only beyond (see ``docs/solvers.md``).
    """

    preconditioner: PreconditionerName = "jacobi"

    @property
    def name(self) -> str:
        return "krylov"

    def refusal(self, program: Program) -> str | None:
        return curve_refusal(program) or _memory_refusal(program)

    def prepare(self, program: Program) -> Prepared:
        quadratic = Quadratic.of(program.losses, program.shape)
        return _KrylovSpaces(quadratic, self.preconditioner)


def _memory_refusal(program: Program) -> str | None:
    # G, its rotation, W, and the vectors of each recurrence
    n_points, n_features = program.shape
    what = f"conjugate gradients on {n_points} points and {n_features} features"
    return memory_refusal(80.0 * n_points * n_features, what, "explain fewer points")


class _KrylovSpaces(Curve):
    def __init__(
        self, quadratic: Quadratic, preconditioner: PreconditionerName
    ) -> None:
        self._quadratic = quadratic
        self._preconditioner = preconditioner
        n_points, n_features = quadratic.G.shape
        self._nu, self._V = eigenbasis(quadratic.features, n_features)
        self._P = sp.csr_array((n_points, n_points))
        if quadratic.points is not None:
            self._P = quadratic.points
        self._columns = np.ascontiguousarray((quadratic.G @ self._V).T)
        self._gauss = self._earlier = self._radau = NO_NODES
        self._exhausted = False

    @cached_property
    def _spaces(self) -> list[Lanczos]:
        columns = zip(self._columns, self._nu, strict=True)
        size = typical_size(self._P, self._columns.shape[1])
        return [Lanczos(self._P, g, float(nu), size) for g, nu in columns]

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        abc = np.array(self._quadratic.coefficients(weights))
        if self._gauss is NO_NODES:
            self._extend()
        while True:
            losses = self._gauss.losses(abc)
            excess = max(self._gauss.optimum(abc) - self._radau.optimum(abc), 0.0)
            change = np.abs(losses - self._earlier.losses(abc))
            small = (change <= tolerance * losses).all()
            if self._exhausted or (small and excess <= tolerance * (abc @ losses)):
                placed = self._quadratic.placed(*losses.tolist())
                return Measurement(losses=placed, excess=excess)
            self._extend()

    def _extend(self) -> None:
        steps = max(space.n_steps for space in self._spaces)
        if steps > MOST_STEPS:
            raise SolverFailure(
                f"Lanczos did not converge in {steps} steps: the graph is badly "
                "scaled, as the precision of a kernel is; the spectral solver may do"
            )
        for_each_column(lambda j: self._spaces[j].extend(), *self._columns.shape)
        self._gauss = Nodes.joined([space.gauss for space in self._spaces])
        self._earlier = Nodes.joined([space.earlier for space in self._spaces])
        self._radau = Nodes.joined([space.radau for space in self._spaces])
        self._exhausted = all(space.exhausted for space in self._spaces)

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        a, b, c = self._quadratic.coefficients(weights)
        shifts = a + c * self._nu
        begin = a * self._columns / shifts[:, None]
        if start is not None:
            begin = np.ascontiguousarray((start.W @ self._V).T)

        def column(j: int) -> Array:
            system = ShiftedSystem(self._P, a, b, float(shifts[j]), self._columns[j])
            return system.solve(begin[j], tolerance, self._preconditioner)

        W_hat = np.stack(for_each_column(column, *self._columns.shape), axis=1)
        return Solution(W=W_hat @ self._V.T)
