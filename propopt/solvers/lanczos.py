"""Gauss and Gauss–Radau quadrature for the spectral measure of a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la

from propopt._typing import Array
from propopt.operators import Operator


FIRST_STEPS = 10
GROWTH = 0.4  # each extension adds so much, for looking costs as much as many steps


@dataclass(frozen=True, eq=False)
class Nodes:
    """Quadrature rules ∫ f dα ≈ Σ τ_k f(θ_k, ν_k), of one column or of all together.

    Parameters
    ----------
    theta, tau : array (m,)
        Nodes, and weights that add up to ‖g‖².
    nu : array (m,)
        The eigenvalue of the column that each node belongs to.
    """

    theta: Array
    tau: Array
    nu: Array

    @classmethod
    def joined(cls, rules: Sequence[Nodes]) -> Nodes:
        """The sum of some rules."""
        parts = zip(*((r.theta, r.tau, r.nu) for r in rules), strict=True)
        return cls(*(np.concatenate(part) for part in parts))

    def losses(self, abc: Array) -> Array:
        """Matching, over-points and over-features loss."""
        a, b, c = abc
        stiffness = c * self.nu + b * self.theta
        h = a / (a + stiffness)
        rest = stiffness / a * h  # 1 − h without cancellation
        kept = self.tau * h**2
        return np.array([self.tau @ rest**2, kept @ self.theta, kept @ self.nu])

    def optimum(self, abc: Array) -> float:
        """Σ τ (a − a h): the smallest objective, as this rule sees it."""
        a, b, c = abc
        stiffness = c * self.nu + b * self.theta
        return float(self.tau @ (a * stiffness / (a + stiffness)))


NO_NODES = Nodes(np.zeros(0), np.zeros(0), np.zeros(0))


def typical_size(P: Any, n_points: int) -> float:
    """‖P u‖ for a random unit vector u: the root mean square of the eigenvalues."""
    u = np.random.default_rng(0).standard_normal(n_points)
    u /= np.linalg.norm(u)
    return float(np.linalg.norm(P @ u))


class Lanczos:
    """A Lanczos run with a matrix P ≥ 0 from a vector g, extended on request.

    ``gauss`` and ``radau`` are its rules, ``earlier`` the Gauss rule a while ago.

    Without reorthogonalisation: rounding lets converged eigenvalues appear again, which
    costs steps and does no harm to the quadrature.
    """

    def __init__(
        self, P: Any, g: Array, nu: float = 0.0, size: float | None = None
    ) -> None:
        self._P = P
        self._size = typical_size(P, len(g)) if size is None else size
        self._nu = nu
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
        for _ in range(max(FIRST_STEPS, int(GROWTH * self.n_steps))):
            if self.exhausted:
                break
            self._step()
        earlier = self.gauss
        self.gauss = self._rule(self._alpha, self._beta[:-1])
        self.earlier = self.gauss if self.exhausted else earlier
        self.radau = self.gauss if self.exhausted else self._radau_rule()

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
        # beside P, not beside α: of a constant vector, both are rounding
        self.exhausted = beta <= 1e-14 * self._size
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
        nu = np.full(len(theta), self._nu)
        return Nodes(np.maximum(theta, 0.0), self._mass * vectors[0] ** 2, nu)

    def _radau_rule(self) -> Nodes:
        """The rule with one more node, which is put at zero, below all eigenvalues."""
        zero = -1e-13 * self._size  # rounding may leave eigenvalues this low
        pivot = np.inf
        for alpha, beta in zip(self._alpha, [0.0, *self._beta[:-1]], strict=True):
            pivot = alpha - zero - beta**2 / pivot
        last = zero + self._beta[-1] ** 2 / pivot
        return self._rule([*self._alpha, last], self._beta)
