"""The same losses as the closed form, for graphs too large for an eigenbasis.

Rotating the columns of G by the eigenvectors of CᵀC decouples the features: column j of
W solves the shifted system (s_j + b P) w = a g with P = BᵀB and s_j = a + c ν_j.

**Curves.** Krylov spaces do not depend on the shift. One Lanczos run with P from g_j
gives a tridiagonal T with eigenvalues θ_k and weights τ_k (squared first components of
its eigenvectors) such that, for every a, b and c at once, the losses of the
conjugate-gradient iterate of that many steps are exactly

    ‖g‖² Σ τ (1 − h)²,   ‖g‖² Σ τ θ h²,   ν_j ‖g‖² Σ τ h²   with h = a/(s_j + b θ).

With one node moved to zero (Gauss–Radau), the same sum of a − a h bounds the optimum
from below: P is positive semidefinite and 1/(s + b p) completely monotone in p. Their
difference, and what rounding may do to nodes, is the certified gap; Lanczos goes on
until it is small enough, or rounding is all that is left of it (Golub and Meurant,
"Matrices, Moments and Quadrature with Applications", 2010).

Means over connected components are taken out of G first: nodes at θ = 0, exactly.

**Attributions.** Preconditioned conjugate gradients, for weights that are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Array, Attributions
from propopt.curvature.eigenbasis import Eigenbasis
from propopt.curvature.quadratic import Quadratic, curve_refusal
from propopt.errors import SolverFailure
from propopt.losses import Program
from propopt.memory import memory_refusal
from propopt.solvers.base import Curve, Measurement, Prepared, Solution, Solver
from propopt.solvers.curves.lanczos import Lanczos, TurnedFeature
from propopt.solvers.curves.lots import lots_of
from propopt.solvers.curves.nodes import NO_NODES, Nodes
from propopt.solvers.curves.shifted import (
    MOST_GRADIENTS,
    PreconditionerName,
    ShiftedSystem,
)
from propopt.solvers.in_turn import InTurn
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
    most_steps : int, optional
        Of Lanczos, and of conjugate gradients, before it gives up; by default 10,000
        and 50,000.
    otherwise : Solver, optional
        One of curves too, asked for weights at which this one gives up or misses the
        tolerance.
    """

    preconditioner: PreconditionerName = "jacobi"
    most_steps: int | None = None
    otherwise: Solver | None = None

    @property
    def name(self) -> str:
        return "krylov"

    def refusal(self, program: Program) -> str | None:
        return curve_refusal(program) or _memory_refusal(program)

    def prepare(self, program: Program) -> Prepared:
        quadratic = Quadratic.of(program.losses, program.shape)
        spaces = _KrylovSpaces(quadratic, self.preconditioner, self.most_steps)
        if self.otherwise is None:
            return spaces
        return InTurn(program, spaces, self.otherwise)


def _memory_refusal(program: Program) -> str | None:
    # G, its rotation, W, and the vectors of each recurrence
    n_points, n_features = program.shape
    what = f"conjugate gradients on {n_points} points and {n_features} features"
    return memory_refusal(80.0 * n_points * n_features, what, "explain fewer points")


class _KrylovSpaces(Curve):
    def __init__(
        self,
        quadratic: Quadratic,
        preconditioner: PreconditionerName,
        most_steps: int | None,
    ) -> None:
        self._quadratic = quadratic
        self._most_steps = most_steps or MOST_STEPS
        self._most_gradients = most_steps or MOST_GRADIENTS
        self._preconditioner = preconditioner
        n_features = quadratic.G.shape[1]
        self._basis = Eigenbasis(quadratic.Q, quadratic.feature_parts, n_features)
        self._nu = self._basis.values
        self._parts = quadratic.point_parts
        self._means = np.zeros((n_features, 0))
        R = quadratic.G - quadratic.constants
        if self._parts is not None:
            means, R = self._parts.split(R)
            self._means = self._basis.forward(means.T)
        self._columns = self._basis.forward(R.T)
        P = quadratic.P
        self._lots = [] if P is None else lots_of(P, self._parts)
        self._gauss = self._earlier = self._radau = NO_NODES
        self._exhausted = False

    @cached_property
    def _spaces(self) -> list[Lanczos]:
        return [
            Lanczos(
                lot.P, TurnedFeature(g[lot.nodes], float(nu), float(error)), lot.norm
            )
            for lot in self._lots
            for g, nu, error in zip(
                self._columns, self._nu, self._basis.errors, strict=True
            )
        ]

    @cached_property
    def _constants(self) -> Nodes:
        """What P does not see: means, and all of G where there is no P."""
        tau = np.zeros(len(self._nu))
        if self._parts is not None:
            tau += self._means**2 @ self._parts.sizes
        if not self._lots:
            tau += (self._columns**2).sum(axis=1)
        zero = np.zeros(len(tau))
        return Nodes(zero, self._nu, tau, zero, self._basis.errors)

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        abc = np.array(self._quadratic.coefficients(weights))
        if self._gauss is NO_NODES:
            self._extend()
        while True:
            losses = self._gauss.losses(abc)
            rounding = self._gauss.rounding(abc)
            # in theory the Radau rule is below the Gauss rule: else, it is an error too
            apart = abs(self._gauss.optimum(abc) - self._radau.optimum(abc))
            settled = apart <= max(tolerance * float(abc @ losses), rounding)
            if self._exhausted or (settled and self._is_still(abc, losses, tolerance)):
                placed = self._quadratic.in_program_order(*losses.tolist())
                return Measurement(losses=placed, excess=apart + rounding)
            self._extend()

    def _is_still(self, abc: Array, losses: Array, tolerance: float) -> bool:
        """True if the last steps changed each loss by little, or by rounding."""
        change = np.abs(losses - self._earlier.losses(abc))
        little = np.maximum(tolerance * losses, self._gauss.losses_rounding(abc))
        return bool((change <= little).all())

    def _extend(self) -> None:
        steps = max((space.n_steps for space in self._spaces), default=0)
        if steps > self._most_steps:
            raise SolverFailure(
                f"Lanczos did not converge in {steps} steps: the graph is badly "
                "scaled, as the precision of a kernel is; the spectral solver may do"
            )
        spaces = self._spaces
        for_each_column(
            lambda k: spaces[k].extend(), len(spaces), self._columns.shape[1]
        )
        fixed = self._constants
        self._gauss = Nodes.joined([fixed, *(space.gauss for space in spaces)])
        self._earlier = Nodes.joined([fixed, *(space.earlier for space in spaces)])
        self._radau = Nodes.joined([fixed, *(space.radau for space in spaces)])
        self._exhausted = all(space.exhausted for space in spaces)

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        a, b, c = self._quadratic.coefficients(weights)
        shifts = (a + c * self._nu)[:, None]
        begin = a * self._columns / shifts
        means = a * self._means / shifts
        W_hat = begin.copy()
        if start is not None:
            begin = self._basis.forward(self._centred(start.W).T)

        def column(k: int) -> None:
            lot, j = self._lots[k // len(begin)], k % len(begin)
            system = ShiftedSystem(
                lot.P,
                a,
                b,
                float(shifts[j, 0]),
                self._columns[j, lot.nodes],
                self._most_gradients,
            )
            W_hat[j, lot.nodes] = system.solve(
                begin[j, lot.nodes], tolerance, self._preconditioner
            )

        for_each_column(column, len(self._lots) * len(begin), begin.shape[1])
        W = np.ascontiguousarray(self._basis.backward(W_hat).T)
        if self._parts is not None:
            W += self._parts.spread(self._basis.backward(means).T)
        W += self._quadratic.constants
        return Solution(W=W)

    def _centred(self, W: Attributions) -> Attributions:
        return W if self._parts is None else self._parts.centred(W)
