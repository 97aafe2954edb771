"""Gauss and Gauss–Radau quadrature for the spectral measure of a vector.

In floating point, Lanczos does what it would do exactly with a matrix whose eigenvalues
are those of P to a small multiple of the unit of rounding at ‖P‖ (Greenbaum, "Behavior
of slightly perturbed Lanczos and conjugate-gradient recurrences", 1989). Each node is
known to within that, and no better: what is smaller beside ‖P‖ is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la

from propopt._typing import Array
from propopt.linear.rounding import EPSILON
from propopt.operators import Operator
from propopt.solvers.curves.nodes import NO_NODES, Nodes


_FIRST_STEPS = 10
_GROWTH = 0.4  # each extension adds so much, for looking costs as much as many steps
_ROUNDING = 8 * EPSILON
"""To what nodes are known, beside ‖P‖; see the tests for what was measured."""


@dataclass(frozen=True, eq=False)
class TurnedFeature:
    """One feature, turned: a vector g (N,), and its eigenvalue over features."""

    g: Array
    nu: float = 0.0
    nu_error: float = 0.0

    def nodes(self, theta: Array, tau: Array, theta_error: float) -> Nodes:
        """A rule over points, at this feature."""
        columns = (self.nu, theta_error, self.nu_error)
        nu, errors, nu_errors = (np.full(len(theta), value) for value in columns)
        return Nodes(theta, nu, tau, errors, nu_errors)


class Lanczos:
    """A Lanczos run with a matrix P ≥ 0 from a vector g, extended on request.

    ``gauss`` and ``radau`` are its rules, ``earlier`` the Gauss rule a while ago.
    ``norm`` bounds the eigenvalues of P.

    Without reorthogonalisation: rounding lets converged eigenvalues appear again, which
    costs steps and does no harm to the quadrature.
    """

    def __init__(self, P: Any, column: TurnedFeature, norm: float) -> None:
        self._P = P
        self._error = _ROUNDING * norm
        self._column = column
        g = column.g
        self._mass = float(g @ g)
        self._alpha: list[float] = []
        self._beta: list[float] = []
        self._vector = g / np.sqrt(self._mass) if self._mass > 0 else g
        self._before = np.zeros_like(g)
        self._spare = np.zeros_like(g)
        self.exhausted = self._mass == 0.0
        self.gauss = self.earlier = self.radau = NO_NODES

    @property
    def n_steps(self) -> int:
        """Products with P so far."""
        return len(self._alpha)

    def extend(self) -> None:
        """Go on for some more steps, or until the space is exhausted."""
        for _ in range(max(_FIRST_STEPS, int(_GROWTH * self.n_steps))):
            if self.exhausted:
                break
            self._step()
        earlier = self.gauss
        radau = None if self.exhausted else self._radau_rule()
        self.gauss = self._rule(self._alpha, self._beta[:-1])
        self.earlier = earlier if radau else self.gauss
        self.radau = radau or self.gauss

    def _step(self) -> None:
        # β_{k+1} v_{k+1} = P v_k − α_k v_k − β_k v_{k−1}, in three arrays that rotate
        v, work = self._vector, self._before
        following = self._product(v)
        if self._beta:
            work *= self._beta[-1]
            following -= work
        alpha = float(following @ v)
        np.multiply(v, alpha, out=work)
        following -= work
        beta = float(np.sqrt(following @ following))
        self._alpha.append(alpha)
        self._beta.append(beta)
        # such a β moves the nodes by no more than rounding does
        self.exhausted = beta <= self._error
        if not self.exhausted:
            following /= beta
            self._before, self._vector, self._spare = v, following, work

    def _product(self, v: Array) -> Array:
        if not isinstance(self._P, Operator):
            return np.asarray(self._P @ v)
        self._P.apply(v, self._spare)
        return self._spare

    def _rule(self, alpha: list[float], beta: list[float]) -> Nodes:
        if not alpha:
            return NO_NODES
        theta, vectors = la.eigh_tridiagonal(alpha, beta)
        tau = self._mass * vectors[0] ** 2
        return self._column.nodes(np.maximum(theta, 0.0), tau, self._error)

    def _radau_rule(self) -> Nodes:
        """The rule with one more node, which is put at zero, below all eigenvalues."""
        zero = -self._error  # rounding may leave eigenvalues this low
        pivot = self._last_pivot(zero)
        while pivot <= 0.0:  # and shows that it leaves lower ones
            self._error *= 2.0
            zero = -self._error
            pivot = self._last_pivot(zero)
        last = zero + self._beta[-1] ** 2 / pivot
        return self._rule([*self._alpha, last], self._beta)

    def _last_pivot(self, zero: float) -> float:
        """Of T − zero I, if all are positive: if no eigenvalue is below; else 0."""
        pivot = np.inf
        for alpha, beta in zip(self._alpha, [0.0, *self._beta[:-1]], strict=True):
            pivot = alpha - zero - beta**2 / pivot
            if pivot <= 0.0:
                return 0.0
        return pivot
