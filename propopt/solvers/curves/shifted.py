"""Conjugate gradients for one column: (s + b P) w = a g."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array
from propopt.errors import InvalidInput, SolverFailure
from propopt.extras import require
from propopt.linear.conjugate_gradients import conjugate_gradients
from propopt.operators import Operator


PreconditionerName: TypeAlias = Literal["jacobi", "multigrid"]
Preconditioner: TypeAlias = Callable[[Array], Array]

MOST_GRADIENTS = 50_000
_LOOK_EVERY = 5
_RESTARTS = 3
"""From the residual itself, where that of the recurrence has lost it to rounding."""


@dataclass(frozen=True, eq=False)
class ShiftedSystem:
    """min_w a‖w − g‖² + (s − a)‖w‖² + b wᵀP w, which (s + b P) w = a g solves.

    Parameters
    ----------
    P : matrix (N, N)
        Positive semidefinite: sparse, dense or an operator.
    a, b, s : float
        Weights; s ≥ a > 0.
    g : array (N,)
        The target.
    most_steps : int
        After which it fails.
    """

    P: Any
    a: float
    b: float
    s: float
    g: Array
    most_steps: int = MOST_GRADIENTS

    def solve(self, w: Array, tolerance: float, name: PreconditionerName) -> Array:
        """The minimiser to a relative excess of a tenth of ``tolerance``."""
        precondition = self._preconditioner(name)
        w, r = self._nearer(w)
        for _ in range(_RESTARTS):
            w = self._descend(w, r, 0.1 * tolerance, precondition)
            r = self._residual(w)  # the one of the recurrence is free of w's rounding
            if self._is_done(w, r, 0.1 * tolerance):
                break
        return w

    def _nearer(self, w: Array) -> tuple[Array, Array]:
        """The one of w and zero with the smaller residual: it leaves less rounding."""
        r = self._residual(w)
        if float(r @ r) <= self.a**2 * float(self.g @ self.g):
            return w.copy(), r
        return np.zeros_like(w), self.a * self.g

    def _residual(self, w: Array) -> Array:
        r: Array = self.a * self.g - self.s * w - self.b * (self.P @ w)
        return r

    def _descend(
        self, w: Array, r: Array, tolerance: float, precondition: Preconditioner
    ) -> Array:
        looks = count()

        def product(p: Array) -> Array:
            Ap: Array = self.P @ p
            Ap *= self.b
            Ap += self.s * p
            return Ap

        def is_enough(w: Array, r: Array) -> bool:
            return next(looks) % _LOOK_EVERY == 0 and self._is_done(w, r, tolerance)

        if conjugate_gradients(
            product,
            w,
            r,
            precondition=precondition,
            most_steps=self.most_steps,
            is_enough=is_enough,
        ):
            return w
        raise SolverFailure(
            f"conjugate gradients did not converge in {self.most_steps} steps: the "
            "graph is badly scaled, perhaps; Krylov(preconditioner='multigrid') may do"
        )

    def _is_done(self, w: Array, r: Array, tolerance: float) -> bool:
        """The objective exceeds its minimum by at most ‖r‖²/a, as the certificate says.

        With d = g − w it is a‖d‖² + wᵀ(a d − r), for b P w + (s − a) w = a d − r.
        """
        squared = float(r @ r)
        d = self.g - w
        objective = self.a * float(d @ d)
        d *= self.a
        d -= r
        objective += float(w @ d)
        rounding = (1e-15 * self.a) ** 2 * float(self.g @ self.g)
        return squared <= max(tolerance * self.a * objective, rounding)

    def _preconditioner(self, name: PreconditionerName) -> Preconditioner:
        if name == "multigrid":
            return self._multigrid()
        if isinstance(self.P, Operator) or self.b == 0.0:
            return np.copy  # grids have nearly constant diagonals
        inverse = 1.0 / (self.s + self.b * self.P.diagonal())
        return lambda r: inverse * r

    def _multigrid(self) -> Preconditioner:
        pyamg = require("pyamg")
        if not sp.issparse(self.P):
            raise InvalidInput("multigrid needs a stored sparse graph, as knn_graph is")
        matrix = sp.csr_matrix(self.s * sp.eye_array(len(self.g)) + self.b * self.P)
        cycle = pyamg.smoothed_aggregation_solver(matrix).aspreconditioner()
        return lambda r: np.asarray(cycle @ r)
